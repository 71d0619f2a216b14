"""Tests of a relay on a custom loop that checks the contract, and of a violation that it detects."""

import json
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from examples import own_loop
from examples.checked import Checked
from examples.codecs import ask
from examples.own_loop import OwnLoop
from runtimes.sim.contract import ContractError
from svc_proto import Moment, Started
from svc_proto.engine import Engine
from svc_proto.relay import Relay, RelayConfig
from svc_proto.wire import write_envelope

MOST_LINES = 150  # as the documents state


@contextmanager
def serving() -> Iterator[tuple[str, int]]:
    """Run a relay with the pairing code ABC123 on the custom loop; yield its address, and stop it at the end."""
    core = Checked(Engine(Relay(RelayConfig(pairing_code="ABC123")), entropy=os.urandom))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        loop, over = OwnLoop(core, listener), threading.Event()

        def run() -> None:
            while loop.exit is None:
                loop.step()
                if over.is_set():
                    loop.stop()  # also while it is stopping, as by a second Ctrl-C

        thread = threading.Thread(target=run)
        thread.start()
        address: tuple[str, int] = listener.getsockname()
        yield address
        over.set()
        with socket.create_connection(address, 10.0):  # wakes the loop
            thread.join(10.0)
        assert loop.exit == 0
        assert not loop.connections


def test_the_example_is_short() -> None:
    assert len(Path(own_loop.__file__).read_text().splitlines()) <= MOST_LINES


def test_a_relay() -> None:
    with serving() as address, socket.create_connection(address, 10.0) as peer:
        for _ in range(2):  # on one connection
            peer.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert peer.recv(65536).startswith(b"HTTP/1.1 200 OK\r\n")
        peer.sendall(b"GET /ping HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        answer = b""
        while piece := peer.recv(65536):
            answer += piece
        assert answer.startswith(b"HTTP/1.1 401 Unauthorized\r\n")


def test_a_phone_signs_in() -> None:
    auth = write_envelope("system", "auth", "1", {"pairing_code": "ABC123", "device_name": "Mine"})
    with serving() as address, socket.create_connection(address, 10.0) as peer:
        (welcome,) = ask(peer, "/ws", auth)
    assert json.loads(welcome)["type"] == "auth.ok"


def test_the_contract_detects_a_repeated_fact() -> None:
    core = Checked(Engine(Relay(RelayConfig()), entropy=os.urandom))
    core.handle(Started(), Moment(0.0, 0.0))
    with pytest.raises(ContractError, match="comes once"):
        core.handle(Started(), Moment(0.0, 0.0))
