"""Tests of slow clients: heads, bodies, WebSockets and handshakes that trickle; peers that vanish or do not read."""

from __future__ import annotations

import select
import socket
import ssl
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from svc_proto.wire.limits import Limits
from tests.loops.clients import PATIENCE
from tests.loops.conftest import open_world
from tests.loops.environment import Environment, bearer
from tests.loops.raw_http import PING, TEXT, RawSocket, frame
from tests.loops.test_hostile import UPGRADE

CROWD = 40
SHORT = 1.0  # s; limit of each client, and enough for the others on a busy machine
STEP = 0.05  # s between two bytes of one client
HEAD = b"GET /health HTTP/1.1\r\n"
FIELD = b"x-field: 0123456789\r\n"
HTTP2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + b"\x04" + bytes(5)  # the preface and empty SETTINGS
HEADERS = b"\0\x3e\x80\x01\x05\0\0\0\x01"  # head of a frame of 16,000 bytes
SETTINGS = b"\0\0\x2a\x04\0\0\0\0\0"  # of the relay
BODY = b"POST /pairing/register HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100000\r\n\r\n"
LIMITS = Limits(head_timeout=SHORT, body_timeout=SHORT, close_timeout=SHORT)


@pytest.fixture
def live(runtime: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Environment]:
    with open_world(runtime, tmp_path, request) as world:
        yield world


def hello() -> bytes:
    """Return the first bytes of a TLS handshake, from a client."""
    outgoing = ssl.MemoryBIO()
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        tls.do_handshake()
    return outgoing.read()


class Trickle:
    """Clients that send `start` at once and then `rest` byte by byte, again and again."""

    def __init__(self, port: int, start: bytes, rest: bytes) -> None:
        self._rest = rest
        self._said = 0
        self.heard: dict[socket.socket, bytes] = {}
        for _ in range(CROWD):
            sock = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
            self.heard[sock] = b""
            if start:
                sock.sendall(start)
        self.going = set(self.heard)

    def step(self) -> None:
        """Send one byte on each connection, and remove the connections that were closed."""
        at = self._said % len(self._rest)
        self._said += 1
        for sock in list(self.going):
            try:
                if select.select([sock], [], [], 0)[0]:
                    data = sock.recv(4096)
                    self.heard[sock] += data
                    if not data:
                        raise ConnectionResetError
                sock.send(self._rest[at : at + 1])
            except ConnectionError:
                self.going.discard(sock)
                with suppress(ConnectionError):  # an answer may have arrived meanwhile
                    self.heard[sock] += sock.recv(4096)
                sock.close()

    def listen(self) -> None:
        """Wait for data on a connection, at most until the next byte is due."""
        select.select(list(self.going), [], [], STEP)

    def close(self) -> None:
        for sock in self.heard:
            sock.close()


@pytest.mark.parametrize(
    ("start", "rest", "answer"),
    [
        pytest.param(HEAD, FIELD, b"HTTP/1.1 408", id="heads"),
        pytest.param(BODY, b"x", b"HTTP/1.1 408", id="bodies"),
        pytest.param(UPGRADE, frame(TEXT, bytes(100)), b"HTTP/1.1 101", id="sockets"),
        pytest.param(UPGRADE, frame(PING), b"HTTP/1.1 101", id="sockets that only ping"),
        pytest.param(HTTP2 + HEADERS, b"\0", SETTINGS, id="heads of HTTP/2"),
    ],
)
def test_trickling_clients_are_cut_and_others_served(
    live: Environment, monkeypatch: pytest.MonkeyPatch, start: bytes, rest: bytes, answer: bytes
) -> None:
    live.start_relay(limits=LIMITS)
    phone = live.phone()
    monkeypatch.setattr("svc_proto.relay.websocket.client_connection.AUTH_TIMEOUT", SHORT)
    caller = live.client()
    began = live.clock()
    crowd = Trickle(live.relay.port, start, rest)
    try:
        while crowd.going:
            assert live.clock() - began < PATIENCE, f"{len(crowd.going)} go on"
            crowd.step()
            assert caller.request("GET", "/ping", headers=bearer(phone.token)).status == 200
            crowd.listen()
    finally:
        crowd.close()
    assert live.clock() - began >= SHORT * 0.9, set(crowd.heard.values())
    assert all(heard.startswith(answer) for heard in crowd.heard.values())
    live.eventually(lambda: live.http("GET", "/health").json["clients"] == 1)


def test_tls_handshakes_that_trickle(live: Environment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runtimes.net.listener.HANDSHAKE_TIMEOUT", 2 * SHORT)
    monkeypatch.setattr("runtimes.net.listener.MAX_HANDSHAKES", CROWD // 2)
    live.start_relay(tls=True)
    caller = live.client(tls=True)
    assert caller.request("GET", "/health").status == 200  # its handshake is finished, so it is not displaced
    greeting = hello()
    assert len(greeting) > 100
    crowd = Trickle(live.relay.port, b"", greeting[:100])
    began = live.clock()
    served = 0
    try:
        while crowd.going:
            assert live.clock() - began < PATIENCE, f"{len(crowd.going)} go on"
            crowd.step()
            assert caller.request("GET", "/health").status == 200
            if served < 3:
                fresh = live.client(tls=True)
                assert fresh.request("GET", "/health").status == 200
                fresh.wire.close()
                served += 1
            crowd.listen()
    finally:
        crowd.close()
    assert served


def test_a_phone_that_is_gone_without_a_fin(live: Environment) -> None:
    """A phone that answers no ping is disconnected, its callers get an error, and it can sign in again."""
    live.start_relay(limits=Limits(ping_interval=SHORT, ping_timeout=SHORT))
    gone = RawSocket(live.connect())
    code = live.register()
    gone.send_envelope("system", "auth", {"pairing_code": code, "device_name": "Gone", "client_surface": "android"})
    token = gone.receive_message()["payload"]["session_token"]
    calls = [live.client().begin("GET", "/ping?device=Gone", headers=bearer(token)) for _ in range(5)]
    for call in calls:
        answer = call.finish()
        assert (answer.status, answer.code) == (502, "phone_disconnected")
    live.eventually(lambda: live.http("GET", "/health").json["clients"] == 0)
    back = live.websocket()
    assert back.sign_in(session_token=token)["type"] == "auth.ok"


def test_a_reader_that_stops_reading(live: Environment) -> None:
    """A connection is closed if its output waits too long for a peer that does not read."""
    live.start_relay(limits=Limits(write_timeout=SHORT))
    phone = live.fake_phone()
    result = {"text": "z" * 7_000_000}  # under the limit of a message, over what the kernel buffers for one connection
    with socket.socket() as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.connect(("127.0.0.1", live.relay.port))
        head = f"GET /screen HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {phone.token}\r\n\r\n"
        deaf.sendall(head.encode())
        command, began = phone.command(), live.clock()
        phone.respond(command["request_id"], result)
        broken = select.poll()
        broken.register(deaf, 0)  # only to observe a reset
        while not broken.poll(0):
            assert live.clock() - began < PATIENCE, "it is kept"
            phone.pong()
    assert live.clock() - began >= SHORT * 0.9
