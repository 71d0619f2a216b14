"""Semaphore that all nodes of a service share: a sorted set in Redis, whose slots expire unless they are renewed.

A slot is a member of the set: the node's id, a number, and the time of its expiry. So the slots of a killed node are
free after `LEASE` seconds. A node that cannot reach Redis keeps its slots, while others may acquire as many: work in
progress is not undone. After it reconnects, its slots count again, even above the limit. No node then acquires one
until the sum is below the limit.
"""

from svc_proto.cluster.leases import LEASE, UNEXPECTED_REPLY
from svc_proto.cluster.node import Node
from svc_proto.engine.flow import Flow
from svc_proto.facts import Failure

__all__ = ["RELEASE_SCRIPT", "RENEW_SCRIPT", "ACQUIRE_SCRIPT", "DistributedSemaphore"]

# Expired slots are removed before the rest are counted.
ACQUIRE_SCRIPT = """local places, place, most, span = KEYS[1], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZREMRANGEBYSCORE', places, '-inf', now)
if redis.call('ZCARD', places) >= most then return 0 end
if place ~= '' then
  redis.call('ZADD', places, now + span, place)
  redis.call('PEXPIRE', places, span)
end
return 1"""
RENEW_SCRIPT = """local places, span = KEYS[1], tonumber(ARGV[1])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
for number = 2, #ARGV do redis.call('ZADD', places, now + span, ARGV[number]) end
redis.call('PEXPIRE', places, span)
return 1"""
RELEASE_SCRIPT = """return redis.call('ZREM', KEYS[1], unpack(ARGV))"""
BATCH_SIZE = 500  # slots that one command renews


class DistributedSemaphore:
    """Slots of one kind that this node holds, out of `most` in the cluster."""

    def __init__(self, node: Node, kind: str, most: int) -> None:
        self._node = node
        self._key = node.key("places", kind)
        self._most = most
        self._places: list[str] = []
        self._next = 0

    def __len__(self) -> int:
        return len(self._places)

    def acquire(self) -> Flow[bool | Failure]:
        """Acquire one slot; return False if none is free, a `Failure` without a valid reply of Redis."""
        self._next += 1
        place = f"{self._node.id}:{self._next}"
        answer = yield from self._acquire_one(place, self._most)
        if answer is True:
            self._places.append(place)
        return answer

    def has_free(self) -> Flow[bool | Failure]:
        """Report whether the cluster has a free slot, without acquiring it; a `Failure` without a valid reply."""
        return self._acquire_one("", self._most)

    def holds_all(self) -> Flow[bool | Failure]:
        """Report whether Redis counts no more slots than this node holds; a `Failure` without a valid reply."""
        return self._acquire_one("", len(self._places) + 1)

    def release_down_to(self, count: int) -> None:
        """Release slots until `count` are left."""
        while len(self._places) > count:
            over = self._places[count:][:BATCH_SIZE]
            del self._places[count : count + BATCH_SIZE]
            self._node.redis.send("EVAL", RELEASE_SCRIPT, 1, self._key, *over)

    def renew(self) -> None:
        """Renew all slots; called at intervals, and as soon as Redis is back."""
        for first in range(0, len(self._places), BATCH_SIZE):
            some = self._places[first : first + BATCH_SIZE]
            self._node.redis.send("EVAL", RENEW_SCRIPT, 1, self._key, _SPAN, *some)

    def _acquire_one(self, place: str, most: int) -> Flow[bool | Failure]:
        answer = yield from self._node.redis.execute("EVAL", ACQUIRE_SCRIPT, 1, self._key, place, most, _SPAN)
        if isinstance(answer, Failure):
            return answer
        return bool(answer) if answer in (0, 1) else UNEXPECTED_REPLY


_SPAN = int(LEASE * 1000)  # ms
