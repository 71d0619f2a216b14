"""Pump of one core: gives it a fact, performs its commands in order, then gives it the next fact.

Synchronous, and the same on every loop. Facts that arise while commands are performed wait in a queue, so the core is
never re-entered. Services perform the operations (files, store, connecting); each adds a table from command type to
handler.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from math import inf
from typing import Any, Protocol

from runtimes.failures import failure_of
from runtimes.host.logs import LogWriter
from runtimes.host.thread_pool import ThreadCall, ThreadPool
from runtimes.loops.loop import Loop
from svc_proto.basics.moment import Moment
from svc_proto.basics.timers import Timers
from svc_proto.boundary import Core
from svc_proto.commands import (
    Abort,
    Cancel,
    CloseWrite,
    Command,
    Exit,
    Log,
    PauseReading,
    Ready,
    ResumeReading,
    Send,
)
from svc_proto.facts import ChannelId, Closed, Done, Fact, Failed, Failure, FailureKind, OperationId, Sent

__all__ = ["BUG_EXIT", "Core", "OpenChannel", "PumpHost", "Pump"]

COALESCE_DELAY = 0.1  # s; a late `Sent` is reported after this time, before any other fact
MAX_LOW_PRIORITY_BYTES = 16 * 1024  # unreported bytes of a channel from which on `Sent` is reported at once
BUG_EXIT = 70  # EX_SOFTWARE of sysexits.h: the core or the runtime has a bug

Handler = Callable[[Any], None]


class OpenChannel(Protocol):
    """An open channel as the pump uses it."""

    ch: ChannelId
    unreported: int  # bytes that the kernel has accepted and no `Sent` has reported

    def send(self, data: bytes) -> None:
        """Write `data` after the bytes of earlier sends."""

    def close_write(self) -> None:
        """Close the direction of writing after the bytes that are queued."""

    def pause(self) -> None:
        """Stop reading."""

    def resume(self) -> None:
        """Resume reading."""

    def end(self, reason: str, *, reset: bool = False) -> None:
        """Close the channel and report `Closed` to the core."""

    def abandon(self) -> None:
        """Close the channel without a report."""


class PumpHost(Protocol):
    """The part of a host that a pump uses."""

    loop: Loop
    clock: Callable[[], Moment]
    armed: float  # when the pumps' `tick` will be called at the latest, monotonic seconds

    def arm(self, when: float) -> None:
        """Have the pumps' `tick` called by `when`, monotonic seconds."""

    def ready(self, pump: Pump) -> None:
        """Start accepting: the core has issued `Ready`."""

    def exited(self, pump: Pump) -> None:
        """Close this pump's program: the core has exited."""


class Pump:
    """Driver of one core, with its open channels and its operations in progress."""

    def __init__(self, core: Core, owner: PumpHost, log: LogWriter) -> None:
        self.core = core
        self.owner = owner
        self.loop = owner.loop
        self.log = log
        self.channels: dict[ChannelId, OpenChannel] = {}
        self.operations: dict[OperationId, Callable[[], None]] = {}  # cancels each operation
        self.own_timers = Timers()  # timers of the runtime: TLS handshakes, the pause after descriptors ran out
        self.outcome: Exit | None = None
        self.mono = 0.0  # when the core last received a fact, monotonic s
        self._facts: deque[Fact | None] = deque()
        self._busy = False
        self._sent: list[OpenChannel] = []  # channels to report when no other fact waits
        self._late: dict[OpenChannel, None] = {}  # low-priority channels, to report within `COALESCE_DELAY`
        self._late_since = 0.0
        self._patient = False  # bytes accepted now may be reported late
        self._now = owner.clock()
        self._accepted = ChannelId(0)
        self._handlers: dict[type, Handler] = {
            CloseWrite: self._close_write,
            Abort: self._abort,
            PauseReading: self._pause,
            ResumeReading: self._resume,
            Cancel: self._cancel,
            Log: log.write,
            Ready: self._ready,
            Exit: self._exit,
        }

    def serve(self, handlers: Mapping[type, Handler]) -> None:
        """Register the handlers of a service by type of command."""
        self._handlers.update(handlers)

    # --- facts ---------------------------------------------------------------------------------------------------

    def feed(self, fact: Fact | None) -> None:
        """Give the core a fact and perform its commands; continue with the facts that were queued meanwhile.

        In a call from within `feed`, the fact is queued. After the exit, it is discarded.
        """
        if self.outcome is not None:
            return
        if self._busy:
            self._facts.append(fact)
            return
        self._busy = True
        try:
            now = self.owner.clock()  # one instant for everything that happens without a wait in between
            if self._late and now.mono - self._late_since >= COALESCE_DELAY:
                self._facts += [self._report(channel) for channel in [*self._late]]
                # at the earlier instant: these bytes left then, so no timer may fire first
                self._carry_out(self._facts.popleft(), self._now)
            self._now, self.mono = now, now.mono
            self._carry_out(fact, now)
        except Exception as error:  # noqa: BLE001, RUF100 - the core catches its own: a bug, so end loudly
            self.log.bug("core.bug", error)
            self._exit(Exit(BUG_EXIT, f"internal error: {type(error).__name__}"))
        finally:
            self._busy = False
        when = self.core.next_deadline()
        if when is not None and when < self.owner.armed:  # The code that sets a chore arms the loop itself.
            self.owner.arm(when)

    def next_deadline(self) -> float | None:
        """Return when `tick` is due (monotonic s): the core's deadline or an earlier timer of the pump.

        None if there is neither, or after the exit.
        """
        if self.outcome is not None:
            return None
        when, own = self.core.next_deadline(), self.own_timers.first
        return when if own == inf or (when is not None and when <= own) else own

    def tick(self, mono: float) -> None:
        """Fire the pump's own timers that are due, and call the core if its deadline has passed."""
        while (timer := self.own_timers.pop_due(mono)) is not None:
            timer.fire()
        if self.outcome is not None:
            return
        when = self.core.next_deadline()
        if when is not None and when <= mono:
            self.feed(None)
        when = self.next_deadline()
        if when is not None:
            self.owner.arm(when)

    def timer_added(self) -> None:
        """Have the loop wake in time for the pump's next own timer, which was set outside of `feed`."""
        own = self.own_timers.next()
        if own is not None:
            self.owner.arm(own)

    def sent(self, channel: OpenChannel, n: int) -> None:
        """Count `n` bytes that the kernel accepted, and report them in `Sent`.

        Within `feed`, the report follows when no other fact waits. Under `MAX_LOW_PRIORITY_BYTES` of low priority are
        reported with later bytes or the close of the channel, or in a `feed` after `COALESCE_DELAY`.
        """
        channel.unreported += n
        if self._patient and channel.unreported < MAX_LOW_PRIORITY_BYTES:
            if not self._late:
                self._late_since = self.mono
            self._late[channel] = None
        elif not self._busy:
            self.feed(self._report(channel))
        elif channel not in self._sent:
            self._sent.append(channel)

    def closed(self, channel: OpenChannel, reason: str, exit_status: int | None = None) -> None:
        """Report the unreported sent bytes and `Closed` of a channel; do nothing if it was closed before.

        `exit_status` is that of its child process, if any.
        """
        if self.channels.pop(channel.ch, None) is None:
            return
        if channel.unreported:
            self.feed(self._report(channel))
        self.feed(Closed(channel.ch, reason, exit_status))

    def next_accepted(self) -> ChannelId:
        """Return a new, even number for a channel that a peer opened."""
        self._accepted = ChannelId(self._accepted + 2)
        return self._accepted

    # --- operations ----------------------------------------------------------------------------------------------

    def begin(self, op: OperationId, give_up: Callable[[], None]) -> None:
        """Register an operation in progress; `give_up` stops its work. Raises `ValueError` if `op` is in use."""
        if op in self.operations:
            raise ValueError(f"operation {op} is under way already")
        self.operations[op] = give_up

    def answer(self, op: OperationId, result: object) -> bool:
        """Report the result of an operation; return False if it is not pending: answered, cancelled or unknown."""
        if self.operations.pop(op, None) is None:
            return False
        self.feed(Done(op, result))
        return True

    def fail(self, op: OperationId, failure: Failure) -> None:
        """Report the failure of an operation, unless it was answered or cancelled before."""
        if self.operations.pop(op, None) is not None:
            self.feed(Failed(op, failure))

    def refuse(self, op: OperationId, kind: FailureKind, detail: str) -> None:
        """Report `Failed` for an operation that has not begun."""
        self.feed(Failed(op, Failure(kind, detail)))

    def work(
        self,
        op: OperationId,
        workers: ThreadPool,
        work: Callable[[], object],
        *,
        keep: Callable[[Any], object] | None = None,
        release: Callable[[Any], None] | None = None,
        after: Callable[[], None] | None = None,
    ) -> None:
        """Run `work` on a thread, and answer the operation with its result or failure.

        `keep` turns the thread's result into the answer. `release` undoes a result that comes too late to be reported.
        `after` runs on the loop's thread before the answer, even after a failure.
        """

        def done(result: object, error: BaseException | None) -> None:
            if after is not None:
                after()
            live = op in self.operations and self.outcome is None
            if error is not None:
                self.fail(op, failure_of(error))
            elif live:
                self.answer(op, result if keep is None else keep(result))
            elif release is not None:
                release(result)

        job: ThreadCall | None = None

        def give_up() -> None:
            if job is not None:
                job.withdraw()

        self.begin(op, give_up)
        job = workers.submit(work, done)

    # --- ends ----------------------------------------------------------------------------------------------------

    def abandon_all(self) -> None:
        """Cancel the open operations and close the channels without a report."""
        for give_up in list(self.operations.values()):
            give_up()
        self.operations.clear()
        for channel in list(self.channels.values()):
            channel.abandon()
        self.channels.clear()

    # --- below: the parts of the above, and the commands ---------------------------------------------------------

    def _carry_out(self, fact: Fact | None, now: Moment) -> None:
        facts, sent, handle, channels = self._facts, self._sent, self.core.handle, self.channels
        while self.outcome is None:
            for command in handle(fact, now):
                if type(command) is Send:  # the usual case, handled without the table
                    channel = channels.get(command.ch)
                    if channel is not None:  # otherwise closed: `Closed` is queued for the core
                        self._patient = command.low_priority
                        channel.send(command.data)
                        self._patient = False
                else:
                    self._handlers.get(type(command), self._unserved)(command)
            if facts:
                fact = facts.popleft()
            elif sent:
                fact = self._report(sent[0])
            else:
                return
        facts.clear()

    def _report(self, channel: OpenChannel) -> Sent:
        """Return `Sent` for the unreported bytes of a channel, and reset the count."""
        self._late.pop(channel, None)
        if channel in self._sent:
            self._sent.remove(channel)
        n, channel.unreported = channel.unreported, 0
        return Sent(channel.ch, n)

    def _unserved(self, command: Command) -> None:
        op = getattr(command, "op", None)
        if op is None:
            raise TypeError(f"not a command: {type(command).__name__}")
        self.refuse(op, FailureKind.UNSUPPORTED, f"this runtime has no {type(command).__name__}")

    def _close_write(self, command: CloseWrite) -> None:
        channel = self.channels.get(command.ch)
        if channel is not None:
            channel.close_write()
            if channel.unreported and channel not in self._sent:
                self._sent.append(channel)

    def _abort(self, command: Abort) -> None:
        channel = self.channels.get(command.ch)
        if channel is not None:
            channel.end("aborted", reset=True)

    def _pause(self, command: PauseReading) -> None:
        channel = self.channels.get(command.ch)
        if channel is not None:
            channel.pause()

    def _resume(self, command: ResumeReading) -> None:
        channel = self.channels.get(command.ch)
        if channel is not None:
            channel.resume()

    def _cancel(self, command: Cancel) -> None:
        give_up = self.operations.pop(command.op, None)
        if give_up is None:
            return  # answered before
        give_up()
        self.feed(Failed(command.op, Failure(FailureKind.CANCELLED)))

    def _ready(self, command: Ready) -> None:
        self.owner.ready(self)

    def _exit(self, command: Exit) -> None:
        if self.outcome is None:
            self.outcome = command
            self.owner.exited(self)
