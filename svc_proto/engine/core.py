"""Engine: a `Core` made of channels, timers and flows, on which a service (relay, API, phone) is built.

Order of work in `handle`: first the due timers, each at its own deadline, so that the outcome does not depend on when
the loop woke up. Then the fact; without one, the due `coarse_timers`, up to `MAX_TASKS_PER_CALL` of them. Then pending
output is flushed.
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
from svc_proto.engine.large_inputs import LargeInputs
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

STOP_MARGIN = 0.25  # s before the end of the grace at which open channels are cut, so that the exit is within it
MAX_TASKS_PER_CALL = 64  # of `coarse_timers` at most: a few ms
MAX_REMEMBERED = 64  # servers whose HTTP/2 refuses WebSockets (see `http_client`); the oldest entry is dropped
WRONG_TYPE = Failure(FailureKind.INTERNAL, "the runtime gave an answer of the wrong type")


class Flushable(Protocol):
    """An object that buffers output during a `handle`, such as a channel."""

    def flush(self) -> None:
        """Write the output; called at the end of a `handle` in which the object was put into `Engine.dirty`."""
        ...


class Revocable(Protocol):
    """An object that ends with a credential, such as an exchange with a `Request.credential_id`, or a run."""

    def revoke(self, refused: Refused) -> None:
        """Stop, and report `refused` as long as a response is possible: the credential was revoked."""
        ...


class Service(Protocol):
    """A service that an engine runs. `bind` is called when the engine is made, the callbacks from its `handle`."""

    def bind(self, engine: Engine) -> None:
        """Store the engine; called once, before the first fact."""
        ...

    def on_started(self) -> None:
        """Load the service's state, then call `engine.emit(Ready())`."""
        ...

    def on_accepted(self, fact: Accepted) -> Channel | None:
        """Return the channel that serves an accepted connection, or None to reject it."""
        ...

    def on_stopping(self) -> None:
        """Prepare for the end of the process; then the engine stops the channels, those with `survives_stop` last."""
        ...


class Engine:
    """Implementation of `Core` for one service.

    `entropy(n)` returns n random bytes. Log records under `log_level` are not built. `coarse_timers` are for
    low-priority work: they fire only when `handle` is called without a fact.
    """

    def __init__(self, service: Service, *, entropy: Entropy, log_level: Level = Level.INFO) -> None:
        self.entropy = entropy
        self.log_level = log_level
        self.now = Moment(0.0, 0.0)
        self.woken = 0.0  # monotonic time of the call that fires timers; `now` is the deadline of each timer meanwhile
        self.timers = Timers()
        self.coarse_timers = Timers()
        self.counts = EngineMetrics()
        self.stopping = False
        self.out: list[Command] = []  # commands of this `handle`
        self.dirty: dict[Flushable, None] = {}  # to be flushed at the end of this `handle`
        self.revocables: dict[Revocable, str] = {}  # credential id (such as a session's) by object that ends with it
        self.without_sockets = deque[tuple[str, int]](maxlen=MAX_REMEMBERED)
        self.tasks: dict[Task, None] = {}  # running and waiting flows
        self.parked: dict[OperationId, Task] = {}  # waiting flows, by the operation or ticket that they wait for
        self.abandoned: dict[OperationId, Operation[Any]] = {}  # cancelled operations: a late result is released
        self._channels: dict[ChannelId, Channel] = {}
        self._next_op = 0
        self._next_channel = -1
        self._references = 0
        self._exited = False
        self._grace = self.timers.timer(self._grace_over)
        self.large_inputs = LargeInputs(self)
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
        """Implement `Core.handle`: fire the due timers, apply the fact, return the commands; none after the exit."""
        if self._exited:
            return []
        out = self.out = []
        if self.timers.first <= now.mono:
            self._fire_due(now)
            _drop_overtaken(out, fact)
        self.now = now
        if fact is not None:
            try:
                if type(fact) is Received:  # the most frequent fact
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
        """Implement `Core.next_deadline`: return when `handle` is due; None without a deadline and after the exit."""
        first, pause = self.timers.first, self.coarse_timers.first
        if pause < first:
            first = pause
        return None if self._exited or first == inf else first

    # --- for services, channels and flows ---

    def emit(self, command: Command) -> None:
        """Issue a command to the runtime; `handle` returns it."""
        self.out.append(command)

    def log(self, level: Level, event: str, **fields: object) -> None:
        """Emit a log record if `level` is enabled. Never pass a secret."""
        if level >= self.log_level:
            self.out.append(Log(level, event, fields))

    def new_op(self) -> OperationId:
        """Return a fresh operation number; it also serves as the ticket of a wait that `resume` ends."""
        self._next_op += 1
        return OperationId(self._next_op)

    def new_channel(self) -> ChannelId:
        """Return a fresh channel number for a channel that the core opens; these numbers are odd."""
        self._next_channel += 2
        return ChannelId(self._next_channel)

    def attach(self, channel: Channel) -> None:
        """Deliver the facts of `channel.ch` to `channel` from now on, until its `Closed`."""
        self._channels[channel.ch] = channel

    def spawn(
        self,
        flow: Flow[Any],
        *,
        on_done: Callable[[Any], object] | None = None,
        on_error: Callable[[Exception], object] | None = None,
    ) -> Task:
        """Start a flow. Its owner must `cancel()` the task when the owner ends.

        `on_done` receives the flow's result, `on_error` its exception. Without `on_error`, the exception is logged as a
        bug.
        """
        task = Task(self, flow, on_done=on_done or _ignore, on_error=on_error or self.log_bug)
        self.tasks[task] = None
        task.advance(None)
        return task

    def resume(self, ticket: OperationId, answer: object) -> bool:
        """Resume the flow that waits for `ticket`; return False if no flow waits for it (any more)."""
        task = self.parked.pop(ticket, None)
        if task is None:
            return False
        task.resume(answer)
        return True

    def exit(self, code: int, reason: str = "") -> None:
        """Cancel every flow and end the process. A second call does nothing."""
        if self._exited:
            return
        self._exited = True
        for task in list(self.tasks):
            task.cancel()
        self.emit(Exit(code, reason))
        self.out = []  # `Exit` is the last command: later ones are dropped

    def revoke_credential(self, holder: str, refused: Refused) -> None:
        """Revoke all registered objects that depend on the credential with the id `holder`.

        The search is linear, since revocations are rare and requests are frequent.
        """
        for held in [held for held, mine in self.revocables.items() if mine == holder]:
            held.revoke(refused)

    def log_bug(self, error: Exception) -> str:
        """Log an unexpected exception and return the reference under which it is found."""
        self._references += 1
        reference = f"bug-{self._references}"
        self.log(Level.ERROR, "bug", reference=reference, **_describe(error))
        return reference

    @property
    def stops_by(self) -> float:
        """Monotonic time at which a stopping process ends at the latest; infinity while it is not stopping."""
        return inf if self._grace.when is None else self._grace.when

    @property
    def channel_count(self) -> int:
        """Number of channels whose `Closed` has not been received, including those that are closing."""
        return len(self._channels)

    @property
    def flow_count(self) -> int:
        """Number of unfinished flows."""
        return len(self.tasks)

    # --- facts ---

    def _fire_due(self, now: Moment) -> None:
        self.counts.lateness.observe(now.mono - self.timers.first)
        self.woken = now.mono
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
            self.exit(70, f"internal error, reference {self.log_bug(error)}")  # the service could never become ready

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
            self.log(Level.WARNING, "answer without a waiting operation", op=fact.op)
            return
        task.resume(fact.result if task.accepts(fact.result) else WRONG_TYPE)

    def _failed(self, fact: Failed) -> None:
        if self.abandoned.pop(fact.op, None) is None and not self.resume(fact.op, fact.error):
            self.log(Level.WARNING, "answer without a waiting operation", op=fact.op)

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
        # None is the number of no channel
        channel = self._channels.get(getattr(owner, "ch", None))  # type: ignore[arg-type]
        if channel is not None:
            channel.abort()  # `Closed` follows and lets the channel clean up


def _ignore(result: object) -> None:
    """Discard the result of a flow."""


def _describe(error: Exception) -> dict[str, object]:
    # The text of an exception may quote peer input, which may hold a secret: its type and place are enough.
    place = "unknown"
    trace = error.__traceback__
    while trace is not None:
        place = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
        trace = trace.tb_next
    return {"error": type(error).__name__, "at": place}


def _drop_overtaken(out: list[Command], fact: Fact | None) -> None:
    """Remove each `Send` to the channel, or `Cancel` of the operation, that `fact` ends."""
    match fact:
        case Closed(ch=ch):
            out[:] = [command for command in out if not (isinstance(command, Send) and command.ch == ch)]
        case Done(op=op) | Failed(op=op):
            out[:] = [command for command in out if not (isinstance(command, Cancel) and command.op == op)]
