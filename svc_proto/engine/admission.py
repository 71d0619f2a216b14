"""Admission control: connection limits, and the memory budget of unauthenticated connections.

The budget is `machines.unauthenticated_budget`. A connection counts towards it until its peer is authenticated, by an
access policy or by the handler of a WebSocket, or until it closes. A connection that has to wait for memory is not
read, and is cut if it still waits after `unauthenticated_timeout` seconds. When the bytes that unauthenticated
connections may have read at once are spent, they are read in turn, a slice at a time (`machines.read_scheduler`).

The allocator of this process keeps the memory of connections that have ended. When the number of unauthenticated
connections, or the bytes held for them, have fallen far below their peak, the host is requested to return memory to
the system.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from svc_proto.basics.errors import Refused
from svc_proto.commands import Compute, Level
from svc_proto.engine.flow import run_operation
from svc_proto.engine.message import Request
from svc_proto.engine.server_channel import HttpApp, ServerChannel
from svc_proto.facts import Accepted
from svc_proto.machines.auth_rate_limiter import LOOPBACK
from svc_proto.machines.read_scheduler import SLICE_SIZE, ReadScheduler
from svc_proto.machines.unauthenticated_budget import READ_SIZE, BudgetedConnection, BudgetState, UnauthenticatedBudget
from svc_proto.wire.limits import Limits

if TYPE_CHECKING:
    from svc_proto.basics.timers import Timer
    from svc_proto.engine.core import Engine
    from svc_proto.engine.http2_channel import Http2Channel
    from svc_proto.engine.http_channel import HttpChannel

__all__ = ["AdmissionControl", "UnauthenticatedConnection"]

# Bytes freed by unauthenticated connections after which the host is requested to return memory to the system.
MIN_RELEASE_BYTES = 8 * 1024 * 1024
RELEASE_DELAY = 1.0  # s from the first such disconnect to the request
HTTP2_HEAD_COST = 1024  # bytes that one HTTP/2 request counts for, although HPACK may have packed it into 18
# Unauthenticated connections above which a request counts for more, so that the loop stays half free at any load.
BUSY_CONNECTIONS = 64
BUSY_HEAD_COST = 32 * 1024  # bytes that a request counts for then: 512 requests a second
LOG_INTERVAL = 60.0  # s in which at most one rejection is logged


class AdmissionControl:
    """Admission control of one service: it admits connections and schedules the reads of unauthenticated ones."""

    def __init__(
        self, engine: Engine, app: HttpApp, limits: Limits, *, behind: Callable[[Request], str] | None = None
    ) -> None:
        """Initialize; `behind`, where peers are proxies, returns the address that a request was forwarded for."""
        self.engine = engine
        self.limits = limits
        self.address_behind_proxy = behind
        self.budget = UnauthenticatedBudget(
            budget=limits.unauthenticated_budget,
            share=limits.unauthenticated_share,
            most=limits.unauthenticated_connections,
        )
        self.read_scheduler = ReadScheduler[UnauthenticatedConnection](
            at_once=limits.unauthenticated_burst, rate=limits.unauthenticated_rate
        )
        self._app = app
        self._next_turn = engine.coarse_timers.timer(self._go_on)
        self._quiet_until = 0.0
        self._most = 0  # greatest number of bytes held at once since memory was last returned
        # greatest number of connections since then: each one frees more memory than the bytes counted for it
        self._crowd = 0
        self._timer = engine.timers.timer(self._release_memory)

    def admit(self, fact: Accepted) -> ServerChannel | None:
        """Return a channel for an accepted connection, or None to reject it.

        A connection is rejected if the engine has `max_connections` channels of any kind, or if its address, unless it
        is this host, has too many unauthenticated connections (behind a proxy, `set_forwarded_address` checks that). Of
        `max_connections`, `local_connections` (at most an eighth) are reserved for peers on this host.
        """
        limit = self.limits.max_connections
        if fact.peer.host not in LOOPBACK:
            limit -= min(self.limits.local_connections, limit // 8)
        if self.engine.channel_count >= limit:
            self.log_rejection("too many connections", limit=limit)
            return None
        channel = ServerChannel(self.engine, fact, self._app, self.limits, http2=_http2)
        visit = UnauthenticatedConnection(self, channel)
        if not self.budget.admit(visit, None if self.address_behind_proxy is not None else fact.peer.host):
            channel.closed("")
            self.log_rejection("too many connections of one address", limit=self.limits.unauthenticated_connections)
            return None
        channel.set_admission(visit)
        self._crowd = max(self._crowd, self.budget.peers)
        return channel

    def log_rejection(self, event: str, **fields: object) -> None:
        """Log a rejection as a warning, at most one for each `LOG_INTERVAL`."""
        now = self.engine.now.mono
        if now >= self._quiet_until:
            self._quiet_until = now + LOG_INTERVAL
            self.engine.log(Level.WARNING, event, **fields)

    def schedule_reads(self) -> None:
        """Set the timer for the next scheduled read, if a connection waits for one and the timer is not set."""
        due = self.read_scheduler.next_due
        if due is not None and self._next_turn.when is None:
            self._next_turn.set(due)

    def update_usage(self, visit: UnauthenticatedConnection, size: int) -> bool:
        """Record that a connection holds `size` bytes; return False if the connection has to be cut."""
        stays = self.budget.update_usage(visit, size)
        self._most = max(self._most, self.budget.held)
        return stays

    def remove(self, visit: UnauthenticatedConnection) -> None:
        """Remove a connection that is authenticated or closed from the budget and from the scheduled reads.

        If the held bytes or the number of connections are now far below their peak, schedule the return of memory to
        the system.
        """
        self.budget.remove(visit)
        self.read_scheduler.remove(visit)
        if self._timer.when is None and (
            self._most - self.budget.held >= MIN_RELEASE_BYTES or self._crowd - self.budget.peers >= BUSY_CONNECTIONS
        ):
            self._timer.set(self.engine.now.mono + RELEASE_DELAY)

    def _go_on(self) -> None:
        now = self.engine.now.mono
        while (visit := self.read_scheduler.next(now)) is not None:
            if visit.read_slice():
                self.read_scheduler.enqueue(visit)
        self.schedule_reads()

    def _release_memory(self) -> None:
        self._most, self._crowd = self.budget.held, self.budget.peers
        self.engine.timers.sweep()
        self.engine.coarse_timers.sweep()
        self.engine.spawn(run_operation(self.engine, Compute(self.engine.new_op(), "memory.give_back")))


class UnauthenticatedConnection(BudgetedConnection):
    """Admission state of a connection whose peer is not authenticated: its budget usage and its unparsed bytes."""

    __slots__ = ("_timer", "admission", "channel", "ended", "late")

    def __init__(self, admission: AdmissionControl, channel: HttpChannel) -> None:
        super().__init__()
        self.channel = channel
        self.admission = admission
        self.late = b""  # received bytes that the scheduler has not admitted yet
        self.ended = False  # the peer's FIN came after those bytes
        self._timer: Timer | None = None

    def admit_bytes(self, data: bytes) -> bytes:
        """Return the part of `data` to parse now, and keep the rest.

        Kept bytes are parsed in slices when the scheduler admits this connection, or at once after authentication.
        """
        taken = self.admission.read_scheduler.allowance_for(self, len(data), self.admission.engine.now.mono)
        if taken < len(data):
            data, self.late = data[:taken], self.late + data[taken:]
            self.admission.schedule_reads()
            self.channel.set_read_paused(self.channel.is_over_budget)
        return data

    def read_slice(self) -> bool:
        """Parse the next slice of the kept bytes, after the last a deferred FIN; return whether more is left."""
        part, self.late = self.late[:SLICE_SIZE], self.late[SLICE_SIZE:]
        self.channel.parse(part)
        if self.held:
            self.channel.after_events()  # a request that came whole does not update the usage itself
        if self.late:
            return True
        self.deliver_end()
        if self.channel.has_unread:
            return True
        if not self.waiting:
            self._calm()
        return False

    def charge_requests(self, heads: int, *, more: bool) -> None:
        """Charge the read scheduler a fixed number of bytes for each of `heads` requests that were begun in one read.

        The number is higher if many connections are unauthenticated. With `more`, further requests wait in the channel,
        and the connection is scheduled again.
        """
        admission = self.admission
        each = BUSY_HEAD_COST if admission.budget.peers > BUSY_CONNECTIONS else HTTP2_HEAD_COST
        self.admission.read_scheduler.charge(heads * each, admission.engine.now.mono)
        if more:
            self.admission.read_scheduler.enqueue(self)
            admission.schedule_reads()

    def defer_end(self) -> bool:
        """Return whether the peer's FIN has to wait until the kept bytes are parsed.

        For a connection that is queued for reading, the timeout starts now, unless it runs already.
        """
        if self in self.admission.read_scheduler:
            self._be_patient()
        self.ended = bool(self.late)
        return self.ended

    def deliver_end(self) -> None:
        """Deliver the peer's FIN to the channel if it was deferred; called when all kept bytes were parsed."""
        if self.ended:
            self.ended = False
            self.channel.parse_end()

    def update_usage(self, size: int) -> bool:
        """Record that the channel holds `size` bytes, besides the bytes kept here; return True if reading must pause.

        A growth by which all connections together exceed the budget by more than a quarter cuts the channel, and True
        is returned. When the connection has to wait for the budget, its timeout starts.
        """
        size += len(self.late)
        if size != self.held and not self.admission.update_usage(self, size):
            self._on_memory_timeout()
            return True
        if self.state is BudgetState.READING:
            return len(self.late) >= READ_SIZE
        self._be_patient()
        return True

    def resume(self) -> None:
        """Continue reading: memory is available again."""
        if not (self.ended or self.channel.eof):
            self._calm()
        self.channel.after_events()

    def set_forwarded_address(self, request: Request) -> None:
        """Count the connection for the client's address in a proxy's headers.

        Raise `Refused` (429) if that address has too many connections.
        """
        admission = self.admission
        assert admission.address_behind_proxy is not None
        if not admission.budget.change_address(self, admission.address_behind_proxy(request)):
            admission.log_rejection(
                "too many connections of one address", limit=admission.limits.unauthenticated_connections
            )
            raise Refused(429, "too_many_connections", "too many connections of this address are open")

    def authenticated(self) -> None:
        """Take the connection out of the budget, then parse the kept bytes and a FIN: its peer is authenticated."""
        waited, late, self.late = self.waiting, self.late, b""
        self.end()
        if late:
            self.channel.parse(late)
        elif waited:
            self.channel.after_events()
        self.deliver_end()

    def end(self) -> None:
        """Take the connection out of the budget: its peer is authenticated or gone."""
        self._calm()
        self.admission.remove(self)

    def _be_patient(self) -> None:
        if self._timer is None:
            engine = self.admission.engine
            self._timer = engine.coarse_timers.timer(self._on_memory_timeout)
            self._timer.set(engine.now.mono + self.admission.limits.unauthenticated_timeout)

    def _calm(self) -> None:
        if self._timer is not None:
            self._timer.retire()
            self._timer = None

    def _on_memory_timeout(self) -> None:
        if not (self.ended or self.channel.eof):
            self.admission.log_rejection("no memory left for strangers", held=self.admission.budget.held)
        self.channel.abort()


def _http2(engine: Engine, accepted: Accepted, app: HttpApp, limits: Limits) -> Http2Channel:
    """Create an HTTP/2 channel. The import is deferred because h2 takes the largest part of the start time."""
    from svc_proto.engine.http2_channel import Http2Channel  # noqa: PLC0415, RUF100

    return Http2Channel(engine, accepted, app, limits)
