from svc_proto.api.chat.records import Message, Usage
from svc_proto.api.chat.views import message_view
from svc_proto.schema.api_types import MessageJson

ROW = Message(
    id="1",
    session_id="a",
    role="assistant",
    content="",
    timestamp=1.0,
    run_id="r",
    tool_calls=({"id": "c"},),
    tool_call_id="c",
    tool_name="t",
    finish_reason="stop",
    reasoning="so",
    usage=Usage(),
)


def test_a_full_message_has_every_member() -> None:
    assert sorted(message_view(ROW)) == sorted(MessageJson.__annotations__)
