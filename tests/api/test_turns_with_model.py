"""Whole turns, from the phone's request to the model's server and back."""

from __future__ import annotations

from typing import Any

from svc_proto.api.config import ApiConfig
from svc_proto.commands import Abort
from tests.api.harness import KEY, ApiCall, ApiHarness
from tests.api.scripted_agent import names, streamed_text
from tests.support.servers.model_server import MODEL_PORT, ModelAnswer, ScriptedModel, calls, plain, refusal

MODEL_KEY = "sk-model-51c0"


def connected(*answers: ModelAnswer) -> tuple[ApiHarness, ScriptedModel]:
    model = ScriptedModel(answers)
    config = ApiConfig(
        key=KEY, model_base_url=f"http://127.0.0.1:{MODEL_PORT}/v1", model="small", model_api_key=MODEL_KEY
    )
    book = ApiHarness(config)
    book.serve(MODEL_PORT, model)
    return book, model


def chat(book: ApiHarness, session: str, text: str) -> ApiCall:
    return book.call("POST", f"/api/sessions/{session}/chat/stream", {"message": text})


def data_of(call: ApiCall, name: str) -> dict[str, Any]:
    return next(data for told, data in call.named_events() if told == name)


def test_turn_with_tools_and_the_next_turn() -> None:
    memory = ("memory", {"action": "add", "target": "memory", "content": "likes tea"})
    book, model = connected(
        calls(memory, ("nonsense", "{"), text="I note it."),
        plain("Noted. Anything else?", reasoning="That is all"),
        plain("Tea."),
    )
    session = book.session()
    call = chat(book, session, "I like tea")
    book.after(5.0)
    told = names(call)
    assert told[:3] == ["session.created", "run.started", "message.started"]
    assert told[-3:] == ["assistant.completed", "run.completed", "done"]
    for kind, count in (("tool.started", 2), ("tool.completed", 1), ("tool.failed", 1), ("tool.progress", 3)):
        assert told.count(kind) == count, kind
    completed = data_of(call, "assistant.completed")
    assert completed["content"] == streamed_text(call) == "I note it.\n\nNoted. Anything else?"
    assert data_of(call, "run.completed")["api_calls"] == 2
    assert completed["usage"] == {"input_tokens": 18, "output_tokens": 8, "total_tokens": 26}
    rows = book.messages(session)
    assert [row["role"] for row in rows] == ["user", "assistant", "tool", "tool", "assistant"]
    assert rows[-1]["content"] == "Noted. Anything else?"
    assert rows[-1]["id"] == completed["message_id"]
    again = chat(book, session, "What do I like?")
    book.after(5.0)
    assert names(again)[-1] == "done"
    sent = [message["role"] for message in model.seen[-1]["messages"]]
    assert sent == ["system", "user", "assistant", "tool", "tool", "assistant", "user"]
    book.secrets.add(MODEL_KEY)
    assert not book.leaks()


def test_model_server_refuses() -> None:
    book, _ = connected(refusal(401, f"bad key {MODEL_KEY}"), plain("Now it works."))
    session = book.session()
    call = chat(book, session, "Hi")
    book.after(5.0)
    assert names(call)[3:] == ["error", "done"]
    again = chat(book, session, "Hi?")
    book.after(5.0)
    assert streamed_text(again) == "Now it works."
    book.secrets.add(MODEL_KEY)
    assert not book.leaks()


def test_model_server_breaks_off() -> None:
    book, _ = connected(plain("one two three").dropped(3))
    session = book.session()
    call = chat(book, session, "Hi")
    book.after(5.0)
    assert names(call)[-2:] == ["error", "done"]
    assert book.messages(session)[-1]["content"] == streamed_text(call) == "one two "


def test_a_stop_drops_the_connection_to_the_model() -> None:
    book, _ = connected(plain("one two three").stuck(3))
    session = book.session()
    call = chat(book, session, "Hi")
    book.after(1.0)
    assert streamed_text(call) == "one two "
    run_id = data_of(call, "run.started")["run_id"]
    before = sum(isinstance(command, Abort) for command in book.commands)
    assert book.request("POST", f"/v1/runs/{run_id}/stop").status == 200
    assert sum(isinstance(command, Abort) for command in book.commands) > before
    assert data_of(call, "run.completed")["interrupted"] is True
    assert book.messages(session)[-1]["content"] == "one two "


def test_disconnected_client_polls_for_its_answer() -> None:
    book, _ = connected(plain("one two three").slow(1.0))
    session = book.session()
    call = chat(book, session, "Hi")
    book.after(2.5)
    call.vanish()
    assert [row["role"] for row in book.messages(session)] == ["user"]
    book.after(10.0)
    assert [row["content"] for row in book.messages(session)] == ["Hi", "one two three"]
