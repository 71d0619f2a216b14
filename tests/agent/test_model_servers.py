"""Model servers as they are: each server of the table with each ability, in the shapes that it is known for."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from svc_proto.agent.interface import TurnOutcome
from svc_proto.service_clients.model_probe import probe_context
from tests.agent.harness import KEY, ROUTE, AgentHarness
from tests.support.model_servers import ABILITIES, PAGE, SERVERS, page_with_table
from tests.support.servers.model_server import DONE, ModelAnswer, Scripted, chunk, event

Server = Mapping[str, Any]
COUNTS = {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}
PICTURE = ({"type": "text", "text": "What is it?"}, {"type": "image_url", "image_url": {"url": "data:,x"}})
SIGNATURE = {"google": {"thought_signature": "s"}}
LONGEST_REQUEST = 30_000  # characters of messages; a longer request overflows
NOTES = ({"action": "add", "content": "Tea"}, {"action": "add", "content": "Milk"})


# --- answers in the server's shape --------------------------------------------------------------------------------


def answer_of(server: Server, *deltas: dict[str, object], finish: str = "stop") -> ModelAnswer:
    """Return a stream of deltas as the server sends it; calls without an index come with the finish reason."""
    usage = server["usage"]
    events = [f"{line}\n\n".encode() for line in server.get("prelude", ())]
    at_end: dict[str, object] = {}
    if server["calls"] == "no_index" and "tool_calls" in deltas[-1]:
        deltas, at_end = deltas[:-1], deltas[-1]
    chunks = [json.loads(chunk(delta)[6:]) for delta in deltas] + [json.loads(chunk(at_end, finish)[6:])]
    for place, each in enumerate(chunks):
        is_last = place == len(chunks) - 1
        if usage == "every" or (usage == "finish" and is_last):
            each["usage"] = {**COUNTS, "completion_tokens": 2 if is_last else 1}
        elif usage == "x_groq" and is_last:
            each["x_groq"] = {"id": "req_1", "usage": COUNTS}
        events.append(event(each))
    if usage == "last":
        events.append(event({"id": "c-1", "object": "chat.completion.chunk", "choices": [], "usage": COUNTS}))
    return ModelAnswer(events=(*events, DONE))


def hello(server: Server) -> ModelAnswer:
    return answer_of(server, {"role": "assistant", "content": ""}, {"content": "Hello "}, {"content": "there"})


def calls_of(server: Server, *notes: Mapping[str, str], before: tuple[dict[str, object], ...] = ()) -> ModelAnswer:
    """Return calls of the tool `memory` as the server sends them."""
    deltas: list[dict[str, object]] = []
    whole = []
    for place, note in enumerate(notes):
        arguments = json.dumps({**note, "target": "user"})
        call = {"index": place, "id": f"callAbc0{place}", "type": "function"}
        function = {"name": "memory", "arguments": arguments}
        if server.get("reasoning") == "call":
            call["extra_content"] = SIGNATURE
        match server["calls"]:
            case "fragments":
                deltas.append({"tool_calls": [{**call, "function": {"name": "memory", "arguments": ""}}]})
                pieces = [{"index": place, "function": {"arguments": each}} for each in (arguments[:9], arguments[9:])]
                deltas += [{"tool_calls": [piece]} for piece in pieces]
            case "whole":
                deltas.append({"tool_calls": [{**call, "function": function}]})
            case "same_index":
                deltas.append({"tool_calls": [{**call, "index": 0, "id": "", "function": function}]})
            case _:
                whole.append({"id": call["id"], "function": function})
    if whole:
        deltas.append({"tool_calls": whole})
    return answer_of(server, *before, *deltas, finish="tool_calls")


def refused(report: list[Any], headers: tuple[tuple[bytes, bytes], ...] = ()) -> ModelAnswer:
    status, body = report[:2]
    if status == 200:
        return ModelAnswer(events=(body.encode(),))
    return ModelAnswer(status=status, headers=headers, body=body.encode())


def unless(server: Server, member: str, applies: Callable[[dict[str, Any]], bool], answer: ModelAnswer) -> Scripted:
    """Return a scripted model: it refuses a request for which `applies` is true if this server refuses `member`.

    It gives `answer` to all other requests.
    """

    def respond(request: dict[str, Any]) -> ModelAnswer:
        return refused(server[member]) if member in server and applies(request) else answer

    return respond


# --- abilities ----------------------------------------------------------------------------------------------------


def run(server: Server, *answers: Scripted, prompt: Any = "Hi", **turn: Any) -> AgentHarness:
    world = AgentHarness(model=answers)
    assert world.answer(prompt, **turn) == TurnOutcome()
    assert world.host.text == "Hello there"
    return world


def check_stream(server: Server) -> None:
    run(server, hello(server))


def check_tools(server: Server) -> None:
    world = run(server, calls_of(server, NOTES[0]), hello(server))
    call, result = world.model.seen[1]["messages"][-2:]
    assert result["tool_call_id"] == call["tool_calls"][0]["id"]
    assert [finished.error for finished in world.host.finished] == [None]


def check_parallel(server: Server) -> None:
    world = run(server, calls_of(server, *NOTES), hello(server))
    calls = [finished.call for finished in world.host.finished]
    assert [call.args["content"] for call in calls] == ["Tea", "Milk"]
    assert len({call.id for call in calls} - {""}) == 2


def check_tools_refused(server: Server) -> None:
    script = unless(server, "tools", lambda request: "tools" in request, hello(server))
    world = run(server, script, script)
    assert len(world.model.seen) == 1 + ("tools" in server)
    assert ("takes no tools" in world.host.reasoning) is ("tools" in server)


def check_reasoning(server: Server) -> None:
    kind = server.get("reasoning")
    part = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}
    delta: dict[str, object] = {str(kind): "Hm."}
    if kind in ("tags", "parts"):
        delta = {"content": "<think>Hm.</think>" if kind == "tags" else [part]}
    before = (delta,) if kind not in (None, "call") else ()

    def has_reasoning(request: dict[str, Any]) -> bool:
        row = next(row for row in request["messages"] if row["role"] == "assistant")
        return row["tool_calls"][0].get("extra_content") == SIGNATURE if kind == "call" else kind in row

    first = calls_of(server, NOTES[0], before=before)
    required = unless(server, "reasoning_required", lambda request: not has_reasoning(request), hello(server))
    forbidden = unless(server, "reasoning_refused", has_reasoning, hello(server))
    world = run(server, first, *[forbidden if "reasoning_refused" in server else required] * 2)
    assert world.host.reasoning == ("Hm." if before else "")
    goes_back = kind not in (None, "tags", "parts") and "reasoning_refused" not in server
    assert has_reasoning(world.model.seen[-1]) is goes_back
    assert len(world.model.seen) == 2 + ("reasoning_refused" in server)


def check_usage(server: Server) -> None:
    script = unless(server, "stream_options", lambda request: "stream_options" in request, hello(server))
    world = run(server, script, script)
    assert world.host.usage == [(7, 2)]


def check_system(server: Server) -> None:
    script = unless(server, "system", lambda request: request["messages"][0]["role"] == "system", hello(server))
    world = run(server, script, script, system="Be kind.")
    first = world.model.seen[-1]["messages"][0]
    assert first["role"] == ("user" if "system" in server else "system")
    assert "Be kind." in first["content"]


def check_images(server: Server) -> None:
    script = unless(server, "images", lambda request: "image_url" in json.dumps(request["messages"]), hello(server))
    world = run(server, script, script, prompt=PICTURE)
    assert ("takes no pictures" in world.host.reasoning) is ("images" in server)


def check_overflow(server: Server) -> None:
    roles = ("user", "assistant")
    history = [{"role": roles[turn % 2], "content": f"{turn} " + "some words " * 90} for turn in range(40)]

    def is_too_long(request: dict[str, Any]) -> bool:
        return len(json.dumps(request["messages"])) > LONGEST_REQUEST

    script = unless(server, "overflow", is_too_long, hello(server))
    world = run(server, *[script] * 4, history=tuple(history))
    assert len(world.model.seen) > 1
    assert "longer than the model's context" in world.host.reasoning
    assert world.model.seen[-1]["messages"][-1]["content"] == "Hi"


def check_rate(server: Server) -> None:
    form, delay = server["rate"][2:] or ("", 0.0)
    is_header = form in ("retry-after", "retry-after-ms")
    headers = ((form.encode(), f"{delay:g}".encode()),) if is_header else ()
    world = run(server, refused(server["rate"], headers), hello(server))
    waited = next(fields["seconds"] for name, fields in world.logs if name == "model request retried")
    if delay:
        assert waited == pytest.approx(delay / (1000 if form == "retry-after-ms" else 1), abs=0.01)
        assert "the next attempt is in" in world.host.reasoning


def check_models(server: Server) -> None:
    pages = {path: json.loads(page) for path, page in server.get("pages", {}).items()}
    world = AgentHarness(pages={"/v1/models": json.loads(server["models"]), **pages})
    found = world.run(lambda parts, engine: probe_context(engine, ROUTE.base_url, ROUTE.model, KEY))
    assert found == server.get("context")


def check_error(server: Server) -> None:
    world = AgentHarness(model=[refused(server["error"])] * 4)
    outcome = world.answer("Hi")
    assert outcome.finish == "error"
    assert str(outcome.error).endswith(f": {server['error'][0]}, {server['error'][2]}")


CHECKS: Mapping[str, Callable[[Server], None]] = {name: globals()[f"check_{name}"] for name in ABILITIES}


@pytest.mark.parametrize("ability", ABILITIES)
@pytest.mark.parametrize("server", SERVERS, ids=[server["name"] for server in SERVERS])
def test_cell(server: Server, ability: str) -> None:
    if ability not in server.get("fails", ()):
        CHECKS[ability](server)
        return
    with pytest.raises(AssertionError):  # a cell that works again leaves `fails`
        CHECKS[ability](server)


def test_page_has_the_table() -> None:
    assert page_with_table(PAGE.read_text()) == PAGE.read_text(), "python -m tests.support.model_servers"
    assert (len(SERVERS), len(ABILITIES)) == (15, 12)
