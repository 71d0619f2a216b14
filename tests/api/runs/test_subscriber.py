from typing import Any
from weakref import ref

import pytest

from svc_proto.agent.interface import TextDelta
from svc_proto.api.projections.runs import RunProjection
from svc_proto.api.projections.turn_events import Projection, TurnStreamEvent
from svc_proto.api.runs.subscriber import (
    SUBSCRIBER_TABLE,
    UNREAD_TIMEOUT,
    Subscriber,
    SubscriberState,
    SubscriberTrigger,
)
from svc_proto.basics.errors import LocalProtocolError
from svc_proto.basics.moment import Moment
from svc_proto.machines.transitions import step
from tests.api.scripted_agent import TurnHarness

ROWS = {
    (SubscriberState.AWAITED, SubscriberTrigger.ATTACH): SubscriberState.READING,
    (SubscriberState.AWAITED, SubscriberTrigger.DETACH): SubscriberState.GONE,
    (SubscriberState.READING, SubscriberTrigger.DETACH): SubscriberState.GONE,
}


def test_the_table() -> None:
    assert dict(SUBSCRIBER_TABLE) == ROWS
    for state in SubscriberState:
        for trigger in SubscriberTrigger:
            if (state, trigger) not in ROWS:
                with pytest.raises(LocalProtocolError):
                    step(SUBSCRIBER_TABLE, state, trigger)


class Blanks:
    """Projection that encodes each event as a fixed number of blanks."""

    def __init__(self, size: int) -> None:
        self._size = size

    def encode(self, event: TurnStreamEvent, now: Moment) -> str:
        return " " * self._size


def made(book: TurnHarness, projection: Projection | None = None) -> tuple[Subscriber, list[Subscriber]]:
    caught_up: list[Subscriber] = []
    reader = Subscriber(book.engine, projection or RunProjection(session_id="s", run_id="r"), caught_up.append)
    return reader, caught_up


def test_detached_reader_receives_nothing() -> None:
    projection = Blanks(3)
    held = ref(projection)
    reader, caught_up = made(TurnHarness(), projection)
    del projection
    reader.add_event(TextDelta("x"))
    reader.detach()
    assert held() is None
    reader.detach()
    reader.add_event(TextDelta("y"))
    reader.end()
    assert caught_up == [reader]
    assert reader.state is SubscriberState.GONE
    assert not reader.is_behind
    writer: Any = None
    with pytest.raises(LocalProtocolError, match="one reader"):
        next(reader.produce(writer))


def test_event_without_encoding_is_skipped() -> None:
    book = TurnHarness()
    reader, caught_up = made(book, Blanks(0))
    for _ in range(1_000):
        reader.add_event(TextDelta("x"))
    assert (reader.state, reader.is_behind, caught_up) == (SubscriberState.AWAITED, False, [])
    assert reader._pieces == []


def test_awaited_reader_is_not_behind() -> None:
    book = TurnHarness()
    reader, caught_up = made(book)
    for _ in range(1_000):
        reader.add_event(TextDelta("x"))
    assert not reader.is_behind
    assert caught_up == []
    book.after(299.9)
    assert caught_up == []
    book.after(0.1)
    assert caught_up == [reader]


@pytest.mark.parametrize(
    ("events", "size", "behind"), [(256, 256, False), (257, 257, True), (1, 65_536, False), (1, 65_537, True)]
)
def test_how_much_is_too_much_for_a_reader(events: int, size: int, behind: bool) -> None:
    reader, _ = made(TurnHarness(), Blanks(size // events))
    for _ in range(events):
        reader.add_event(TextDelta("x"))
    reader.state = step(SUBSCRIBER_TABLE, reader.state, SubscriberTrigger.ATTACH)
    assert reader.is_behind is behind


@pytest.mark.parametrize(("size", "state"), [(1_048_576, SubscriberState.AWAITED), (1_048_577, SubscriberState.GONE)])
def test_unread_buffer_limit(size: int, state: SubscriberState) -> None:
    reader, _ = made(TurnHarness(), Blanks(size))
    reader.add_event(TextDelta("x"))
    assert reader.state is state


def test_a_connected_reader_may_wait_longer_than_an_absent_one() -> None:
    book = TurnHarness()
    call = book.chat()
    book.after(2 * UNREAD_TIMEOUT)
    book.hand.emit(TextDelta("late"))
    assert '"late"' in call.text


def test_a_client_that_closed_its_end_is_probed_until_it_is_gone() -> None:
    book = TurnHarness()
    call = book.chat()
    book.hand.emit(TextDelta("x"))
    seen = len(call.text)
    call.half_close()
    assert call.text[seen:] == ": keepalive\n\n"
    book.after(1.0)
    assert call.text[seen:] == 2 * ": keepalive\n\n"
    book.hand.emit(TextDelta("y"))  # the client may still read
    assert '"y"' in call.text[seen:]
