import json

from svc_proto.api.chat.store_requests import GetChat
from svc_proto.api.gateway.connection import MAX_CALLS
from svc_proto.schema.json_rpc import INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR
from svc_proto.wire.events import BinaryMessage, WebSocketClosed
from tests.api.gateway_client import GatewayClient, open_chat, open_gateway
from tests.api.harness import HOME
from tests.api.scripted_agent import TurnHarness
from tests.support.http_harness import FIRST


def closed(phone: GatewayClient) -> int | None:
    return next((event.code for event in phone.events if isinstance(event, WebSocketClosed)), None)


def test_valid_and_malformed_messages() -> None:
    phone = open_gateway(TurnHarness())
    lines = [json.dumps({"id": number, "method": "session.list"}) for number in (1, 2)]
    phone.text("\n\n".join(lines) + "\n")
    assert {*phone.answers} == {1, 2}
    phone.answers.clear()
    for text, code in (("{", PARSE_ERROR), ('{"id": 1}', INVALID_REQUEST)):
        phone.text(text)
        assert phone.answers.popitem()[1]["error"]["code"] == code
    assert phone.refusal("moon.walk")[0] == METHOD_NOT_FOUND
    phone.text('{"method": "moon.walk"}')  # a notification has no answer
    assert len(phone.answers) == 1
    phone.send_events(BinaryMessage(FIRST, b"x"))
    assert closed(phone) == 1003


def test_concurrent_calls_are_limited() -> None:
    book, phone, session = open_chat()
    book.hold = (GetChat,)
    for _ in range(MAX_CALLS):
        phone.begin("session.resume", session_id=session)
    assert phone.refusal("session.list")[1] == f"at most {MAX_CALLS} calls at a time"
    book.release()
    assert phone.call("session.list")["sessions"]


def test_a_replaced_key_closes_the_connection() -> None:
    book = TurnHarness(files={f"{HOME}/.env": "API_SERVER_KEY=sk-another-key-0001\n"})
    phone = open_gateway(book)
    assert book.request("POST", "/api/key/reload").status == 200
    assert closed(phone) == 1008
    assert not book.engine.revocables
