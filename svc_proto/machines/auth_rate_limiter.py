"""Rate limiter of authentication: five failures within a minute block an address for five minutes.

Spec "Rate limiting of WebSocket authentication". Times are monotonic. A failure counts while it is less than 60 s old.
Attempts of a blocked address change nothing. A success clears the count of an address, not its block. A successful
registration of a pairing code clears everything (wire core 5).

Both tables are bounded. A flood of addresses displaces the counter whose last failure is the oldest, never a block.
Blocks have their own table, where only a further block, which costs five failures, displaces the one that ends first.
"""

import ipaddress
from collections import deque
from enum import Enum
from functools import lru_cache
from math import ceil

from attrs import define, field

from svc_proto.basics.errors import Refused
from svc_proto.basics.expiring_map import ExpiringMap
from svc_proto.basics.moment import Moment
from svc_proto.machines.transitions import Table, step

__all__ = [
    "BLOCK_DURATION",
    "LOOPBACK",
    "LIMITER_TABLE",
    "MAX_ADDRESSES",
    "MAX_FAILURES",
    "WINDOW",
    "AuthRateLimiter",
    "LimiterState",
    "LimiterTrigger",
    "address_key",
]

LOOPBACK = ("127.0.0.1", "::1", "::ffff:127.0.0.1")  # addresses of programs on this host
MAX_FAILURES = 5  # spec "Limits"
WINDOW = 60.0  # s, spec "Limits"
BLOCK_DURATION = 300.0  # s, spec "Limits"
MAX_ADDRESSES = 10_000  # of each table
_MAX_KEY = 64  # characters of an address that is not an IP address


class LimiterState(Enum):
    """State of an address."""

    CLEAR = "clear"
    COUNTING = "counting"
    BLOCKED = "blocked"


class LimiterTrigger(Enum):
    """Event that can change the state of an address."""

    FAILURE = "failure"  # one of the first four within a minute
    FIFTH_FAILURE = "fifth failure"
    SUCCESS = "success"
    MINUTE_PASSED = "minute passed"  # since the last failure
    FIVE_MINUTES_PASSED = "five minutes passed"  # since the block began
    REGISTERED = "registered"  # a pairing code was registered: all blocks are cleared


LIMITER_TABLE: Table[LimiterState, LimiterTrigger] = {
    (LimiterState.CLEAR, LimiterTrigger.FAILURE): LimiterState.COUNTING,
    (LimiterState.COUNTING, LimiterTrigger.FAILURE): LimiterState.COUNTING,
    (LimiterState.COUNTING, LimiterTrigger.FIFTH_FAILURE): LimiterState.BLOCKED,
    (LimiterState.COUNTING, LimiterTrigger.SUCCESS): LimiterState.CLEAR,
    (LimiterState.COUNTING, LimiterTrigger.MINUTE_PASSED): LimiterState.CLEAR,
    (LimiterState.COUNTING, LimiterTrigger.REGISTERED): LimiterState.CLEAR,
    (LimiterState.BLOCKED, LimiterTrigger.FAILURE): LimiterState.BLOCKED,
    (LimiterState.BLOCKED, LimiterTrigger.SUCCESS): LimiterState.BLOCKED,
    (LimiterState.BLOCKED, LimiterTrigger.FIVE_MINUTES_PASSED): LimiterState.CLEAR,
    (LimiterState.BLOCKED, LimiterTrigger.REGISTERED): LimiterState.CLEAR,
}


@define
class _AddressRecord:
    failures: deque[float] = field(factory=lambda: deque(maxlen=MAX_FAILURES), init=False)
    blocked_until: float = field(default=0.0, init=False)
    state: LimiterState = field(default=LimiterState.CLEAR, init=False)

    def step(self, trigger: LimiterTrigger) -> None:
        self.state = step(LIMITER_TABLE, self.state, trigger)


class AuthRateLimiter:
    """Rate limiter of authentication attempts by address."""

    def __init__(self, cap: int = MAX_ADDRESSES) -> None:
        self._counting: ExpiringMap[str, _AddressRecord] = ExpiringMap(cap)
        self._blocked: ExpiringMap[str, _AddressRecord] = ExpiringMap(cap)
        self.blocks = 0  # number of blocks so far

    def failure(self, address: str, now: Moment) -> bool:
        """Count a failed attempt unless the address is blocked; return whether it is blocked now."""
        self._advance(now)
        key = address_key(address)
        entry = self._blocked.peek(key)
        if entry is not None:
            entry.step(LimiterTrigger.FAILURE)
            return True
        entry = self._counting.peek(key) or _AddressRecord()
        while entry.failures and now.mono - entry.failures[0] >= WINDOW:
            entry.failures.popleft()
        entry.failures.append(now.mono)
        if len(entry.failures) < MAX_FAILURES:
            entry.step(LimiterTrigger.FAILURE)
            self._counting.put(key, entry, now.mono + WINDOW)
            return False
        entry.step(LimiterTrigger.FIFTH_FAILURE)
        entry.blocked_until = now.mono + BLOCK_DURATION
        self._counting.discard(key)
        self.blocks += 1
        self._blocked.put(key, entry, entry.blocked_until)
        return True

    def success(self, address: str, now: Moment) -> None:
        """Clear the failures of an address; a block remains."""
        self._advance(now)
        key = address_key(address)
        entry = self._blocked.peek(key) or self._counting.peek(key)
        if entry is None:
            return
        entry.step(LimiterTrigger.SUCCESS)
        self._counting.discard(key)

    def blocked_for(self, address: str, now: Moment) -> float:
        """Return the seconds until the address may try again; 0.0 if not blocked."""
        self._advance(now)
        entry = self._blocked.peek(address_key(address))
        return 0.0 if entry is None else entry.blocked_until - now.mono

    def refusal(self, address: str, now: Moment, code: str, text: str) -> Refused | None:
        """Return 429 with `Retry-After` for a blocked address; None for any other."""
        blocked = self.blocked_for(address, now)
        if blocked <= 0:
            return None
        return Refused(429, code, text, headers=((b"retry-after", b"%d" % ceil(blocked)),))

    def state(self, address: str, now: Moment) -> LimiterState:
        """Return the state of an address."""
        self._advance(now)
        key = address_key(address)
        entry = self._blocked.peek(key) or self._counting.peek(key)
        return LimiterState.CLEAR if entry is None else entry.state

    def clear(self) -> None:
        """Clear all counts and blocks (spec: registering a code clears all blocks)."""
        for entry in (*self._counting.values(), *self._blocked.values()):
            entry.step(LimiterTrigger.REGISTERED)
        self._counting.clear()
        self._blocked.clear()

    def _advance(self, now: Moment) -> None:
        for _, entry in self._counting.purge(now.mono):
            entry.step(LimiterTrigger.MINUTE_PASSED)
        for _, entry in self._blocked.purge(now.mono):
            entry.step(LimiterTrigger.FIVE_MINUTES_PASSED)


@lru_cache(maxsize=1024)
def address_key(address: str) -> str:
    """Return the key by which an address is counted: itself for IPv4 (also as `::ffff:…`), its /64 for IPv6.

    One customer has a whole /64, so counting single IPv6 addresses would have no effect. Any other text (a name in a
    simulation, an invalid value of a proxy's header) is its own key, cut to 64 characters.
    """
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address[:_MAX_KEY]
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return f"{ipaddress.IPv6Address(int(parsed) >> 64 << 64)}/64"
