import pytest

from svc_proto.api.chat import store_requests
from svc_proto.api.chat.records import ChatPage, ChatSession
from svc_proto.commands import Query, StoreRequest
from svc_proto.facts import OperationId

CHAT = ChatSession(id="c", started_at=1.0, updated_at=1.0, last_active=1.0)


@pytest.mark.parametrize(
    ("request_", "fits", "does_not"),
    [
        (store_requests.CreateChat(session=CHAT), [True, False], [None, CHAT]),
        (store_requests.GetChat(id="c"), [CHAT, None], [True]),
        (store_requests.ListChats(limit=1), [ChatPage(sessions=(), total=0)], [(), None]),
        (store_requests.DeleteChat(id="c"), [True], [None]),
        (store_requests.ForkChat(source="c", session=CHAT, now=1.0), [CHAT, True, False], [None]),
        (store_requests.ListMessages(session_id="c"), [(), None], [[], CHAT]),
        (store_requests.BeginTurn(session_id="c", messages=(), history=1), [(), None], [[], True]),
    ],
)
def test_answers_are_checked(request_: StoreRequest[object], fits: list[object], does_not: list[object]) -> None:
    query = Query(OperationId(1), request_)
    assert all(query.accepts(answer) for answer in fits)
    assert not any(query.accepts(answer) for answer in does_not)
