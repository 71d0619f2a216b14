"""What all peers that nobody knows yet may hold of our memory: one budget, and a share of it for each address.

A guest is a connection whose peer has not said who it is. It tells after each read how much it holds, so everything
here is a few additions. Who makes it too much waits, the newest first by nature: those who came earlier have their
bytes already. Reading goes on where there is room again, address by address in turn. The owner of a guest gives it
only so long to wait, and what it held is free then. Who is heard out at once, as every phone is, holds nothing in
between and never waits, however full it is.

| state   | trigger | next    |                                                                              |
|---------|---------|---------|------------------------------------------------------------------------------|
| READING | CROWD   | WAITING | the budget or the share of its address is spent: nothing is read from it     |
| WAITING | CROWD   | WAITING |                                                                              |
| WAITING | ROOM    | READING |                                                                              |
| any     | LEAVE   | GONE    | its connection closed, or somebody vouched for it: it counts no more         |

What was read when a guest had to wait is kept, so the budget may be passed by a quarter; then the newest goes at once.
An address is what the limiter takes for one. Programs on this host have a share without a limit: a proxy may be one.
"""

from __future__ import annotations

from enum import Enum

from attrs import define, field

from svc_proto.machines.auth_rate_limiter import LOOPBACK, address_key
from svc_proto.machines.transitions import Table, step

__all__ = ["BUDGET_TABLE", "READ_SIZE", "BudgetedConnection", "BudgetState", "BudgetTrigger", "UnauthenticatedBudget"]

READ_SIZE = 64 * 1024  # bytes: what one guest is given room for when it may go on


class BudgetState(Enum):
    """Where a guest is."""

    READING = "reading"
    WAITING = "waiting"
    GONE = "gone"


class BudgetTrigger(Enum):
    """What moves it."""

    BUDGET_EXCEEDED = "crowd"
    BUDGET_AVAILABLE = "room"
    LEAVE = "leave"


BUDGET_TABLE: Table[BudgetState, BudgetTrigger] = {
    (BudgetState.READING, BudgetTrigger.BUDGET_EXCEEDED): BudgetState.WAITING,
    (BudgetState.WAITING, BudgetTrigger.BUDGET_EXCEEDED): BudgetState.WAITING,
    (BudgetState.WAITING, BudgetTrigger.BUDGET_AVAILABLE): BudgetState.READING,
    **{(state, BudgetTrigger.LEAVE): BudgetState.GONE for state in BudgetState},
}


@define(eq=False)
class _AddressUsage:
    key: str | None  # None: this host, or nobody knows yet
    held: int = 0
    guests: int = 0
    waiting: dict[BudgetedConnection, None] = field(factory=dict)  # the one that waits longest first


class BudgetedConnection:
    """One connection of a peer that nobody knows yet, and what is held for it."""

    __slots__ = ("address", "held", "state")

    address: _AddressUsage  # from `UnauthenticatedBudget.admit` on

    def __init__(self) -> None:
        self.held = 0
        self.state = BudgetState.READING

    def resume(self) -> None:
        """The guest had to wait, and may be read on."""

    @property
    def waiting(self) -> bool:
        """Whether the guest has to wait: nothing is read from it meanwhile."""
        return self.state is BudgetState.WAITING


class UnauthenticatedBudget:
    """All `guests`. `budget` and `share` are in bytes, `most` is the number of guests of an address."""

    def __init__(self, *, budget: int, share: int, most: int) -> None:
        self.held = 0
        self.guests = 0
        self._budget = budget
        self._share = share
        self._most = most
        self._here = _AddressUsage(None)
        self._addresses: dict[str, _AddressUsage] = {}
        self._ready: dict[_AddressUsage, None] = {}  # have somebody who waits, and are within their share

    def admit(self, guest: BudgetedConnection, host: str | None) -> bool:
        """Somebody came from there; False: too many have already. A host that is None has no share of its own."""
        address = self._address_of(host)
        if self._is_full(address):
            return False
        self._enter(guest, address)
        return True

    def change_address(self, guest: BudgetedConnection, host: str) -> bool:
        """A proxy said where it comes from; False: too many have already, and it has to go."""
        address = self._address_of(host)
        if guest.state is BudgetState.GONE or address is guest.address:
            return True
        if self._is_full(address):
            return False
        self._exit(guest)
        self._enter(guest, address)
        self._make_room()
        return True

    def update_usage(self, guest: BudgetedConnection, size: int) -> bool:
        """A guest holds so many bytes now, and may have to wait; False: it has to go."""
        change = size - guest.held
        if not change or guest.state is BudgetState.GONE:
            return True
        address = guest.address
        guest.held = size
        self.held += change
        address.held += change
        if change > 0 and (self.held > self._budget or not self._fits(address)):
            guest.state = step(BUDGET_TABLE, guest.state, BudgetTrigger.BUDGET_EXCEEDED)
            address.waiting[guest] = None
        if address.waiting:
            self._sort(address)
        if change < 0 or guest.waiting:
            self._make_room()
        return change < 0 or self.held <= self._budget + self._budget // 4

    def remove(self, guest: BudgetedConnection) -> None:
        """The guest has gone, or is known now."""
        if guest.state is not BudgetState.GONE:
            self._exit(guest)
            guest.state = step(BUDGET_TABLE, guest.state, BudgetTrigger.LEAVE)
            self._make_room()

    # --- helpers ---

    def _address_of(self, host: str | None) -> _AddressUsage:
        if host is None or host in LOOPBACK:
            return self._here
        key = address_key(host)
        return self._addresses.get(key) or _AddressUsage(key)

    def _is_full(self, address: _AddressUsage) -> bool:
        return address is not self._here and address.guests >= self._most

    def _fits(self, address: _AddressUsage) -> bool:
        return address is self._here or address.held <= self._share

    def _enter(self, guest: BudgetedConnection, address: _AddressUsage) -> None:
        guest.address = address
        if address.key is not None:
            self._addresses[address.key] = address
        address.guests += 1
        self.guests += 1
        address.held += guest.held
        self.held += guest.held
        if guest.waiting:
            address.waiting[guest] = None
        if address.waiting:
            self._sort(address)

    def _exit(self, guest: BudgetedConnection) -> None:
        address = guest.address
        address.guests -= 1
        self.guests -= 1
        address.held -= guest.held
        self.held -= guest.held
        if address.waiting:
            address.waiting.pop(guest, None)
            self._sort(address)
        if address.key is not None and not address.guests:
            del self._addresses[address.key]

    def _sort(self, address: _AddressUsage) -> None:
        if address.waiting and self._fits(address):
            self._ready.setdefault(address)
        else:
            self._ready.pop(address, None)

    def _make_room(self) -> None:
        room = self._budget - self.held
        while room >= 0 and self._ready:
            address = next(iter(self._ready))
            del self._ready[address]
            guest = next(iter(address.waiting))
            del address.waiting[guest]
            self._sort(address)  # at the end of the line, if somebody else waits there
            guest.state = step(BUDGET_TABLE, guest.state, BudgetTrigger.BUDGET_AVAILABLE)
            room -= READ_SIZE
            guest.resume()
