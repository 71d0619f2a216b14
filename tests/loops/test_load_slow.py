"""Tests of slow clients: TLS handshakes that trickle, and peers that do not read."""

from __future__ import annotations

import select
import socket
import ssl
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path

import pytest

from svc_proto.wire.limits import Limits
from tests.loops.clients import PATIENCE
from tests.loops.conftest import open_world
from tests.loops.environment import Environment

CROWD = 40
SHORT = 1.0  # s; limit of each client, and enough for the others on a busy machine
STEP = 0.05  # s between two bytes of one client


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
    """Clients that send bytes one by one, again and again."""

    def __init__(self, port: int, data: bytes) -> None:
        self._bytes = cycle(data)
        self._socks = [socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) for _ in range(CROWD)]
        self.going = set(self._socks)

    def step(self) -> None:
        """Send one byte on each connection, and remove the connections that were closed."""
        piece = bytes((next(self._bytes),))
        for sock in list(self.going):
            try:
                if select.select([sock], [], [], 0)[0] and not sock.recv(4096):
                    raise ConnectionResetError
                sock.send(piece)
            except ConnectionError:
                self.going.discard(sock)
                sock.close()

    def listen(self) -> None:
        """Wait for data on a connection, at most until the next byte is due."""
        select.select(list(self.going), [], [], STEP)

    def close(self) -> None:
        for sock in self._socks:
            sock.close()


def test_tls_handshakes_that_trickle(live: Environment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runtimes.net.listener.HANDSHAKE_TIMEOUT", 2 * SHORT)
    monkeypatch.setattr("runtimes.net.listener.MAX_HANDSHAKES", CROWD // 2)
    live.start_relay(tls=True)
    caller = live.client(tls=True)
    assert caller.request("GET", "/health").status == 200  # its handshake is finished, so it is not displaced
    greeting = hello()
    assert len(greeting) > 100
    crowd = Trickle(live.relay.port, greeting[:100])
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
