"""Who is let in, and what peers whom nobody knows yet may make us hold: see `machines.strangers`.

A connection is a visit until somebody vouches for its peer: a policy that found out who asks, or the handler of a
WebSocket. From then on nothing here is asked about it. A visit that has to wait is not read, and cut after
`stranger_patience`. Behind a proxy, a connection belongs to whom its last request was passed on for.

What they send is read in turn, a little at a time, so that one round of the loop is short for those who are known: see
`machines.turns`.

What a crowd has held is free once it has gone, but only for this process: the allocator keeps it. So the host is asked
to give it back to the system, once for a crowd.
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
from svc_proto.machines.read_scheduler import SLICE_SIZE, ReadScheduler
from svc_proto.machines.unauthenticated_budget import READ_SIZE, BudgetedConnection, BudgetState, UnauthenticatedBudget
from svc_proto.wire.limits import Limits

if TYPE_CHECKING:
    from svc_proto.basics.timers import Timer
    from svc_proto.engine.core import Engine
    from svc_proto.engine.http2_channel import Http2Channel
    from svc_proto.engine.http_channel import HttpChannel

__all__ = ["AdmissionControl", "UnauthenticatedConnection"]

MIN_RELEASE_BYTES = (
    8 * 1024 * 1024
)  # bytes of memory that strangers have left, for which the host is asked to give it back
RELEASE_DELAY = 1.0  # s behind the first who left
HTTP2_HEAD_COST = 1024  # bytes that a request over HTTP/2 counts for, which may have come in 18
BUSY_CONNECTIONS = (
    64  # strangers; from there on it counts for what keeps the loop half free, whatever they all send at once
)
BUSY_HEAD_COST = 32 * 1024  # that is 512 of them a second
LOG_INTERVAL = 60.0  # s for which one line of the log about people who are turned away will do


class AdmissionControl:
    """Lets peers in to one service."""

    def __init__(
        self, engine: Engine, app: HttpApp, limits: Limits, *, behind: Callable[[Request], str] | None = None
    ) -> None:
        """`address_behind_proxy`, where peers are proxies, says from which address a request came to them."""
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
        self._most = 0  # bytes that they have held at once since memory was given back
        self._crowd = 0  # how many of them there were at once since then: each leaves more than what it held
        self._timer = engine.timers.timer(self._give_back)

    def admit(self, fact: Accepted) -> ServerChannel | None:
        """Serve an accepted connection. One over `max_connections`, or too many from its address, is turned away."""
        if self.engine.channel_count >= self.limits.max_connections:
            self.log_rejection("too many connections", limit=self.limits.max_connections)
            return None
        channel = ServerChannel(self.engine, fact, self._app, self.limits, http2=_http2)
        visit = UnauthenticatedConnection(self, channel)
        if not self.budget.admit(visit, None if self.address_behind_proxy is not None else fact.peer.host):
            channel.closed("")
            self.log_rejection("too many connections of one address", limit=self.limits.unauthenticated_connections)
            return None
        channel.set_admission(visit)
        self._crowd = max(self._crowd, self.budget.guests)
        return channel

    def log_rejection(self, event: str, **fields: object) -> None:
        """Warn of somebody who was turned away, but not of each."""
        now = self.engine.now.mono
        if now >= self._quiet_until:
            self._quiet_until = now + LOG_INTERVAL
            self.engine.log(Level.WARNING, event, **fields)

    def schedule_reads(self) -> None:
        """Go on when the next turn is due, if anybody waits for one."""
        due = self.read_scheduler.next_due
        if due is not None and self._next_turn.when is None:
            self._next_turn.set(due)

    def update_usage(self, visit: UnauthenticatedConnection, size: int) -> bool:
        """A visit holds so many bytes now; False: it has to go."""
        stays = self.budget.update_usage(visit, size)
        self._most = max(self._most, self.budget.held)
        return stays

    def remove(self, visit: UnauthenticatedConnection) -> None:
        """The guest's connection is over: what was held for it is free."""
        self.budget.remove(visit)
        self.read_scheduler.remove(visit)
        if self._timer.when is None and (
            self._most - self.budget.held >= MIN_RELEASE_BYTES or self._crowd - self.budget.guests >= BUSY_CONNECTIONS
        ):
            self._timer.set(self.engine.now.mono + RELEASE_DELAY)

    def _go_on(self) -> None:
        now = self.engine.now.mono
        while (visit := self.read_scheduler.next(now)) is not None:
            if visit.read_slice():
                self.read_scheduler.enqueue(visit)
        self.schedule_reads()

    def _give_back(self) -> None:
        self._most, self._crowd = self.budget.held, self.budget.guests
        self.engine.timers.sweep()
        self.engine.coarse_timers.sweep()
        self.engine.spawn(run_operation(self.engine, Compute(self.engine.new_op(), "memory.give_back")))


class UnauthenticatedConnection(BudgetedConnection):
    """A connection whose peer nobody knows."""

    __slots__ = ("_timer", "channel", "door", "ended", "late")

    def __init__(self, door: AdmissionControl, channel: HttpChannel) -> None:
        super().__init__()
        self.channel = channel
        self.door = door
        self.late = b""  # what it has sent, and whose turn has not come
        self.ended = False  # its FIN came behind that
        self._timer: Timer | None = None

    def admit_bytes(self, data: bytes) -> bytes:
        """It has sent this: what of it to read now. The rest is kept until it is its turn."""
        taken = self.door.read_scheduler.allowance_for(self, len(data), self.door.engine.now.mono)
        if taken < len(data):
            data, self.late = data[:taken], self.late + data[taken:]
            self.door.schedule_reads()
            self.channel.set_read_paused(self.channel.is_over_budget)
        return data

    def read_slice(self) -> bool:
        """Read on of what the guest has sent, whose turn it is; whether it has more."""
        part, self.late = self.late[:SLICE_SIZE], self.late[SLICE_SIZE:]
        self.channel.parse(part)
        if self.held:
            self.channel.after_events()  # a request that came whole does not ask what is held
        if self.late:
            return True
        self.deliver_end()
        if self.channel.has_unread:
            return True
        if not self.waiting:
            self._calm()
        return False

    def charge_requests(self, heads: int, *, more: bool) -> None:
        """So many requests were begun in one go, which cost more than their bytes tell. `more` wait in the channel."""
        door = self.door
        each = BUSY_HEAD_COST if door.budget.guests > BUSY_CONNECTIONS else HTTP2_HEAD_COST
        self.door.read_scheduler.charge(heads * each, door.engine.now.mono)
        if more:
            self.door.read_scheduler.enqueue(self)
            door.schedule_reads()

    def defer_end(self) -> bool:
        """Its FIN came. Whether that, too, has to wait for its turn: not for long, since most who send one are gone."""
        if self in self.door.read_scheduler:
            self._be_patient()
        self.ended = bool(self.late)
        return self.ended

    def deliver_end(self) -> None:
        """Whatever it has sent is read: so is its FIN, if that has come."""
        if self.ended:
            self.ended = False
            self.channel.parse_end()

    def update_usage(self, size: int) -> bool:
        """So many bytes are held. True: nothing more is to be read; the channel may have been cut."""
        size += len(self.late)
        if size != self.held and not self.door.update_usage(self, size):
            self._out_of_patience()
            return True
        if self.state is BudgetState.READING:
            return len(self.late) >= READ_SIZE
        self._be_patient()
        return True

    def resume(self) -> None:
        """The guest need not wait any more: its socket is read again."""
        if not (self.ended or self.channel.eof):
            self._calm()
        self.channel.after_events()

    def set_forwarded_address(self, request: Request) -> None:
        """A proxy, perhaps, passed a request on for somebody. `Refused` if those are too many."""
        door = self.door
        assert door.address_behind_proxy is not None
        if not door.budget.change_address(self, door.address_behind_proxy(request)):
            door.log_rejection("too many connections of one address", limit=door.limits.unauthenticated_connections)
            raise Refused(429, "too_many_connections", "too many connections of this address are open")

    def authenticated(self) -> None:
        """Somebody has vouched for the peer: what it has sent is read now."""
        waited, late, self.late = self.waiting, self.late, b""
        self.end()
        if late:
            self.channel.parse(late)
        elif waited:
            self.channel.after_events()
        self.deliver_end()

    def end(self) -> None:
        """It counts no more: the peer is known, or gone."""
        self._calm()
        self.door.remove(self)

    def _be_patient(self) -> None:
        if self._timer is None:
            engine = self.door.engine
            self._timer = engine.coarse_timers.timer(self._out_of_patience)
            self._timer.set(engine.now.mono + self.door.limits.unauthenticated_timeout)

    def _calm(self) -> None:
        if self._timer is not None:
            self._timer.retire()
            self._timer = None

    def _out_of_patience(self) -> None:
        if not (self.ended or self.channel.eof):
            self.door.log_rejection("no memory left for strangers", held=self.door.budget.held)
        self.channel.abort()


def _http2(engine: Engine, accepted: Accepted, app: HttpApp, limits: Limits) -> Http2Channel:
    """HTTP/2 is loaded when somebody speaks it: h2 and what it brings is what a start would wait for most."""
    from svc_proto.engine.http2_channel import Http2Channel  # noqa: PLC0415, RUF100

    return Http2Channel(engine, accepted, app, limits)
