import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from runtimes.net.listener import bind
from runtimes.net.reuseport_bpf import attach_source_steering

SOURCES = [f"127.0.0.{n}" for n in range(1, 33)]
only_linux = pytest.mark.skipif(sys.platform != "linux", reason="the program is the Linux kernel's")

only_dual = pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="this host has no IPv6")


@pytest.fixture
def opened() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def listeners(opened: ExitStack, n: int, host: str = "127.0.0.1") -> list[socket.socket]:
    """Return `n` listeners on one port, which a further socket that does not listen reserves."""
    held = bind(host, 0, shared=True, listen=False)
    opened.enter_context(held.sock)
    ports = [bind(host, held.address.port, shared=True).sock for _ in range(n)]
    for listener in ports:
        opened.enter_context(listener)
    return ports


def reached(ports: list[socket.socket], source: str) -> int:
    """Return the index of the listener that a connection from this source address reaches."""
    family = socket.AF_INET6 if ":" in source else socket.AF_INET
    with socket.socket(family) as caller:
        caller.bind((source, 0))
        caller.connect(("::1" if ":" in source else "127.0.0.1", ports[0].getsockname()[1]))
        for n, listener in enumerate(ports):
            try:
                listener.accept()[0].close()
            except BlockingIOError:
                continue
            return n
    raise AssertionError("no server was reached")


@only_linux
@only_dual
@pytest.mark.parametrize("host", ["127.0.0.1", "::"])
def test_an_address_always_reaches_the_same_listener(opened: ExitStack, host: str) -> None:
    ports = listeners(opened, 3, host)
    assert [attach_source_steering(listener, 3) for listener in ports] == [True] * 3
    places = {source: {reached(ports, source) for _ in range(8)} for source in SOURCES}
    assert all(len(found) == 1 for found in places.values())
    counts = [sum(found == {n} for found in places.values()) for n in range(3)]
    assert min(counts) >= len(SOURCES) // 6, counts


@only_linux
@only_dual
def test_ipv6_is_steered_by_its_first_64_bits(opened: ExitStack) -> None:
    ports = listeners(opened, 3, "::")
    assert attach_source_steering(ports[0], 3)
    assert {reached(ports, "::1") for _ in range(16)} == {0}  # all of it is zero


@only_linux
def test_a_closed_listener_is_skipped(opened: ExitStack) -> None:
    ports = listeners(opened, 3)
    assert attach_source_steering(ports[0], 3)
    ports.pop().close()
    assert {reached(ports, source) for source in SOURCES} == {0, 1}


def test_steering_on_unsupported_systems(opened: ExitStack, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as sock:
        assert not attach_source_steering(sock, 3)  # the socket neither listens nor shares a port
    (listener,) = listeners(opened, 1)
    monkeypatch.setattr(sys, "platform", "darwin")
    assert not attach_source_steering(listener, 3)
