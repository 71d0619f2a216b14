"""Places that the nodes of a service have in common: so many at all of them together, and no more.

A place is a member of a sorted set of Redis: whose it is, a number, and when it is free again unless who has it says
that it still does. So what a node had that was killed is free `LEASE` seconds later. A node that does not reach Redis
keeps what it has, and others may have as many by then: what is done at a place is not undone. When it is back, its own
count again, whoever was given more meanwhile, and nobody is given any before the sum is below the limit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc_proto.cluster.leases import LEASE, UNEXPECTED_REPLY
from svc_proto.engine.flow import Flow
from svc_proto.facts import Failure

if TYPE_CHECKING:
    from svc_proto.cluster.node import Node

__all__ = ["RELEASE_SCRIPT", "RENEW_SCRIPT", "ACQUIRE_SCRIPT", "DistributedSemaphore"]

# One that is nobody's any more counts for nobody: it is taken out, and then all are counted.
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
BATCH_SIZE = 500  # places that are kept by one command


class DistributedSemaphore:
    """Those of one kind, as one node has them: some of the `most` that there are."""

    def __init__(self, node: Node, kind: str, most: int) -> None:
        self._node = node
        self._key = node.key("places", kind)
        self._most = most
        self._mine: list[str] = []
        self._next = 0

    def __len__(self) -> int:
        return len(self._mine)

    def acquire(self) -> Flow[bool | Failure]:
        """Have one more; False if there is none."""
        self._next += 1
        place = f"{self._node.id}:{self._next}"
        answer = yield from self._acquire_one(place, self._most)
        if answer is True:
            self._mine.append(place)
        return answer

    def has_free(self) -> Flow[bool | Failure]:
        """Whether there are any."""
        return self._acquire_one("", self._most)

    def holds_all(self) -> Flow[bool | Failure]:
        """Whether no other node has one."""
        return self._acquire_one("", len(self._mine) + 1)

    def release_down_to(self, count: int) -> None:
        """Have no more than so many."""
        while len(self._mine) > count:
            over = self._mine[count:][:BATCH_SIZE]
            del self._mine[count : count + BATCH_SIZE]
            self._node.redis.send("EVAL", RELEASE_SCRIPT, 1, self._key, *over)

    def renew(self) -> None:
        """Have them for longer; at times, and as soon as Redis is there again."""
        for first in range(0, len(self._mine), BATCH_SIZE):
            some = self._mine[first : first + BATCH_SIZE]
            self._node.redis.send("EVAL", RENEW_SCRIPT, 1, self._key, _SPAN, *some)

    def _acquire_one(self, place: str, most: int) -> Flow[bool | Failure]:
        answer = yield from self._node.redis.execute("EVAL", ACQUIRE_SCRIPT, 1, self._key, place, most, _SPAN)
        if isinstance(answer, Failure):
            return answer
        return bool(answer) if answer in (0, 1) else UNEXPECTED_REPLY


_SPAN = int(LEASE * 1000)  # ms
