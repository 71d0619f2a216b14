"""Places that the nodes of a service have in common: so many at all of them together, and no more.

A place is a member of a sorted set of Redis: whose it is, a number, and when it is free again unless who has it says
that it still does. So what a node had that was killed is free `LEASE` seconds later. A node that does not reach Redis
keeps what it has, and others may have as many by then: what is done at a place is not undone. When it is back, its own
count again, whoever was given more meanwhile, and nobody is given any before the sum is below the limit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc_proto.cluster.leases import LEASE, ODD
from svc_proto.engine.flow import Flow
from svc_proto.facts import Failure

if TYPE_CHECKING:
    from svc_proto.cluster.node import Node

__all__ = ["GIVE_BACK", "KEEP", "TAKE_PLACE", "Places"]

# One that is nobody's any more counts for nobody: it is taken out, and then all are counted.
TAKE_PLACE = """local places, place, most, span = KEYS[1], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZREMRANGEBYSCORE', places, '-inf', now)
if redis.call('ZCARD', places) >= most then return 0 end
if place ~= '' then
  redis.call('ZADD', places, now + span, place)
  redis.call('PEXPIRE', places, span)
end
return 1"""
KEEP = """local places, span = KEYS[1], tonumber(ARGV[1])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
for number = 2, #ARGV do redis.call('ZADD', places, now + span, ARGV[number]) end
redis.call('PEXPIRE', places, span)
return 1"""
GIVE_BACK = """return redis.call('ZREM', KEYS[1], unpack(ARGV))"""
AT_ONCE = 500  # places that are kept by one command


class Places:
    """Those of one kind, as one node has them: some of the `most` that there are."""

    def __init__(self, node: Node, kind: str, most: int) -> None:
        self._node = node
        self._key = node.key("places", kind)
        self._most = most
        self._mine: list[str] = []
        self._next = 0

    def __len__(self) -> int:
        return len(self._mine)

    def take(self) -> Flow[bool | Failure]:
        """Have one more; False if there is none."""
        self._next += 1
        place = f"{self._node.id}:{self._next}"
        answer = yield from self._take(place, self._most)
        if answer is True:
            self._mine.append(place)
        return answer

    def are_left(self) -> Flow[bool | Failure]:
        """Whether there are any."""
        return self._take("", self._most)

    def are_all_ours(self) -> Flow[bool | Failure]:
        """Whether no other node has one."""
        return self._take("", len(self._mine) + 1)

    def give_back(self, count: int) -> None:
        """Have no more than so many."""
        while len(self._mine) > count:
            over = self._mine[count:][:AT_ONCE]
            del self._mine[count : count + AT_ONCE]
            self._node.redis.tell("EVAL", GIVE_BACK, 1, self._key, *over)

    def keep(self) -> None:
        """Have them for longer; at times, and as soon as Redis is there again."""
        for first in range(0, len(self._mine), AT_ONCE):
            some = self._mine[first : first + AT_ONCE]
            self._node.redis.tell("EVAL", KEEP, 1, self._key, _SPAN, *some)

    def _take(self, place: str, most: int) -> Flow[bool | Failure]:
        answer = yield from self._node.redis.ask("EVAL", TAKE_PLACE, 1, self._key, place, most, _SPAN)
        if isinstance(answer, Failure):
            return answer
        return bool(answer) if answer in (0, 1) else ODD


_SPAN = int(LEASE * 1000)  # ms
