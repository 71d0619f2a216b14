"""The engine: a `Core` made of channels, timers and flows, on which a service (relay, API, phone) is built.

Order of work in `handle`: due timers first, each at its own deadline, so that the outcome does not depend on when the
loop woke up; then the fact, or where there is none, what waits in `pauses`; then every connection with something to
say is flushed once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from math import inf
from typing import Any, Protocol

from svc_proto.basics.entropy import Entropy
from svc_proto.basics.errors import Refused
from svc_proto.basics.metrics import EngineMetrics
from svc_proto.basics.moment import Moment
from svc_proto.basics.timers import Timers
from svc_proto.commands import Abort, Cancel, Command, Exit, Level, Log, Operation, Send
from svc_proto.engine.channel import Channel
from svc_proto.engine.flow import Flow, Task
from svc_proto.engine.tls_reload import TlsReload
from svc_proto.facts import (
    Accepted,
    ChannelId,
    Closed,
    Done,
    Fact,
    Failed,
    Failure,
    FailureKind,
    OperationId,
    ReadClosed,
    Received,
    Reloading,
    Sent,
    Started,
    Stopping,
)

__all__ = ["Engine", "Flushable", "Revocable", "Service"]

STOP_MARGIN = 0.25  # s before the end of the grace at which what is left is cut, so that the exit is within it
MAX_TASKS_PER_CALL = 64  # of `pauses` at most: a few ms
MAX_REMEMBERED = 64  # servers whose HTTP/2 opens no WebSockets (see `client`): the one longest known is forgotten
WRONG_TYPE = Failure(FailureKind.INTERNAL, "the runtime gave an answer of the wrong type")


class Flushable(Protocol):
    """What gathers output during a `handle`: a channel, or whatever writes to one."""

    def flush(self) -> None:
        """Called once, at the end of a `handle` in which it was put into `Engine.dirty`."""
        ...


class Revocable(Protocol):
    """What ends with its holder: an exchange, if the policy has named one in `Request.credential_id`, a run, a
    socket."""

    def revoke(self, refused: Refused) -> None:
        """The holder is gone: stop, and say so as long as that can be said."""
        ...


class Service(Protocol):
    """What an engine runs. Each method is called from `handle`, on one thread."""

    def bind(self, engine: Engine) -> None:
        """Called once, before the first fact; keep the engine."""
        ...

    def on_started(self) -> None:
        """Load what is needed, then `engine.emit(Ready())`."""
        ...

    def on_accepted(self, fact: Accepted) -> Channel | None:
        """A peer came; return the channel that serves it, or None to turn it away."""
        ...

    def on_stopping(self) -> None:
        """The process will end; channels are told to stop by the engine itself right after."""
        ...


class Engine:
    """One core. `entropy(n)` gives n random bytes; records under `log_level` are not even built.

    What `coarse_timers` has is done in a call without a fact, of which a loop makes one in a round, and some of it in
    each. Time passes from each fact of a round to the next: what many peers can bring about, and nobody waits for,
    would be done between any two of them, and the round be as long as there is anything of it left.
    """

    def __init__(self, service: Service, *, entropy: Entropy, log_level: Level = Level.INFO) -> None:
        self.entropy = entropy
        self.log_level = log_level
        self.now = Moment(0.0, 0.0)
        self.timers = Timers()
        self.coarse_timers = Timers()
        self.counts = EngineMetrics()
        self.stopping = False
        self.out: list[Command] = []  # what is ordered in this `handle`
        self.dirty: dict[Flushable, None] = {}  # what is to be flushed at the end of this `handle`
        self.revocables: dict[Revocable, str] = {}  # what ends with its holder (a session, say), and who that is
        self.without_sockets = deque[tuple[str, int]](maxlen=MAX_REMEMBERED)
        self.tasks: dict[Task, None] = {}  # flows that are under way
        self.parked: dict[OperationId, Task] = {}  # those of them that wait, and for what
        self.abandoned: dict[OperationId, Operation[Any]] = {}  # given up: what a late answer brings is given back
        self._channels: dict[ChannelId, Channel] = {}
        self._next_op = 0
        self._next_channel = -1
        self._references = 0
        self._exited = False
        self._grace = self.timers.timer(self._grace_over)
        self.on_reload: Callable[[], None] = TlsReload(self).request
        self._apply: dict[type[Any], Callable[[Any], None]] = {
            Sent: self._sent,
            Done: self._done,
            Accepted: self._accepted,
            ReadClosed: self._read_closed,
            Closed: self._closed,
            Failed: self._failed,
            Started: self._started,
            Stopping: self._stopping,
            Reloading: self._reloading,
        }
        self._service = service
        service.bind(self)

    # --- the boundary ---

    def handle(self, fact: Fact | None, now: Moment) -> list[Command]:
        """See `svc_proto.boundary.Core`."""
        if self._exited:
            return []
        out = self.out = []
        if self.timers.first <= now.mono:
            self._fire_due(now)
            _drop_overtaken(out, fact)
        self.now = now
        if fact is not None:
            try:
                if type(fact) is Received:  # as most are
                    channel = self._channels.get(fact.ch)
                    if channel is not None:
                        channel.received(fact.data)
                else:
                    self._apply[type(fact)](fact)
            except Exception as error:
                self._bug(error, fact)
        else:
            self._catch_up()
        if self.stopping:
            self._stop_the_last()
        while self.dirty:
            dirty, self.dirty = self.dirty, {}
            for flushed in dirty:
                try:
                    flushed.flush()
                except Exception as error:
                    self._bug(error, flushed)
        if self.stopping and not self._channels and not self.tasks:
            self.exit(0)
        return out

    def next_deadline(self) -> float | None:
        """See `svc_proto.boundary.Core`."""
        first, pause = self.timers.first, self.coarse_timers.first
        if pause < first:
            first = pause
        return None if self._exited or first == inf else first

    # --- for services, channels and flows ---

    def emit(self, command: Command) -> None:
        """Order something of the runtime."""
        self.out.append(command)

    def log(self, level: Level, event: str, **fields: object) -> None:
        """Emit a log record if anyone wants it. Never pass a secret."""
        if level >= self.log_level:
            self.out.append(Log(level, event, fields))

    def new_op(self) -> OperationId:
        """A fresh operation number; also the ticket of a wait that `resume` ends."""
        self._next_op += 1
        return OperationId(self._next_op)

    def new_channel(self) -> ChannelId:
        """A fresh (odd) channel number for `Connect`."""
        self._next_channel += 2
        return ChannelId(self._next_channel)

    def attach(self, channel: Channel) -> None:
        """Send the facts of `channel.ch` to `channel` from now on, until its `Closed`."""
        self._channels[channel.ch] = channel

    def spawn(
        self,
        flow: Flow[Any],
        *,
        on_done: Callable[[Any], object] | None = None,
        on_error: Callable[[Exception], object] | None = None,
    ) -> Task:
        """Start a flow. Its owner must `cancel()` the task when it dies. Without `on_error`, errors are logged."""
        task = Task(self, flow, on_done=on_done or _ignore, on_error=on_error or self.log_bug)
        self.tasks[task] = None
        task.advance(None)
        return task

    def resume(self, ticket: OperationId, answer: object) -> bool:
        """Answer the wait for `ticket`; False when nobody waits for it (any more)."""
        task = self.parked.pop(ticket, None)
        if task is None:
            return False
        task.resume(answer)
        return True

    def exit(self, code: int, reason: str = "") -> None:
        """Cancel every flow and end the process."""
        if self._exited:
            return
        self._exited = True
        for task in list(self.tasks):
            task.cancel()
        self.emit(Exit(code, reason))
        self.out = []  # `Exit` is the last command: what anyone says from here on is lost

    def revoke_credential(self, holder: str, refused: Refused) -> None:
        """Somebody is gone, and with it all that it holds. To look through it all is rare, requests are not."""
        for held in [held for held, mine in self.revocables.items() if mine == holder]:
            held.revoke(refused)

    def log_bug(self, error: Exception) -> str:
        """Log an unforeseen exception and return the reference under which it can be found."""
        self._references += 1
        reference = f"bug-{self._references}"
        self.log(Level.ERROR, "bug", reference=reference, **_describe(error))
        return reference

    @property
    def channel_count(self) -> int:
        """Open channels, those that linger included."""
        return len(self._channels)

    @property
    def flow_count(self) -> int:
        """Flows that are under way."""
        return len(self.tasks)

    # --- facts ---

    def _fire_due(self, now: Moment) -> None:
        self.counts.lateness.observe(now.mono - self.timers.first)
        while (timer := self.timers.pop_due(now.mono)) is not None:
            assert timer.when is not None  # a cancelled timer never surfaces
            self.now = now.at(max(timer.when, self.now.mono))
            self._guard(timer.fire, timer.owner)

    def _catch_up(self) -> None:
        for _ in range(MAX_TASKS_PER_CALL):
            timer = self.coarse_timers.pop_due(self.now.mono)
            if timer is None:
                return
            self._guard(timer.fire, timer.owner)

    def _started(self, fact: Started) -> None:
        try:
            self._service.on_started()
        except Exception as error:
            self.exit(70, f"internal error, reference {self.log_bug(error)}")  # it would never be ready

    def _accepted(self, fact: Accepted) -> None:
        channel = None
        try:
            if not self.stopping:
                channel = self._service.on_accepted(fact)
        finally:
            if channel is None:
                self.emit(Abort(fact.ch))
            else:
                self.attach(channel)

    def _sent(self, fact: Sent) -> None:
        channel = self._channels.get(fact.ch)
        if channel is not None:
            channel.sent(fact.n)

    def _read_closed(self, fact: ReadClosed) -> None:
        channel = self._channels.get(fact.ch)
        if channel is not None:
            channel.read_closed()

    def _closed(self, fact: Closed) -> None:
        channel = self._channels.pop(fact.ch, None)
        if channel is not None:
            channel.ended(fact)

    def _done(self, fact: Done) -> None:
        abandoned = self.abandoned.pop(fact.op, None)
        if abandoned is not None:
            undo = abandoned.undo(fact.result) if abandoned.accepts(fact.result) else None
            if undo is not None:
                self.emit(undo)
            return
        task = self.parked.pop(fact.op, None)
        if task is None:
            self.log(Level.WARNING, "answer nobody waits for", op=fact.op)
            return
        task.resume(fact.result if task.accepts(fact.result) else WRONG_TYPE)

    def _failed(self, fact: Failed) -> None:
        if self.abandoned.pop(fact.op, None) is None and not self.resume(fact.op, fact.error):
            self.log(Level.WARNING, "answer nobody waits for", op=fact.op)

    def _stopping(self, fact: Stopping) -> None:
        if self.stopping:
            return
        self.stopping = True
        self._grace.set(self.now.mono + max(fact.grace - STOP_MARGIN, 0.0))
        self._guard(self._service.on_stopping, None)
        for channel in list(self._channels.values()):
            if not channel.survives_stop:
                self._guard(channel.stop, channel)

    def _stop_the_last(self) -> None:
        if not self.tasks and all(channel.survives_stop for channel in self._channels.values()):
            for channel in list(self._channels.values()):
                self._guard(channel.stop, channel)

    def _reloading(self, fact: Reloading) -> None:
        if not self.stopping:
            self.on_reload()

    def _grace_over(self) -> None:
        for channel in self._channels.values():
            channel.abort()
        self.exit(0)

    # --- bugs ---

    def _guard(self, call: Callable[[], None], owner: object) -> None:
        try:
            call()
        except Exception as error:
            self._bug(error, owner)

    def _bug(self, error: Exception, owner: object) -> None:
        self.log_bug(error)
        channel = self._channels.get(getattr(owner, "ch", None))  # type: ignore[arg-type]  # None is nobody's
        if channel is not None:
            channel.abort()  # `Closed` follows and lets the channel clean up


def _ignore(result: object) -> None:
    """The result of a flow that nobody asked for."""


def _describe(error: Exception) -> dict[str, object]:
    # The text of an exception may quote peer input, which may hold a secret: its type and place are enough.
    place = "unknown"
    trace = error.__traceback__
    while trace is not None:
        place = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
        trace = trace.tb_next
    return {"error": type(error).__name__, "at": place}


def _drop_overtaken(out: list[Command], fact: Fact | None) -> None:
    """What a timer ordered just now, for a channel or an operation that the fact says is over."""
    match fact:
        case Closed(ch=ch):
            out[:] = [command for command in out if not (isinstance(command, Send) and command.ch == ch)]
        case Done(op=op) | Failed(op=op):
            out[:] = [command for command in out if not (isinstance(command, Cancel) and command.op == op)]
        case _:
            pass
