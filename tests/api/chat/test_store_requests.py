import pytest

from svc_proto.api.chat.records import ChatPage, ChatSession
from svc_proto.api.chat.store_requests import (
    BeginTurn,
    CreateChat,
    DeleteChat,
    ForkChat,
    GetChat,
    ListChats,
    ListMessages,
)
from svc_proto.commands import Query, StoreRequest
from svc_proto.facts import OperationId

CHAT = ChatSession(id="c", started_at=1.0, updated_at=1.0, last_active=1.0)


@pytest.mark.parametrize(
    ("request_", "fits", "does_not"),
    [
        (CreateChat(session=CHAT), [True, False], [None, CHAT]),
        (GetChat(id="c"), [CHAT, None], [True]),
        (ListChats(limit=1), [ChatPage(sessions=(), total=0)], [(), None]),
        (DeleteChat(id="c"), [True], [None]),
        (ForkChat(source="c", session=CHAT, now=1.0), [CHAT, True, False], [None]),
        (ListMessages(session_id="c"), [(), None], [[], CHAT]),
        (BeginTurn(session_id="c", messages=(), history=1), [(), None], [[], True]),
    ],
)
def test_answers_are_checked(request_: StoreRequest[object], fits: list[object], does_not: list[object]) -> None:
    query = Query(OperationId(1), request_)
    assert all(query.accepts(answer) for answer in fits)
    assert not any(query.accepts(answer) for answer in does_not)
