from attrs import evolve

from svc_proto.api.chat.records import ChatSession, Message, Usage
from svc_proto.api.chat.views import iso, message_view, session_answer, session_view
from svc_proto.basics.brand import HERMES, SVC

CHAT = ChatSession(id="s", started_at=1927857906.0, updated_at=1927858140.75, last_active=1927858140.25)
ROW = Message(id="m", session_id="s", role="user", content="Hi", timestamp=1927857906.5)


def test_times() -> None:
    assert iso(0) == "1970-01-01T00:00:00Z"
    assert iso(1927857906.999) == "2031-02-03T04:05:06Z"


def test_a_session() -> None:
    chat = evolve(CHAT, system_prompt="be secret")
    view = session_view(chat, SVC)
    assert view["created_at"] == iso(CHAT.started_at)
    assert view["updated_at"] == "2031-02-03T04:09:00Z"
    assert (view["started_at"], view["ended_at"], view["last_active"]) == (1927857906.0, None, 1927858140.25)
    assert view["object"] == "svc.session"
    assert session_view(CHAT, HERMES)["object"] == "hermes.session"
    assert view["has_system_prompt"] is True
    assert "secret" not in str(view)
    assert session_answer(chat, SVC) == {**view, "session": view}


def test_a_plain_message() -> None:
    row = {"id": "m", "session_id": "s", "role": "user", "content": "Hi"}
    assert message_view(ROW) == {**row, "created_at": iso(ROW.timestamp), "timestamp": 1927857906.5}


def test_a_whole_message() -> None:
    part = {"type": "text", "text": "look"}
    call = {"id": "c", "type": "function", "function": {"name": "ping", "arguments": "{}"}}
    view = message_view(
        evolve(
            ROW,
            role="assistant",
            content=(part,),
            run_id="run_1",
            tool_calls=(call,),
            finish_reason="stop",
            reasoning="hm",
            usage=Usage(input_tokens=150, output_tokens=12),
        )
    )
    assert view["content"] == [part]
    assert view["tool_calls"] == [call]
    assert view["usage"] == {"input_tokens": 150, "output_tokens": 12, "total_tokens": 162}
    assert (view["run_id"], view["finish_reason"], view["reasoning"]) == ("run_1", "stop", "hm")
    answer = message_view(evolve(ROW, role="tool", tool_call_id="c", tool_name="ping"))
    assert (answer["tool_call_id"], answer["tool_name"]) == ("c", "ping")
