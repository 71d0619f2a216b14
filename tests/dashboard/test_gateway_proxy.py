import json
from base64 import b64encode

import pytest
from attrs import evolve

from svc_proto.api.service import LIMITS as API_LIMITS
from svc_proto.basics.errors import Refused
from svc_proto.dashboard import gateway_proxy
from svc_proto.engine.core import Engine
from svc_proto.engine.http_channel import HttpChannel
from svc_proto.engine.websocket import WebSocketConnection
from svc_proto.wire.events import BinaryMessage, TextMessage, WebSocketClosed
from tests.api.gateway_client import GatewayClient
from tests.dashboard import app_client
from tests.dashboard.app_client import AppHarness
from tests.support.http_harness import FIRST
from tests.support.playbook import PATIENT

CHUNK = 32 * 1024  # bytes of a phone that arrive at a time


def code_of(socket: GatewayClient) -> int | None:
    return next((event.code for event in socket.events if isinstance(event, WebSocketClosed)), None)


def test_a_phone_chats_and_comes_back() -> None:
    book = AppHarness()
    phone = book.sign_in()
    socket = phone.socket()
    session = socket.new_session(source="webui")
    socket.call("prompt.submit", session_id=session, text="/count 30")
    book.after(0.2)
    socket.vanish()
    again = phone.socket()
    assert again.call("session.activate", session_id=session)["running"] is True
    book.after(60.0)
    assert again.kinds()[-2:] == ["message.complete", "session.info"]
    rows = phone.request("GET", f"/api/sessions/{session}/messages?limit=500&order=latest").json["messages"]
    assert rows[1]["content"].endswith(" 30")
    again.close()
    book.after(1.0)
    assert not book.engine.revocables
    assert len(book.api.gateway.sessions[session].connections) == 0


@pytest.mark.parametrize("ticket", ["", "none"])
def test_no_socket_without_a_ticket(ticket: str) -> None:
    book = AppHarness()
    assert book.open_socket(ticket).result.status == 401


def test_a_ticket_opens_one_socket_when_the_api_server_is_up() -> None:
    book = AppHarness()
    ticket = book.sign_in().ticket()
    assert book.open_socket(ticket).is_open
    assert book.open_socket(ticket).result.status == 401
    book = AppHarness()
    phone = book.sign_in()
    api = book.servers.pop(8642)
    assert book.open_socket(phone.ticket()).result.status == 502
    book.http = lambda asked: (404, b"{}")
    assert book.open_socket(phone.ticket()).result.status == 502
    book.http = None
    book.servers[8642] = api
    assert phone.socket().is_open


def test_either_end_closes_the_other_even_at_once() -> None:
    book = AppHarness()
    phone = book.sign_in()
    socket = phone.socket()
    socket.send_events(BinaryMessage(FIRST, b"x"))
    assert code_of(socket) == 1003
    socket = phone.socket()
    upstream = next(iter(book.api.engine.revocables))
    book.within(lambda: upstream._socket.close(1012, "restarting"), book.servers[8642])  # type: ignore[attr-defined]  # of a connection
    assert code_of(socket) == 1012
    book = AppHarness()
    relay = gateway_proxy.SocketRelay(book.dashboard, "")
    relay.upstream.on_open(_Client())  # type: ignore[arg-type]  # of a test
    relay.upstream.on_text('{"early": 1}')
    relay.upstream.on_closed(1006, "")
    client = _Client()
    relay.on_open(client)  # type: ignore[arg-type]  # of a test
    assert client.heard == ['{"early": 1}', "closed 1001"]
    relay.on_writable()
    relay.on_closed(1000, "")
    relay.revoke(Refused(401, "unauthorized", "it is over"))
    relay.on_binary(b"")
    relay.upstream.on_closed(1000, "")
    relay.on_text("too late")
    relay.on_fragment("too late", True)
    relay.upstream.on_writable()
    assert len(client.heard) == 2
    for code, sent in ((1005, 1001), (1006, 1001), (1015, 1001), (1012, 1012)):
        relay.client = client  # type: ignore[assignment]  # of a test
        relay.upstream.on_closed(code, "")
        assert client.heard[-1] == f"closed {sent}"


def test_a_slow_side_pauses_the_reading_of_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    book = AppHarness()
    socket = book.sign_in().socket()
    relay = next(held for held in book.engine.revocables if isinstance(held, gateway_proxy.SocketRelay))
    with monkeypatch.context() as slow:
        slow.setattr(WebSocketConnection, "writable", False)
        number = socket.begin("session.list")
        assert number in socket.answers  # it is forwarded, but the next message is not read
        assert relay.client is not None
        paused_before = relay.client.is_read_paused
    book.within(relay.upstream.on_writable)
    assert (paused_before, relay.client.is_read_paused) == (True, False)
    with monkeypatch.context() as slow:
        slow.setattr(WebSocketConnection, "writable", False)
        book.within(lambda: relay.on_fragment("{", False))
    assert relay.client.is_read_paused
    book = AppHarness()
    phone = book.sign_in()
    socket = phone.socket()
    relay = next(held for held in book.engine.revocables if isinstance(held, gateway_proxy.SocketRelay))
    paused: list[bool] = []
    monkeypatch.setattr(WebSocketConnection, "set_read_paused", lambda self, holding: paused.append(holding))
    monkeypatch.setattr(WebSocketConnection, "writable", False)
    book.within(lambda: relay.upstream.on_text('{"id": "x"}'))
    book.within(relay.on_writable)
    assert paused == [True, False]
    book.within(lambda: relay.upstream.on_binary(b""))
    assert socket.is_open


def test_the_files_of_many_phones_take_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    size, most, whole = 2_000_000, 64 * 1024, gateway_proxy.WHOLE
    limits = evolve(PATIENT, large_input=most, large_inputs=API_LIMITS.large_inputs)
    monkeypatch.setattr(app_client, "PATIENT", limits)
    book = AppHarness()
    phone = book.sign_in()
    sockets = [phone.socket() for _ in range(6)]
    url = "data:;base64," + b64encode(b"a" * size).decode()
    unsent: dict[GatewayClient, bytes] = {}
    for socket in sockets:
        call = {"id": 99, "method": "file.attach", "params": {"session_id": socket.new_session(), "data_url": url}}
        socket.conn.send(TextMessage(FIRST, json.dumps(call)))
        unsent[socket] = socket.conn.data_to_send()
    forwarded = received = 0
    while any(unsent.values()):
        for socket, data in unsent.items():
            if data and not socket.held:
                unsent[socket] = data[CHUNK:]
                socket.say_bytes(data[:CHUNK])
        forwarded = max(forwarded, buffered(book.engine))
        received = max(received, buffered(book.api.engine))
    assert all(socket.answers[99]["result"]["size"] == size for socket in sockets)
    assert forwarded < len(sockets) * 2 * (whole + CHUNK)
    assert received < len(sockets) * 2 * (whole + CHUNK)  # the API server writes them to files


def buffered(engine: Engine) -> int:
    """Return the number of bytes that the HTTP channels of an engine have buffered."""
    return sum(channel.buffered_bytes for channel in engine._channels.values() if isinstance(channel, HttpChannel))


class _Client:
    """Fake of a WebSocket that records the texts to send and the codes of its closes."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def send_text(self, text: str) -> None:
        self.heard.append(text)

    def close(self, code: int, reason: str) -> None:
        self.heard.append(f"closed {code}")
