import json
from typing import Any

from svc_proto.agent import interface
from svc_proto.api.chat.records import Usage
from svc_proto.api.projections.completions import CompletionProjection, completion_usage, finish_reason
from svc_proto.api.projections.turn_events import TurnEnded, TurnStarted, TurnStreamEvent
from svc_proto.basics.brand import HERMES, SVC, Brand
from svc_proto.basics.moment import Moment
from svc_proto.wire.sse import EventStreamDecoder

NOW = Moment(1.0, 1_927_857_907.02)
HEAD = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_927_857_909, "model": "m"}
CALL = interface.ToolCall(id="call_7", name="terminal", args={}, preview="ls")


def projection(brand: Brand = SVC, *, usage: bool = False, progress: bool = False) -> CompletionProjection:
    return CompletionProjection(
        id="chatcmpl-1", created=1_927_857_909, model="m", brand=brand, usage=usage, progress=progress
    )


def chunks(event: TurnStreamEvent, *, usage: bool = False) -> list[dict[str, Any]]:
    text = projection(usage=usage).encode(event, NOW)
    found = EventStreamDecoder().receive_data(text.encode())
    if isinstance(event, TurnEnded):
        assert found.pop().data == "[DONE]"
    assert all(each.event == "message" for each in found)
    values = [json.loads(each.data) for each in found]
    if values and values[0].keys() == {"error"}:  # before the chunk that has it, too
        assert values.pop(0)["error"] == values[-1]["error"]
    for value in values:
        assert {name: value.pop(name) for name in HEAD} == HEAD
    return values


def choice(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def test_text() -> None:
    assert chunks(TurnStarted(title=None, user_id="u", user_text="Hi")) == [choice({"role": "assistant"})]
    assert chunks(interface.TextDelta('Hé"')) == [choice({"content": 'Hé"'})]
    assert chunks(interface.ReasoningDelta("hm")) == [choice({"reasoning_content": "hm"})]


def test_ends_of_a_completion() -> None:
    usage = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
    counted = Usage(input_tokens=1, output_tokens=2)
    assert completion_usage(counted) == usage
    assert chunks(TurnEnded(content="x", usage=counted)) == [choice({}, "stop")]
    assert chunks(TurnEnded(content="x", usage=counted, finish="length")) == [choice({}, "length")]
    ended, told = chunks(TurnEnded(content="x", usage=counted), usage=True)
    assert (ended, told) == ({**choice({}, "stop"), "usage": None}, {"choices": [], "usage": usage})
    assert chunks(interface.TextDelta("x"), usage=True) == [{**choice({"content": "x"}), "usage": None}]
    (failed,) = chunks(TurnEnded(content="x", error="gone", code="upstream_error"))
    assert failed["choices"][0]["finish_reason"] == "error"
    assert failed["error"] == {"message": "gone", "type": "agent_error"}
    (stopped,) = chunks(TurnEnded(content="x", finish="interrupted", interrupted=True))
    assert stopped["error"] == {"message": "the turn was interrupted", "type": "agent_error"}
    assert finish_reason(TurnEnded(content="x", finish="interrupted", interrupted=True)) == "error"


def test_calls_for_the_client() -> None:
    call = interface.ToolCall(id="call_7", name="add", args={}, arguments='{"a":1')
    fragment = {"index": 0, "id": "call_7", "type": "function", "function": {"name": "add", "arguments": '{"a":1'}}
    ended = TurnEnded(content="", finish="tool_calls", calls=(call, call), extra={"mood": "good", "thinking": "hm"})
    first, second, finish = chunks(ended)  # a client may read one call of a chunk only
    assert first == choice({"tool_calls": [fragment], "mood": "good"})
    assert second == choice({"tool_calls": [{**fragment, "index": 1}]})
    assert finish == choice({}, "tool_calls")


def test_tool_progress_bears_the_brand() -> None:
    for brand in (SVC, HERMES):
        one = projection(brand, progress=True)
        told = (interface.ToolCallStarted(CALL), interface.ToolCallFinished(call=CALL, output="x"))
        events = EventStreamDecoder().receive_data("".join(one.encode(event, NOW) for event in told).encode())
        assert [event.event for event in events] == [f"{brand.name}.tool.progress"] * 2
        running, completed = (json.loads(event.data) for event in events)
        assert running.pop("emoji")
        assert running == {"tool": "terminal", "label": "ls", "toolCallId": "call_7", "status": "running"}
        assert completed == {"tool": "terminal", "toolCallId": "call_7", "status": "completed"}


def test_omitted_events() -> None:
    one = projection(progress=True)
    hidden = interface.ToolCall(id="call_8", name="_thinking", args={})
    for event in (
        interface.ToolCallPending(CALL),
        interface.ToolCallStarted(hidden),
        interface.ToolCallFinished(call=hidden, output="x"),
        interface.ToolCallFinished(call=CALL, output="it never ran"),
    ):
        assert one.encode(event, NOW) == ""
    unnamed = interface.ToolCall(id="call_9", name="memory", args={})  # without a preview
    assert '"label":"memory"' in one.encode(interface.ToolCallStarted(unnamed), NOW)
