import json
from typing import Any

from svc_proto.agent import interface
from svc_proto.api.chat.records import Usage
from svc_proto.api.projections.responses import ResponseBuilder, ResponseProjection
from svc_proto.api.projections.turn_events import TurnEnded, TurnStarted, TurnStreamEvent
from svc_proto.basics.moment import Moment
from svc_proto.wire.sse import EventStreamDecoder

NOW = Moment(1.0, 1_927_857_907.02)
CALL = interface.ToolCall(id="call_7", name="terminal", args={"a": 1}, arguments='{"a":1}')
BEGUN = TurnStarted(title=None, user_id="u", user_text="Hi")


def told(*story: TurnStreamEvent) -> list[dict[str, Any]]:
    projection = ResponseProjection(ResponseBuilder(id="resp_1", created=1_927_857_909, model="m"))
    text = "".join(projection.encode(event, NOW) for event in story)
    found = []
    for number, event in enumerate(EventStreamDecoder().receive_data(text.encode())):
        data = json.loads(event.data)
        assert (data["type"], data["sequence_number"]) == (event.event, number)
        found.append(data)
    return found


def kinds(events: list[dict[str, Any]]) -> list[str]:
    return [event["type"].removeprefix("response.") for event in events]


def test_a_plain_response() -> None:
    ended = TurnEnded(content="Hello", usage=Usage(input_tokens=1, output_tokens=2))
    events = told(BEGUN, interface.TextDelta("Hel"), interface.TextDelta("lo"), ended)
    assert kinds(events)[:3] == ["created", "output_item.added", "content_part.added"]
    text = ["output_text.delta", "output_text.delta", "output_text.done"]
    assert kinds(events)[3:] == [*text, "content_part.done", "output_item.done", "completed"]
    assert events[0]["response"]["status"] == "in_progress"
    item = events[1]["item"]
    assert (item["status"], item["content"]) == ("in_progress", [])
    place = {"item_id": item["id"], "output_index": 0, "content_index": 0}
    for event in events[2:7]:
        assert {name: event[name] for name in place} == place
    assert events[2]["part"] == {"type": "output_text", "text": "", "annotations": []}
    assert events[5]["text"] == "Hello"
    message = {"type": "message", "id": item["id"], "role": "assistant", "status": "completed"}
    assert events[6]["part"] == {"type": "output_text", "text": "Hello", "annotations": []}
    assert events[7]["item"] == {**message, "content": [events[6]["part"]]}
    response = {"id": "resp_1", "object": "response", "created_at": 1_927_857_909, "model": "m", "status": "completed"}
    usage = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
    assert events[8]["response"] == {**response, "output": [events[7]["item"]], "usage": usage}


def test_tools_between_two_messages() -> None:
    denied = interface.ToolCall(id="call_8", name="other", args={})
    events = told(
        BEGUN,
        interface.TextDelta("Look."),
        interface.ToolCallStarted(CALL),
        interface.ToolCallFinished(call=CALL, output="42"),
        interface.ToolCallFinished(call=denied, output="no", error="no"),  # without a start event
        interface.TextDelta("\n\n"),
        interface.TextDelta("Done."),
        interface.ModelCallStarted(),
        TurnEnded(content="Look.\n\nDone."),
    )
    output = events[-1]["response"]["output"]
    assert [item["type"] for item in output] == ["message", "mcp_call", "mcp_call", "message"]
    assert [output[0]["content"][0]["text"], output[3]["content"][0]["text"]] == ["Look.", "Done."]
    assert output[0]["id"] != output[3]["id"]
    assert (output[1]["call_id"], output[1]["name"], output[1]["arguments"]) == ("call_7", "terminal", '{"a":1}')
    results = [(item["status"], item.get("output"), item.get("error")) for item in output[1:3]]
    assert results == [("completed", "42", None), ("failed", None, "no")]
    added = [event for event in events if event["type"] == "response.output_item.added"]
    assert [event["output_index"] for event in added] == [0, 1, 2, 3]
    done = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    assert done == output
    calls = [kind.removeprefix("mcp_call") for kind in kinds(events) if "mcp_call" in kind]
    assert calls == [".in_progress", "_arguments.done", ".completed", ".in_progress", "_arguments.done", ".failed"]


def test_the_other_ends() -> None:
    failed = told(BEGUN, interface.TextDelta("x"), TurnEnded(content="x", error="gone", code="upstream_error"))[-1]
    assert failed["type"] == "response.failed"
    assert failed["response"]["error"] == {"code": "upstream_error", "message": "gone"}
    assert failed["response"]["status"] == "failed"
    for ended in (
        TurnEnded(content="", finish="length"),
        TurnEnded(content="", finish="interrupted", interrupted=True),
        TurnEnded(content="", finish="interrupted", interrupted=True, error="stopped", code="interrupted"),
    ):
        last = told(BEGUN, ended)[-1]
        assert (last["type"], last["response"]["status"]) == ("response.incomplete", "incomplete")


def test_interrupted_call() -> None:
    started = interface.ToolCallStarted(CALL)
    events = told(BEGUN, started, started, TurnEnded(content="", interrupted=True))
    (item,) = events[-1]["response"]["output"]
    assert (item["type"], item["status"]) == ("mcp_call", "incomplete")
    assert [event["item"] for event in events if event["type"] == "response.output_item.done"] == [item]


def test_reasoning_is_an_item() -> None:
    events = told(
        BEGUN,
        interface.ReasoningDelta("h"),
        interface.ReasoningDelta("m"),
        interface.TextDelta("I greet."),
        interface.TextRetracted(8),
        interface.ReasoningDelta("I greet."),
        interface.TextDelta("Hel"),
        interface.TextDelta("lo"),
        TurnEnded(content="Hello"),
    )
    summary = ["part.added", "text.delta", "text.delta", "text.done", "part.done"]
    assert kinds(events)[1:7] == ["output_item.added", *(f"reasoning_summary_{name}" for name in summary)]
    place = {"item_id": "rs_1_1", "output_index": 0, "summary_index": 0}
    assert all({name: event[name] for name in place} == place for event in events[2:7])
    output = events[-1]["response"]["output"]
    first = {"type": "reasoning", "id": "rs_1_1", "status": "completed"}
    assert output[0] == {**first, "summary": [{"type": "summary_text", "text": "hm"}]}
    assert [item["type"] for item in output] == ["reasoning", "message", "reasoning", "message"]
    assert "".join(part["text"] for item in output if item["type"] == "message" for part in item["content"]) == "Hello"
    assert [event["item"] for event in events if event["type"] == "response.output_item.done"] == output
    alone = told(BEGUN, interface.ReasoningDelta("hm"), TurnEnded(content="", error="no", code="empty_answer"))
    assert [item["type"] for item in alone[-1]["response"]["output"]] == ["reasoning"]


def test_calls_for_the_client() -> None:
    events = told(BEGUN, TurnEnded(content="", finish="tool_calls", calls=(CALL,)))
    arguments = ["function_call_arguments.delta", "function_call_arguments.done"]
    assert kinds(events) == ["created", "output_item.added", *arguments, "output_item.done", "completed"]
    assert (events[1]["item"]["arguments"], events[3]["arguments"]) == ("", '{"a":1}')
    (item,) = events[-1]["response"]["output"]
    assert item == events[4]["item"]
    assert (item["type"], item["call_id"]) == ("function_call", "call_7")
    assert (item["name"], item["arguments"]) == ("terminal", '{"a":1}')
