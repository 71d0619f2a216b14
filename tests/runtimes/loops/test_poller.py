from __future__ import annotations

import select
import socket
import sys
from collections.abc import Iterator
from contextlib import closing
from typing import cast

import pytest

from runtimes.loops import threads_loop
from runtimes.loops.poller import READ, WRITE, Poller, SelectorPoller, new_poller
from runtimes.loops.threads_loop import ThreadsLoop
from runtimes.loops.waker import Waker

KINDS = [
    SelectorPoller,
    pytest.param(new_poller, marks=pytest.mark.skipif(sys.platform != "linux", reason="there is no epoll")),
]


@pytest.fixture(params=KINDS)
def polling(request: pytest.FixtureRequest) -> Iterator[Poller]:
    with closing(request.param()) as made:
        yield made


def test_registered_events_are_reported(polling: Poller) -> None:
    here, there = socket.socketpair()
    with here, there:
        fd = here.fileno()
        polling.register(fd, READ)
        assert polling.poll(0.0, 4) == []
        polling.modify(fd, READ | WRITE)
        assert polling.poll(1.0, 4) == [(fd, WRITE)]
        there.send(b"x")
        assert polling.poll(None, 4) == [(fd, READ | WRITE)]
        assert select.select([polling.fileno()], [], [], 1.0)[0]
        polling.modify(fd, READ)
        assert polling.poll(0.0, 4) == [(fd, READ)]
        polling.unregister(fd)
        assert polling.poll(0.0, 4) == []


def test_a_hangup_is_reported_to_readers_and_writers(polling: Poller) -> None:
    here, there = socket.socketpair()
    with here:
        there.close()
        for wanted, others in ((READ, WRITE), (WRITE, READ)):
            polling.register(here.fileno(), wanted)
            ((fd, events),) = polling.poll(1.0, 4)
            assert fd == here.fileno()
            assert events & ~others
            polling.unregister(fd)


def test_a_loop_without_epoll(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads_loop, "new_poller", SelectorPoller)
    loop, waker, heard = ThreadsLoop(), Waker(), list[str]()
    assert isinstance(loop.polling, SelectorPoller)
    loop.watch_read(waker)
    waker.post(lambda: heard.append("called"))
    loop.run_once()
    assert heard == ["called"]
    loop.run_once(0.0)
    loop.close(waker)
    waker.dispose()
    loop.end()


def test_unchanged_registrations_make_no_system_call(polling: Poller) -> None:
    class Told:
        def __getattr__(self, order: str) -> object:
            orders.append(order)
            return getattr(polling, order)

    loop, waker, orders = ThreadsLoop(), Waker(), list[str]()
    loop.end()
    loop.polling = cast("Poller", Told())
    for order in (loop.watch_read, loop.unwatch_write, loop.watch_read, loop.watch_write, loop.watch_write):
        order(waker)
    assert orders == ["register", "modify"]
    for order in (loop.unwatch_write, loop.unwatch_write, loop.unwatch_read, loop.unwatch_read, loop.close):
        order(waker)
    assert orders == ["register", "modify", "modify", "unregister"]
    waker.dispose()


def test_closed_sources_and_reused_descriptors_are_not_called() -> None:
    class Calls(Waker):
        def on_readable(self) -> None:
            heard.append(self)
            other = self.other
            number = other.sock.fileno()
            loop.close(other)
            late = Calls()
            late.poke_sock.send(b"x")
            taken.append(late)
            assert late.sock.fileno() == number
            loop.watch_read(late)

        other: Calls

    loop, heard, taken = ThreadsLoop(), list[Waker](), list[Waker]()
    one, two = Calls(), Calls()
    one.other, two.other = two, one
    for each in (one, two):
        loop.watch_read(each)
        each.poke_sock.send(b"x")
    loop.run_once()
    assert len(heard) == 1
    for left in (*heard, *taken):
        loop.close(left)
    for left in (one, two, *taken):
        left.dispose()
    loop.end()
