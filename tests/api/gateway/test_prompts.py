from typing import Any

import pytest

from svc_proto.agent.approval_memory import build_owner_question
from svc_proto.agent.interface import TextDelta
from svc_proto.api.chat.store_requests import DeleteChat, GetChat, ListMessages
from svc_proto.api.config import ApiConfig
from svc_proto.api.gateway import prompts, service
from svc_proto.api.gateway.live_session import QueuedPrompt
from svc_proto.api.gateway.prompts import MAX_QUEUED
from svc_proto.engine.flow import Flow, sleep
from svc_proto.engine.message import Response
from svc_proto.schema.json_rpc import INVALID_PARAMS
from tests.api.gateway.test_attachments import PNG
from tests.api.gateway_client import GatewayClient, open_chat, open_gateway
from tests.api.harness import HOME, ApiHarness
from tests.api.scripted_agent import TurnHarness, call_of

NEW_KEY = "sk-another-key-0001"
ASKING = call_of("ask_user", "call_q")


def chatted(*texts: str) -> tuple[TurnHarness, GatewayClient, str]:
    """Return a session in which the prompts `texts` were answered."""
    book, phone, session = open_chat()
    for text in texts:
        phone.call("prompt.submit", session_id=session, text=text)
        book.hand.respond(f"answer to {text}")
    return book, phone, session


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("  Hello\n world ", "Hello world"),
        ("word " * 20, "word " * 8 + "word…"),
        ("x" * 48, "x" * 48),
        ("x" * 49, "x" * 47 + "…"),
    ],
)
def test_the_first_message_gives_the_title(text: str, title: str) -> None:
    book, phone, session = chatted(text)
    assert phone.last("session.info")["title"] == title
    assert book.request("GET", f"/api/sessions/{session}").json["title"] == title


def test_a_failed_turn_reports_its_error_and_gives_no_title() -> None:
    book, phone, session = chatted()
    phone.call("prompt.submit", session_id=session, text="Hi")
    book.hand.finish("error", error="the model is down")
    complete = phone.last("message.complete")
    assert (complete["status"], complete["error"]) == ("error", "the model is down")
    assert phone.last("session.info")["title"] == ""
    phone.call("prompt.submit", session_id=session, text="Again")
    book.hand.finish("length")
    assert phone.last("message.complete")["status"] == "complete"
    assert "cut" in phone.last("message.complete")["warning"]


def test_a_full_queue_is_refused_with_a_code_that_clients_show() -> None:
    book, phone, session = chatted()
    phone.call("prompt.submit", session_id=session, text="one")
    for number in range(MAX_QUEUED):
        phone.call("prompt.submit", session_id=session, text=str(number), queued=True)
    phone.call("file.attach", session_id=session, data_url="data:;base64,YnV5IHRlYQ==", name="note.txt")
    assert phone.refusal("prompt.submit", session_id=session, text="more", queued=True)[0] == 4090
    assert phone.refusal("prompt.submit", session_id=session, text="x", truncate_before_user_ordinal=0)[0] == 4090
    assert phone.call("session.redirect", session_id=session, text="left")["status"] == "rejected"
    book.hand.finish()
    phone.call("prompt.submit", session_id=session, text="more", queued=True)
    for _ in range(MAX_QUEUED):
        book.hand.finish()
    assert "buy tea" in str(book.hand.turn.prompt)  # the refused prompt has left its file to the next


def test_a_repeated_prompt_is_accepted_once() -> None:
    book, phone, session = chatted()
    prompt = {"session_id": session, "text": "one", "message_id": "m1"}
    assert phone.call("prompt.submit", **prompt) == {"status": "streaming"}
    for _ in range(2):
        assert phone.call("prompt.submit", **prompt) == {"status": "streaming", "repeated": True}
        book.hand.finish()
    assert book.turns == 1


def test_a_server_without_a_key_takes_prompts() -> None:
    book, phone, session = open_chat("one", config=ApiConfig())
    assert phone.call("prompt.submit", session_id=session, text="two")["status"] == "queued"
    book.hand.finish()
    assert book.turns == 2


@pytest.mark.parametrize("is_queued", [False, True])
def test_a_prompt_that_could_not_start_is_accepted_again(is_queued: bool) -> None:
    book, phone, session = chatted()
    prompt = {"session_id": session, "text": "two", "message_id": "m2"}
    if is_queued:
        phone.call("prompt.submit", session_id=session, text="one", message_id="m1")
        assert phone.call("prompt.submit", **prompt) == {"status": "queued", "queued": True}
        assert phone.call("prompt.submit", **prompt) == {"status": "streaming", "repeated": True}
        book.refuse = (GetChat,)
        book.hand.finish()
        assert phone.last("message.complete")["status"] == "error"
    else:
        book.refuse = (GetChat,)
        assert phone.refusal("prompt.submit", **prompt)[0] == 5008
    book.refuse = ()
    assert phone.call("session.activate", session_id=session)["accepted"] == ["m1"] * is_queued
    assert phone.call("prompt.submit", **prompt) == {"status": "streaming"}
    assert (book.turns, book.hand.turn.prompt) == (1 + is_queued, "two")


def test_an_interrupt_stops_the_present_turn_only() -> None:
    book, phone, session = chatted()
    assert phone.call("session.interrupt", session_id=session) == {"status": "interrupted"}
    phone.call("prompt.submit", session_id=session, text="one")
    book.hand.emit(TextDelta("par"))
    phone.call("prompt.submit", session_id=session, text="two", queued=True)
    phone.call("session.interrupt", session_id=session)
    assert phone.last("message.complete") | {"usage": None} == {"text": "par", "status": "interrupted", "usage": None}
    assert book.hand.turn.prompt == "two"
    assert phone.last("session.info")["running"] is True


def test_a_steering_text_is_the_next_prompt() -> None:
    book, phone, session = chatted()
    assert phone.call("session.redirect", session_id=session, text="x")["status"] == "rejected"
    phone.call("prompt.submit", session_id=session, text="one")
    phone.call("prompt.submit", session_id=session, text="two", queued=True)
    assert phone.call("session.redirect", session_id=session, text=" ")["status"] == "rejected"
    assert phone.call("session.steer", session_id=session, text="left")["status"] == "queued"
    book.hand.finish()
    assert book.hand.turn.prompt == "left"


@pytest.mark.parametrize(
    "place",
    [
        {"truncate_before_user_ordinal": 1},
        {"truncate_before_row_id": 3},
        {"truncate_before_user_ordinal": 1, "truncate_before_row_id": 3, "confirm_truncate": True},
    ],
)
def test_a_chat_begins_again_from_a_message(place: dict[str, object]) -> None:
    book, phone, session = chatted("one", "two", "three")
    answer = phone.call("prompt.submit", session_id=session, text="TWO", **place)
    assert answer["survivor_user_row_ids"] == [1]
    book.hand.finish()
    texts = [row["content"] for row in book.messages(session)]
    assert texts[:3] == ["one", "answer to one", "TWO"]
    assert [row["row_id"] for row in book.messages(session)][:3] == [1, 2, 3]
    assert book.request("GET", f"/api/sessions/{session}").json["message_count"] == len(texts)


@pytest.mark.parametrize(
    "place",
    [
        {"truncate_before_user_ordinal": 2},
        {"truncate_before_row_id": 2},
        {"truncate_before_row_id": "x"},
        {"truncate_before_user_ordinal": 0, "truncate_before_row_id": 3},
    ],
)
def test_a_place_that_does_not_exist_changes_nothing(place: dict[str, object]) -> None:
    book, phone, session = chatted("one", "two")
    assert phone.refusal("prompt.submit", session_id=session, text="x", **place)[0] == 4004
    assert len(book.messages(session)) == 4
    assert phone.call("prompt.submit", session_id=session, text="go on")["status"] == "streaming"


@pytest.mark.parametrize(
    ("held", "place"), [(GetChat, {}), (ListMessages, {"truncate_before_user_ordinal": 0})], ids=["start", "truncation"]
)
def test_a_prompt_that_waited_for_a_failed_start_begins(held: type, place: dict[str, object]) -> None:
    book, phone, session = chatted("one")
    other = open_gateway(book)
    other.call("session.activate", session_id=session)
    book.hold = (held,)
    failed = phone.begin("prompt.submit", session_id=session, text="two", **place)
    assert other.call("prompt.submit", session_id=session, text="three")["queued"] is True
    book.hold = ()
    book.release(fail=True)
    assert phone.answers[failed]["error"]["code"] == 5008
    assert book.hand.turn.prompt == "three"
    book.hand.finish()
    other.take()
    book.hold = (held,)
    phone.begin("prompt.submit", session_id=session, text="four", **place)
    book.hold = ()
    book.release(fail=True)
    assert other.kinds()[-1] == "session.info"  # no prompt waits: all clients get the state
    assert other.last("session.info")["running"] is False


def test_prompts_of_a_deleted_session_fail_visibly() -> None:
    book, phone, session = chatted()
    for text in ("one", "two", "three"):
        phone.call("prompt.submit", session_id=session, text=text)
    book.store.execute(DeleteChat(id=session))
    phone.take()
    book.hand.finish()
    failed = ["message.start", "message.complete", "session.info"]
    assert phone.kinds() == ["message.complete", "session.info", *failed * 2]
    assert phone.last("session.info") == {"running": False}
    assert phone.last("message.complete")["error"] == "no such session"


def test_a_queued_prompt_is_not_started_while_the_server_stops() -> None:
    book, phone, session = chatted()
    phone.call("prompt.submit", session_id=session, text="one")
    phone.call("prompt.submit", session_id=session, text="two", queued=True)
    book.stop(60.0)
    book.after(1.0)
    assert book.turns == 1


def with_new_key() -> tuple[TurnHarness, GatewayClient, str]:
    """Open a session at a server whose file has another key than the server, which takes it on request."""
    book = TurnHarness(files={f"{HOME}/.env": f"API_SERVER_KEY={NEW_KEY}\n"})
    phone = open_gateway(book)
    return book, phone, phone.new_session()


def test_prompts_that_wait_end_with_the_key_of_their_client() -> None:
    book, phone, session = with_new_key()
    phone.call("prompt.submit", session_id=session, text="one")
    phone.call("image.attach_bytes", session_id=session, content_base64=PNG)
    phone.call("prompt.submit", session_id=session, text="two", message_id="m2")
    phone.call("session.redirect", session_id=session, text="three")
    phone.close()
    assert book.request("POST", "/api/key/reload").status == 200
    book.after(1.0)
    assert [hand.cancelled for hand in book.scripted.hands] == [True]
    other = open_gateway(book, key=NEW_KEY)
    state = other.call("session.activate", session_id=session)
    assert (state["running"], state["queued"], state["accepted"]) == (False, None, [])
    assert not [path for path in book.files if "attachments" in path]
    assert not [each for each in book.engine.revocables if isinstance(each, QueuedPrompt)]
    other.call("prompt.submit", session_id=session, text="four")
    assert book.hand.turn.prompt == "four"


@pytest.mark.parametrize("waits_for", ["store", "lease", "truncation"])
def test_a_prompt_whose_key_is_replaced_before_its_start(waits_for: str, monkeypatch: pytest.MonkeyPatch) -> None:
    book, phone, session = with_new_key()

    def acquire(*args: object) -> Flow[None]:
        yield from sleep(book.engine, 5.0)

    phone.call("prompt.submit", session_id=session, text="zero")
    book.hand.respond("0")
    if waits_for != "store":
        monkeypatch.setattr(book.api.ownership, "acquire", acquire)
    else:
        book.hold = (GetChat,)
    cut = {"truncate_before_user_ordinal": 0} if waits_for == "truncation" else {}
    phone.begin("prompt.submit", session_id=session, text="one", **cut)
    assert book.request("POST", "/api/key/reload").status == 200
    book.hold = ()
    book.release()
    book.after(10.0)
    assert (book.turns, book.api.runs.outcomes["cancelled"]) == (1, int(waits_for == "lease"))
    rows: Any = book.store.execute(ListMessages(session_id=session))
    assert [row.role for row in rows] == ["user", "assistant", *(["user"] if waits_for == "lease" else [])]
    assert not [each for each in book.engine.revocables if isinstance(each, QueuedPrompt)]


def test_the_personality_of_the_session_is_part_of_the_prompt() -> None:
    config = "agent: {system_prompt: Be kind., personalities: {pirate: Arr!}}\ndisplay: {personality: pirate}\n"
    book = TurnHarness(files={f"{TurnHarness().config.home}/config.yaml": config})
    phone = open_gateway(book)
    session = phone.new_session()
    phone.call("prompt.submit", session_id=session, text="Hi")
    assert book.hand.turn.system == "Be kind.\n\nArr!"
    book.hand.finish()
    phone.call("config.set", session_id=session, key="personality", value="none")
    phone.call("prompt.submit", session_id=session, text="Hi")
    assert book.hand.turn.system == "Be kind."
    own = book.session(system_prompt="Be brief.")
    phone.call("prompt.submit", session_id=own, text="Hi")
    assert book.hand.turn.system == "Be brief.\n\nArr!"


def test_a_session_of_another_node_is_refused_with_a_code_that_clients_show(monkeypatch: pytest.MonkeyPatch) -> None:
    book, phone, session = chatted()

    def acquire(*args: object) -> Flow[Response]:
        yield from ()
        return Response(307)

    monkeypatch.setattr(book.api.ownership, "acquire", acquire)
    assert phone.refusal("prompt.submit", session_id=session, text="Hi")[0] == 5071


def test_a_prompt_and_the_texts_that_wait_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    _, phone, session = chatted()
    monkeypatch.setattr(prompts, "MAX_TEXT", 3)
    for method in ("prompt.submit", "session.redirect"):
        assert phone.refusal(method, session_id=session, text="long")[0] == INVALID_PARAMS
    own = {"session_id": session}
    phone.call("prompt.submit", text="Hi!", **own)
    monkeypatch.undo()
    monkeypatch.setattr(service, "MAX_WAITING_TEXT", 4)
    assert phone.call("prompt.submit", text="four", **own)["queued"] is True
    assert phone.refusal("prompt.submit", text="x", **own)[0] == 4090
    assert phone.call("session.redirect", text="x", **own) == {"status": "rejected"}
    assert phone.refusal("file.attach", data_url="data:;base64,QUI=", **own)[0] == 4002


def begin() -> tuple[TurnHarness, GatewayClient, str, list[str]]:
    """Start a turn whose agent asks a question; return harness, client, session and the list for the answer."""
    book, phone, session = open_chat("Hi")
    question = build_owner_question("Take the 9:12?", ASKING)
    return book, phone, session, book.spawn(book.hand.host.request_approval(question))


def respond(phone: GatewayClient, answer: str) -> dict[str, Any]:
    return phone.call("clarify.respond", request_id=phone.last("clarify.request")["request_id"], answer=answer)


def test_an_approval_is_answered_by_its_session() -> None:
    book = ApiHarness()
    phone = open_gateway(book)
    session = phone.new_session()
    assert phone.call("approval.respond", session_id=session, choice="once")["status"] == "expired"
    for kind in ("clarify", "sudo", "secret", "terminal.read"):
        assert phone.call(f"{kind}.respond", request_id="r", answer="x")["status"] == "expired"
    assert phone.refusal("approval.respond", session_id=session, choice="perhaps")[0] == INVALID_PARAMS
    phone.call("prompt.submit", session_id=session, text="/approve")
    book.after(1.0)
    assert phone.last("approval.request")["choices"]
    assert phone.call("approval.respond", session_id=session, choice="deny", all=True) == {"resolved": 1}
    book.after(10.0)
    kinds = phone.kinds()
    assert kinds.index("approval.expire") < kinds.index("tool.complete") < kinds.index("message.complete")
    assert phone.last("approval.expire")["answered"] is True


@pytest.mark.parametrize(
    ("typed", "answer"),
    [("Yes", "once"), ("no", "deny"), (" ", "deny"), (" At 10:12 ", "At 10:12"), ("x" * 10_001, "x" * 10_000)],
)
def test_a_question_of_the_agent_takes_a_choice_or_words(typed: str, answer: str) -> None:
    book, phone, _, answers = begin()
    shown = phone.last("clarify.request")
    assert (shown["question"], shown["choices"], shown["timeout_seconds"]) == ("Take the 9:12?", ["Yes", "No"], 60)
    assert respond(phone, typed) == {"status": "ok"}
    assert answers == [answer]
    assert phone.last("clarify.expire") == {"request_id": shown["request_id"], "call_id": "call_q", "answered": True}
    assert respond(phone, typed) == {"status": "expired"}
    book.hand.finish()
    assert phone.kinds()[-3:] == ["clarify.expire", "message.complete", "session.info"]


def test_an_answer_to_an_approval_is_none_to_a_question() -> None:
    book, phone, session, answers = begin()
    approvals = book.hand.request_approval(call_of(identity="c2"))
    for words in ({}, {"call_id": "call_q"}):
        assert phone.call("approval.respond", session_id=session, choice="once", **words)["resolved"] == 0
    assert respond(phone, "Yes")["status"] == "ok"
    assert phone.kinds()[-2:] == ["clarify.expire", "approval.request"]
    assert (answers, approvals) == (["once"], [])
    assert phone.call("clarify.respond", request_id=f"{book.hand.turn.run_id} c2", answer="Yes")["status"] == "expired"


def test_a_question_is_shown_again_and_expires_before_the_end() -> None:
    book, phone, session, answers = begin()
    phone.vanish()
    again = open_gateway(book)
    again.call("session.activate", session_id=session)
    assert again.last("clarify.request")["question"] == "Take the 9:12?"
    again.take()
    again.call("session.interrupt", session_id=session)
    assert again.kinds() == ["clarify.expire", "message.complete", "session.info"]
    assert answers == []


@pytest.mark.parametrize(("choice", "recorded"), [("always", ["rm x"]), ("session", ["rm x"]), ("once", [])])
def test_an_approval_for_more_than_one_call_is_recorded(choice: str, recorded: list[str]) -> None:
    book, phone, session = open_chat("Hi")
    answers = book.hand.request_approval(choices=("once", "session", "always", "deny"))
    assert phone.call("approval.respond", session_id=session, choice=choice) == {"resolved": 1}
    assert answers == [choice]
    book.after(1.0)
    rows = book.request("GET", "/api/changes").json["changes"]
    assert [row["after"] for row in rows] == recorded
    assert {(row["kind"], row["principal"]) for row in rows} <= {("approval", "owner")}


def test_each_approval_of_one_answer_is_recorded() -> None:
    book, phone, session = open_chat("Hi")
    for path in ("x", "y"):
        book.hand.request_approval(call_of(identity=path), pattern=f"rm {path}", choices=("once", "always", "deny"))
    assert phone.call("approval.respond", session_id=session, choice="always", all=True) == {"resolved": 2}
    book.after(1.0)
    assert [row["after"] for row in book.request("GET", "/api/changes").json["changes"]] == ["rm x", "rm y"]
