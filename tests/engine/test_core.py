from typing import Any

import pytest

from svc_proto import facts
from svc_proto.basics.moment import Moment
from svc_proto.commands import Abort, CloseWrite, Exit, Level, Log, Send
from svc_proto.engine.channel import Channel
from svc_proto.engine.core import MAX_TASKS_PER_CALL, Engine
from svc_proto.engine.server_channel import LAST_REQUEST, ServerChannel
from svc_proto.wire.limits import DEFAULT_LIMITS
from tests.engine.toy_service import ToyPlaybook, ToyService, get, open_book
from tests.support.playbook import CH, LOCAL, PEER, START, accepted, counting_entropy

FOUR = facts.ChannelId(4)


def fail() -> None:
    raise RuntimeError("a secret")


# --- facts about unknown channels and operations ---


def test_facts_of_unknown_channels_and_operations_change_nothing(book: ToyPlaybook) -> None:
    for fact in (
        facts.Received(FOUR, b"x"),
        facts.Sent(FOUR, 1),
        facts.ReadClosed(FOUR),
        facts.Closed(FOUR),
        facts.Done(facts.OperationId(99), None),
        facts.Failed(facts.OperationId(99), facts.Failure(facts.FailureKind.INTERNAL)),
    ):
        book >> fact << []
    assert [log.event for log in book.logs] == ["answer without a waiting operation"] * 2


def test_unwanted_and_late_connections_are_refused(book: ToyPlaybook) -> None:
    book >> facts.Accepted(FOUR, PEER, LOCAL, alpn="unwanted") << [Abort(FOUR)]
    book >> facts.Closed(FOUR) << []
    book.get(b"/park") << []
    book >> facts.Stopping(9.0) << []
    book >> accepted(6) << [Abort(facts.ChannelId(6))]


class Last(Channel):
    """Channel with `survives_stop`, which sends `bye` when it is stopped."""

    survives_stop = True
    stopped = 0

    def received(self, data: bytes) -> None: ...

    def read_closed(self) -> None: ...

    def stop(self) -> None:
        self.stopped += 1
        self.mark_dirty()

    def flush(self) -> None:
        self.write(b"bye")


def test_a_channel_that_survives_the_stop_stops_last(book: ToyPlaybook) -> None:
    last = Last(book.engine, FOUR, DEFAULT_LIMITS)
    book.act(lambda: book.engine.attach(last))
    book.get(b"/park") << []
    (book >> facts.Stopping(9.0)).drain_commands()
    assert last.stopped == 0
    book >> facts.Closed(CH) << [Send(FOUR, b"bye")]
    assert last.stopped == 1
    book >> facts.Closed(FOUR) << [Exit(0)]


# --- bugs ---


def test_a_bug_in_on_accepted_drops_the_connection(book: ToyPlaybook) -> None:
    book.toy.on["accepted"] = fail
    book >> accepted(4) << [Abort(FOUR)]
    assert [log.event for log in book.logs] == ["bug"]
    book.get(b"/hello") << [book.says(200, b"hello")]


def test_a_bug_at_the_start_ends_the_process() -> None:
    toy = ToyService()
    toy.on["started"] = fail
    engine = Engine(toy, entropy=counting_entropy(), log_level=Level.ERROR)
    log, end = engine.handle(facts.Started(), START)
    assert isinstance(log, Log)
    assert end == Exit(70, "internal error, reference bug-1")
    assert "secret" not in repr(log)
    assert engine.handle(facts.Stopping(1.0), START) == []


def test_a_bug_at_the_end_does_not_keep_the_process(book: ToyPlaybook) -> None:
    book.toy.on["stopping"] = fail
    book >> facts.Stopping(9.0)
    book.after(LAST_REQUEST) << [CloseWrite(CH)]
    book >> facts.Closed(CH) << [Exit(0)]


@pytest.mark.parametrize("coarse", [False, True])
def test_a_bug_in_a_timer_of_the_service(book: ToyPlaybook, coarse: bool) -> None:
    timers = book.engine.coarse_timers if coarse else book.engine.timers
    timers.timer(fail).set(START.mono + 1.0)
    book.after(1.0) << []
    assert book.logs[0].fields["error"] == "RuntimeError"
    book.get(b"/hello") << [book.says(200, b"hello")]


def test_a_bug_in_a_timer_of_a_channel_drops_it(book: ToyPlaybook) -> None:
    book.get(b"/hello").sent() << []
    book >> facts.Received(CH, b"GET") << []
    book.toy.refusal_fails = True
    book.after(15.0) << [Abort(CH)]
    book >> facts.Received(CH, b"more") << []
    book >> facts.Closed(CH) << []


def test_a_bug_while_a_channel_closes_orders_nothing_for_it(book: ToyPlaybook, monkeypatch: Any) -> None:
    book.get(b"/park") << []
    channel = book.toy.channel
    assert channel is not None
    monkeypatch.setattr(type(channel.credit), "mark_sent", lambda credit, n: fail())
    book >> facts.Sent(CH, 1) << [Abort(CH)]
    book >> facts.Sent(CH, 1) << []
    monkeypatch.setattr(type(channel), "closed", lambda channel, why: fail())
    book >> facts.Closed(CH) << []
    assert len(book.logs) == 3


def test_a_bug_while_a_channel_is_flushed_drops_it(book: ToyPlaybook, monkeypatch: Any) -> None:
    book.logs.bugs = True
    with monkeypatch.context() as patch:
        patch.setattr(ServerChannel, "flush", lambda self: fail())
        book.get(b"/hello") << [Abort(CH)]
    book >> facts.Closed(CH, "") << []


def test_an_unknown_fact_is_a_bug_of_the_runtime(book: ToyPlaybook) -> None:
    assert [type(command) for command in book.engine.handle("nonsense", START)] == [Log]  # type: ignore[arg-type]


def test_records_below_the_level_are_not_made() -> None:
    book = open_book(log_level=Level.ERROR)
    book >> facts.Done(facts.OperationId(99), None) << []
    assert book.logs == []


# --- time ---


def test_each_timer_fires_at_its_own_time(book: ToyPlaybook) -> None:
    seen: list[Moment] = []
    for delay in (2.0, 1.0):
        book.engine.timers.timer(lambda: seen.append(book.engine.now)).set(START.mono + delay)
    late = START.at(START.mono + 9.0)
    assert book.engine.handle(None, late) == []
    assert [moment.mono - START.mono for moment in seen] == [1.0, 2.0]
    assert [moment.wall - START.wall for moment in seen] == [1.0, 2.0]
    assert book.engine.now == late


def test_a_pause_waits_for_a_call_without_a_fact(book: ToyPlaybook) -> None:
    seen: list[float] = []
    pause = book.engine.coarse_timers.timer(lambda: seen.append(book.engine.now.mono - START.mono))
    pause.set(START.mono + 1.0)
    unknown = facts.Sent(FOUR, 1)
    for seconds in (1.0, 3.0):  # facts of one round
        assert book.engine.handle(unknown, START.at(START.mono + seconds)) == []
    assert seen == []
    assert book.engine.next_deadline() == START.mono + 1.0
    assert book.engine.handle(None, START.at(START.mono + 4.0)) == []
    assert seen == [4.0]


def test_the_number_of_coarse_timers_per_call_is_limited(book: ToyPlaybook) -> None:
    seen: list[int] = []
    for number in range(2 * MAX_TASKS_PER_CALL + 1):
        book.engine.coarse_timers.timer(lambda number=number: seen.append(number)).set(START.mono + 1.0)  # type: ignore[misc]  # lambda
    late = START.at(START.mono + 1.0)
    for round_ends in (MAX_TASKS_PER_CALL, 2 * MAX_TASKS_PER_CALL, 2 * MAX_TASKS_PER_CALL + 1):
        assert book.engine.next_deadline() == late.mono
        assert book.engine.handle(None, late) == []
        assert seen == list(range(round_ends))


def test_time_never_goes_back(book: ToyPlaybook) -> None:
    seen: list[float] = []
    book.after(5.0) << []
    book.engine.timers.timer(lambda: seen.append(book.engine.now.mono)).set(START.mono)
    book.after(1.0) << []
    assert seen == [START.mono + 5.0]


# --- the end ---


def test_no_command_follows_exit(book: ToyPlaybook) -> None:
    book.get(b"/park") << []
    book.engine.timers.timer(lambda: book.engine.exit(2)).set(START.mono + 1.0)
    book.engine.timers.timer(lambda: book.engine.emit(Abort(CH))).set(START.mono + 1.0)
    book.now = START.at(START.mono + 1.0)
    book >> facts.Received(CH, get(b"/hello")) << [Exit(2)]
    book.engine.exit(3)
    book >> accepted(4) << []
    assert book.engine.next_deadline() is None
    assert book.toy.cleaned == ["park"]


def test_channels_and_flows_are_counted_and_numbered(book: ToyPlaybook) -> None:
    engine = book.engine
    assert [engine.new_channel(), engine.new_channel(), engine.new_op(), engine.new_op()] == [1, 3, 1, 2]
    assert not engine.resume(facts.OperationId(1), None)
    assert (engine.channel_count, engine.flow_count) == (1, 0)
    book.get(b"/park") << []
    assert (engine.channel_count, engine.flow_count) == (1, 1)
