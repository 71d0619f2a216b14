"""Memory budget of unauthenticated connections: one total, and a share of it for each address.

Each connection reports how many bytes it holds. A connection that exceeds the budget has to wait. Reading resumes where
there is room, one address after the other. The owner of a connection limits the time to wait.

| state   | trigger          | next    |                                                                          |
|---------|------------------|---------|--------------------------------------------------------------------------|
| READING | BUDGET_EXCEEDED  | WAITING | the budget or the share of its address is spent: nothing is read from it |
| WAITING | BUDGET_EXCEEDED  | WAITING |                                                                          |
| WAITING | BUDGET_AVAILABLE | READING |                                                                          |
| any     | LEAVE            | GONE    | its connection closed, or is authenticated: it counts no more            |

Bytes that were read before a connection had to wait are kept, so the budget may be exceeded by a quarter. A connection
whose bytes exceed that as well has to be closed. An address is the rate limiter's `address_key`. Programs on this host
have an unlimited share: a proxy may be one.
"""

from __future__ import annotations

from enum import Enum

from attrs import define, field

from svc_proto.machines.auth_rate_limiter import LOOPBACK, address_key
from svc_proto.machines.transitions import Table, step

__all__ = ["BUDGET_TABLE", "READ_SIZE", "BudgetedConnection", "BudgetState", "BudgetTrigger", "UnauthenticatedBudget"]

READ_SIZE = 64 * 1024  # bytes: room that one connection needs to resume


class BudgetState(Enum):
    """State of an unauthenticated connection."""

    READING = "reading"
    WAITING = "waiting"
    GONE = "gone"


class BudgetTrigger(Enum):
    """Event that can change the state of an unauthenticated connection."""

    BUDGET_EXCEEDED = "budget exceeded"
    BUDGET_AVAILABLE = "budget available"
    LEAVE = "leave"


BUDGET_TABLE: Table[BudgetState, BudgetTrigger] = {
    (BudgetState.READING, BudgetTrigger.BUDGET_EXCEEDED): BudgetState.WAITING,
    (BudgetState.WAITING, BudgetTrigger.BUDGET_EXCEEDED): BudgetState.WAITING,
    (BudgetState.WAITING, BudgetTrigger.BUDGET_AVAILABLE): BudgetState.READING,
    **{(state, BudgetTrigger.LEAVE): BudgetState.GONE for state in BudgetState},
}


@define(eq=False)
class _AddressUsage:
    key: str | None  # None: this host, or not determined yet
    held: int = 0
    peers: int = 0
    waiting: dict[BudgetedConnection, None] = field(factory=dict)  # the longest wait first


class BudgetedConnection:
    """An unauthenticated connection, and the bytes held for it."""

    __slots__ = ("address", "held", "state")

    address: _AddressUsage  # set by `UnauthenticatedBudget.admit`

    def __init__(self) -> None:
        self.held = 0
        self.state = BudgetState.READING

    def resume(self) -> None:
        """Continue reading; the budget calls it after a wait. By default, do nothing."""

    @property
    def waiting(self) -> bool:
        """Report whether reading is paused."""
        return self.state is BudgetState.WAITING


class UnauthenticatedBudget:
    """Budget of all unauthenticated connections: `budget` and `share` in bytes, `most` connections per address."""

    def __init__(self, *, budget: int, share: int, most: int) -> None:
        self.held = 0
        self.peers = 0
        self._budget = budget
        self._share = share
        self._most = most
        self._local_usage = _AddressUsage(None)
        self._addresses: dict[str, _AddressUsage] = {}
        self._ready: dict[_AddressUsage, None] = {}  # addresses within their share that have a waiting connection

    def admit(self, peer: BudgetedConnection, host: str | None) -> bool:
        """Admit a connection; return False at the limit of its address.

        Connections from this host, and those with a host of None, have no limit.
        """
        address = self._address_of(host)
        if self._is_full(address):
            return False
        self._enter(peer, address)
        return True

    def change_address(self, peer: BudgetedConnection, host: str) -> bool:
        """Count a connection for the address that a proxy has forwarded.

        Return False, without a change, at the limit of that address; the caller then has to refuse the request.
        """
        address = self._address_of(host)
        if peer.state is BudgetState.GONE or address is peer.address:
            return True
        if self._is_full(address):
            return False
        self._exit(peer)
        self._enter(peer, address)
        self._make_room()
        return True

    def update_usage(self, peer: BudgetedConnection, size: int) -> bool:
        """Set the bytes that a connection holds; return False if it must be closed.

        Mark it as waiting if it exceeds the budget, and resume waiting connections for which there is room.
        """
        change = size - peer.held
        if not change or peer.state is BudgetState.GONE:
            return True
        address = peer.address
        peer.held = size
        self.held += change
        address.held += change
        if change > 0 and (self.held > self._budget or not self._fits(address)):
            peer.state = step(BUDGET_TABLE, peer.state, BudgetTrigger.BUDGET_EXCEEDED)
            address.waiting[peer] = None
        if address.waiting:
            self._sort(address)
        if change < 0 or peer.waiting:
            self._make_room()
        return change < 0 or self.held <= self._budget + self._budget // 4

    def remove(self, peer: BudgetedConnection) -> None:
        """Remove a connection that is closed or authenticated."""
        if peer.state is not BudgetState.GONE:
            self._exit(peer)
            peer.state = step(BUDGET_TABLE, peer.state, BudgetTrigger.LEAVE)
            self._make_room()

    # --- helpers ---

    def _address_of(self, host: str | None) -> _AddressUsage:
        if host is None or host in LOOPBACK:
            return self._local_usage
        key = address_key(host)
        return self._addresses.get(key) or _AddressUsage(key)

    def _is_full(self, address: _AddressUsage) -> bool:
        return address is not self._local_usage and address.peers >= self._most

    def _fits(self, address: _AddressUsage) -> bool:
        return address is self._local_usage or address.held <= self._share

    def _enter(self, peer: BudgetedConnection, address: _AddressUsage) -> None:
        peer.address = address
        if address.key is not None:
            self._addresses[address.key] = address
        address.peers += 1
        self.peers += 1
        address.held += peer.held
        self.held += peer.held
        if peer.waiting:
            address.waiting[peer] = None
        if address.waiting:
            self._sort(address)

    def _exit(self, peer: BudgetedConnection) -> None:
        address = peer.address
        address.peers -= 1
        self.peers -= 1
        address.held -= peer.held
        self.held -= peer.held
        if address.waiting:
            address.waiting.pop(peer, None)
            self._sort(address)
        if address.key is not None and not address.peers:
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
            peer = next(iter(address.waiting))
            del address.waiting[peer]
            self._sort(address)  # behind the other addresses, if another connection waits there
            peer.state = step(BUDGET_TABLE, peer.state, BudgetTrigger.BUDGET_AVAILABLE)
            room -= READ_SIZE
            peer.resume()
