"""Tests of connecting: by address and by name, refused, cancelled, from one address to the next."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from runtimes.host.host import Services
from runtimes.net import connector
from svc_proto.commands import Cancel, CloseWrite, Connect, Connected, Send
from svc_proto.facts import Address, ChannelId, Done, Failed, FailureKind, OperationId, Received
from tests.runtimes.scripted_core import TIMEOUT, RunningCore, read_exactly, running
from tests.runtimes.test_operations import refusal

OP = OperationId(1)
CH = ChannelId(1)


def entry(host: str, port: int) -> tuple[Any, ...]:
    return (socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, port))


@contextmanager
def server() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        sock.settimeout(TIMEOUT)
        yield sock


@contextmanager
def silent() -> Iterator[int]:
    """Yield a port that neither accepts nor refuses: its backlog is full."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        sock.listen(0)
        port = sock.getsockname()[1]
        fillers = [socket.socket() for _ in range(4)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.1", port))
        yield port
        for filler in fillers:
            filler.close()


def refused_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
    return port


def talk(live: RunningCore, listening: socket.socket) -> None:
    """Accept the connection of the core, send bytes both ways, and close it."""
    peer, _ = listening.accept()
    peer.settimeout(TIMEOUT)
    live.order(Send(CH, b"hello"))
    assert read_exactly(peer, 5) == b"hello"
    peer.sendall(b"and you")
    assert live.expect(Received) == Received(CH, b"and you")
    live.order(CloseWrite(CH))
    assert peer.recv(1) == b""
    peer.close()
    live.closed(CH)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_connect_and_talk(runtime: str, host: str) -> None:
    with server() as listening, running(runtime) as live:
        port = listening.getsockname()[1]
        assert live.done(Connect(OP, CH, host, port)) == Connected(Address("127.0.0.1", port))
        talk(live, listening)


def test_a_socket_of_this_host(runtime: str, tmp_path: Path) -> None:
    path = str(tmp_path / "socket")
    with socket.socket(socket.AF_UNIX) as listening, running(runtime) as live:
        listening.bind(path)
        assert refusal(live, Connect(OP, CH, path, 6379)) is FailureKind.UNREACHABLE  # no listener
        listening.listen()
        assert live.done(Connect(OP, CH, path, 6379)) == Connected(Address(path, 6379))
        talk(live, listening)
        assert refusal(live, Connect(OP, CH, f"{path}-none", 6379)) is FailureKind.NOT_FOUND


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_refused(runtime: str, host: str) -> None:
    with running(runtime) as live:
        assert refusal(live, Connect(OP, CH, host, refused_port())) is FailureKind.UNREACHABLE


def test_an_unknown_name_is_unreachable(runtime: str) -> None:
    def resolver(host: str, port: int) -> list[tuple[Any, ...]]:
        raise socket.gaierror(socket.EAI_NONAME, "no")

    with running(runtime, services=Services(resolver=lambda host, port: [])) as live:
        assert isinstance(live.run_operation(Connect(OP, CH, "none.example", 1)), Failed)
    with running(runtime, services=Services(resolver=resolver)) as live:
        assert refusal(live, Connect(OP, CH, "nowhere.example", 80)) is FailureKind.UNREACHABLE
        assert refusal(live, Connect(OperationId(3), ChannelId(5), "127.0.0.1", 99_999_999)) is FailureKind.INVALID
        assert refusal(live, Connect(OperationId(2), ChannelId(3), "::bad::", 80)) is FailureKind.UNREACHABLE


@pytest.mark.parametrize("first", ["refused", "silent"])
def test_the_next_address_is_tried(runtime: str, first: str) -> None:
    with server() as listening, silent() as deaf:
        port = listening.getsockname()[1]
        found = [
            (9999, socket.SOCK_STREAM, 6, "", ("?", 0)),  # a family that this host does not have
            entry("127.0.0.1", deaf if first == "silent" else refused_port()),
            entry("127.0.0.1", port),
        ]
        with running(runtime, services=Services(resolver=lambda host, port: found)) as live:
            assert live.done(Connect(OP, CH, "two.example", 1)) == Connected(Address("127.0.0.1", port))


def test_cancel_while_connecting(runtime: str) -> None:
    with silent() as deaf, running(runtime) as live:
        live.order(Connect(OP, CH, "127.0.0.1", deaf))
        live.order(Cancel(OP), Cancel(OP))
        assert refusal(live, OP) is FailureKind.CANCELLED


def test_cancel_of_a_handshake(runtime: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the time for another address ends the handshake, nor does it outlive its operation."""
    monkeypatch.setattr(connector, "ATTEMPT_DELAY", 0.01)
    with server() as listening:
        found = [entry("127.0.0.1", listening.getsockname()[1])] * 2
        with running(runtime, services=Services(resolver=lambda host, port: found)) as live:
            live.order(Connect(OP, CH, "two.example", 1, tls=True))
            peer, _ = listening.accept()
            peer.settimeout(TIMEOUT)
            assert peer.recv(100)  # the start of the handshake
            live.core.deadline = time.monotonic() + 0.05
            live.accept()[0].close()
            live.core.ticks.get(timeout=TIMEOUT)
            live.order(Cancel(OP))
            assert refusal(live, OP) is FailureKind.CANCELLED
            with peer, suppress(ConnectionError):
                while peer.recv(1000):
                    pass


def test_cancel_while_resolving(runtime: str) -> None:
    go = threading.Event()

    def resolver(host: str, port: int) -> list[tuple[Any, ...]]:
        go.wait(TIMEOUT)
        return [entry("127.0.0.1", 1)]

    with running(runtime, services=Services(resolver=resolver)) as live:
        live.order(Connect(OP, CH, "slow.example", 1))
        live.order(Cancel(OP))
        assert refusal(live, OP) is FailureKind.CANCELLED
        go.set()


def test_ipv6_when_there_is_any(runtime: str) -> None:
    try:
        listening = socket.create_server(("::1", 0), family=socket.AF_INET6)
    except OSError:
        pytest.skip("no IPv6 on this host")
    with listening, running(runtime) as live:
        port = listening.getsockname()[1]
        answer = live.run_operation(Connect(OP, CH, "::1", port))
        assert answer == Done(OP, Connected(Address("::1", port)))


def test_exit_while_connecting(runtime: str) -> None:
    with silent() as deaf, running(runtime) as live:
        live.order(Connect(OP, CH, "127.0.0.1", deaf))
        sock, _ = live.accept()
        sock.close()
