"""Leases: locks of one node in Redis, with an expiry and a fencing token.

A key lives `LEASE` seconds unless its owner renews it. A lease that expired while Redis was unreachable is renewed as
well, if no other node has taken it. Only the store can detect an owner in between.

Each acquisition at Redis has a fencing token: a number greater than any before. It goes with every write that the lease
permits, so that the store can refuse an overtaken owner. It is Redis's clock in microseconds, or the last token plus
one if that clock was set back. So a Redis that comes back empty, but with the right time, repeats none.

Several users within a node may share a lease. The last one to release it gives it back.
"""

from collections.abc import Callable
from functools import partial
from itertools import islice
from math import inf

from attrs import define

from svc_proto.cluster.node import Node
from svc_proto.cluster.redis_client import Reply
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.facts import Failure, FailureKind

__all__ = ["DROP", "LEASE", "RENEW", "RENEW_INTERVAL", "TAKEOVER_DELAY", "TAKE", "LeaseManager"]

LEASE = 4.0  # s for which a key lives without renewal
RENEW_INTERVAL = 1.0  # s
TAKEOVER_DELAY = 1.0  # s after Redis is back in which only previous owners get their leases
BATCH_SIZE = 500  # keys that one command renews
UNEXPECTED_REPLY = Failure(FailureKind.INTERNAL, "an answer of Redis that makes no sense")

# Each script compares and changes atomically, which no command of Redis 6.2 does.
TAKE = """local lease, fence = KEYS[1], KEYS[2]
local me, span = ARGV[1], ARGV[2]
local owner = redis.call('GET', lease)
if owner and owner ~= me then return {owner, '0'} end
local time = redis.call('TIME')
local number = math.max(tonumber(redis.call('GET', fence) or '0') + 1, time[1] * 1000000 + time[2])
redis.call('SET', fence, string.format('%.0f', number))
redis.call('SET', lease, me, 'PX', span)
return {me, string.format('%.0f', number)}"""
RENEW = """local me, span = ARGV[1], ARGV[2]
local mine = {}
for place, lease in ipairs(KEYS) do
  local owner = redis.call('GET', lease)
  mine[place] = 0
  if not owner or owner == me then
    redis.call('SET', lease, me, 'PX', span)
    mine[place] = 1
  end
end
return mine"""
DROP = """local lease, me = KEYS[1], ARGV[1]
if redis.call('GET', lease) == me then return redis.call('DEL', lease) end
return 0"""


@define(eq=False)
class _Lease:
    name: str
    users: int = 0
    fence: int = 0  # 0: not acquired yet
    until: float = -inf  # monotonic s; no other node can have the lease before
    lost: bool = False


class LeaseManager:
    """Leases of this node, whose name is `owner`.

    `lost` is called with the name of a lease that another node has taken, `lapsed` with one that was renewed after its
    expiry.
    """

    def __init__(
        self, engine: Engine, node: Node, owner: str, lost: Callable[[str], None], lapsed: Callable[[str], None]
    ) -> None:
        self._engine = engine
        self._node = node
        self._owner = owner
        self._lost = lost
        self._lapsed = lapsed
        self._leases: dict[str, _Lease] = {}
        self._timer = engine.timers.timer(self.renew)

    def __len__(self) -> int:
        return len(self._leases)

    def stop(self) -> None:
        """Stop renewing."""
        self._timer.cancel()

    def fencing_token(self, name: str) -> int | None:
        """Return the latest fencing token of a lease, 0 before it was acquired; None for a lease without a use."""
        lease = self._leases.get(name)
        return lease.fence if lease is not None else None

    def has(self, name: str) -> bool:
        """Report whether this node has the lease and no other can have it now; False while disconnected from Redis."""
        lease = self._leases.get(name)
        return lease is not None and self._node.is_up and lease.until > self._engine.now.mono

    def acquire(self, name: str) -> Flow[str | Failure]:
        """Acquire a lease until `release`. Return an empty string, or the owner's name if another node has it.

        Return a `Failure` if Redis does not answer as expected. Only a lease that was acquired is to be released.
        """
        engine, lease, taken = self._engine, self._leases.setdefault(name, _Lease(name)), False
        lease.users += 1
        try:
            taken = self.has(name)
            if taken:
                return ""
            asked, span = engine.now.mono, _clamp_ttl()
            answer = yield from self._node.redis.execute(
                "EVAL", TAKE, 2, self._key(name), self._node.key("fence"), self._owner, span
            )
            match answer:
                case [bytes(owner), bytes(fence)] if owner.decode("utf-8", "replace") != self._owner:
                    return owner.decode("utf-8", "replace")
                case [bytes(), bytes(fence)] if fence.isdigit():
                    taken = True
                    lease.fence, lease.until, lease.lost = int(fence), asked + LEASE, False
                    if self._timer.when is None:
                        self._timer.set(engine.now.mono + RENEW_INTERVAL)
                    return ""
                case Failure():
                    return answer
                case _:
                    return UNEXPECTED_REPLY
        finally:
            if not taken:
                self.release(name)

    def release(self, name: str) -> None:
        """Release one use of a lease; the last one sends the deletion of its key, without waiting for a reply."""
        lease = self._leases[name]
        lease.users -= 1
        if not lease.users:
            del self._leases[name]
            self._node.redis.send("EVAL", DROP, 1, self._key(name), self._owner)

    def renew(self) -> None:
        """Renew all acquired leases; called each `RENEW_INTERVAL`, and as soon as Redis is back."""
        engine, names = self._engine, iter([lease.name for lease in self._leases.values() if lease.fence])
        self._timer.cancel()
        if self._leases:
            self._timer.set(engine.now.mono + RENEW_INTERVAL)
        while some := list(islice(names, BATCH_SIZE)):
            keys = map(self._key, some)
            take = partial(self._renewed, some, engine.now.mono + LEASE)
            self._node.redis.send("EVAL", RENEW, len(some), *keys, self._owner, _clamp_ttl(), take=take)

    def _renewed(self, names: list[str], until: float, answer: Reply) -> None:
        if not isinstance(answer, list):
            return  # Redis is unreachable: a lease is kept until Redis reports another owner
        for name, mine in zip(names, answer, strict=False):
            lease = self._leases.get(name)
            if lease is None or lease.lost:
                continue
            if mine == 1:
                lapsed, lease.until = lease.until <= self._engine.now.mono, max(lease.until, until)
                if lapsed:
                    self._lapsed(name)
            else:
                lease.lost, lease.until = True, -inf
                self._lost(name)

    def _key(self, name: str) -> str:
        return self._node.key("lease", name)


def _clamp_ttl() -> int:
    return int(LEASE * 1000)
