"""The API's types match the members that the API writes, for the large types."""

from __future__ import annotations

import pytest

from svc_proto.api.chat.records import ChatSession, Message, Usage
from svc_proto.api.chat.views import message_view, session_answer, session_view, usage_view
from svc_proto.api.openapi import types
from svc_proto.basics.brand import SVC
from svc_proto.schema.json_schema import SchemaComponents, inline_schema_of

CHAT = ChatSession(id="a", started_at=1.0, updated_at=1.0, last_active=1.0)
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


@pytest.mark.parametrize(
    ("kind", "written"),
    [
        (types.SessionJson, session_view(CHAT, SVC)),
        (types.SessionAnswerJson, session_answer(CHAT, SVC)),
        (types.MessageJson, message_view(ROW)),
        (types.UsageJson, usage_view(Usage())),
    ],
)
def test_types_have_exactly_the_written_members(kind: type, written: dict[str, object]) -> None:
    properties = inline_schema_of(kind, SchemaComponents())["properties"]
    assert isinstance(properties, dict)
    assert sorted(properties) == sorted(written)
