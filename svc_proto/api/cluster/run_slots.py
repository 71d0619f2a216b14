"""How many turns there may be at all nodes of a service together: see `ownership`, `svc_proto.cluster.semaphore`.

The cap of a node's `RunScheduler` is what the node has of the service's places. A turn gets one before it enters, or if
it may wait one in the line. What a turn leaves is given back. Where nobody waits at other nodes the next of this one
has it at once; else each node with somebody who waits looks for one now and then, and it goes to whoever looks first:
by lot, so that no node keeps the others waiting. At one node it goes to who has waited longest. While Redis is not
there the next of the same node has it.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from svc_proto.basics.errors import Refused
from svc_proto.cluster.leases import RENEW_INTERVAL, TAKEOVER_DELAY
from svc_proto.cluster.node import RETRY, cluster_unavailable_error
from svc_proto.cluster.semaphore import DistributedSemaphore
from svc_proto.engine.flow import Flow, Task, sleep
from svc_proto.engine.sync import Condition
from svc_proto.facts import Failure
from svc_proto.machines.run_scheduler import MAX_QUEUED, too_many_requests

if TYPE_CHECKING:
    from svc_proto.api.service import Api
    from svc_proto.cluster.node import Node

__all__ = ["MAX_POLL_INTERVAL", "ClusterRunSlots"]

MAX_POLL_INTERVAL = 0.5  # s from one look to the next, at the most


class ClusterRunSlots:
    """See the module."""

    def __init__(self, api: Api, node: Node) -> None:
        self._engine = api.engine
        self._runs = api.runs
        self._turns = api.runs.registry
        self._node = node
        self._cap = api.config.max_concurrent_runs  # 0: no limit
        self._places = DistributedSemaphore(node, "turns", self._cap)
        self._line = DistributedSemaphore(node, "line", MAX_QUEUED)
        self._timer = api.engine.timers.timer(self.renew)
        self._freed = Condition(api.engine)
        self._seeking: Task | None = None
        self._count()

    def stop(self) -> None:
        """Keep nothing any more: what is still had is free when its time is up."""
        self._timer.cancel()
        if self._seeking is not None:
            self._seeking.cancel()

    def renew(self) -> None:
        """Have what is in use for longer; at times, and as soon as Redis is there again."""
        self.on_slot_freed()
        self._places.renew()
        self._line.renew()
        self._count()

    # --- see `LocalSessionOwnership` ---

    def check_capacity(self) -> Flow[None]:
        """For one that may not wait."""
        if self._cap and not _parse_reply((yield from self._places.has_free())):
            raise self._full()

    def reserve_slot(self, session_id: str, *, may_wait: bool) -> Flow[None]:
        """One place, for the turn that enters right after this."""
        turns = self._turns
        while self._cap and not (may_wait and turns.busy(session_id)):
            if len(self._places) > turns.slots:
                return
            if _parse_reply((yield from self._places.acquire())):
                self._count()
            elif may_wait:
                break
            else:
                raise self._full()
        waits = may_wait and (self._cap or turns.busy(session_id))
        if waits and len(self._line) <= turns.waiting:
            if not _parse_reply((yield from self._line.acquire())):
                raise too_many_requests("too many turns wait")
            self._count()

    def on_slot_freed(self) -> None:
        """Give back what nobody here is at."""
        if self._node.is_up:
            self._places.release_down_to(self._turns.slots)
            self._line.release_down_to(self._turns.waiting)
            self._count()

    def on_ready_started(self) -> None:
        """The same; and look for who waits."""
        self.on_slot_freed()
        self._freed.notify_all()
        if self._turns.waits_only_for_slot and self._seeking is None:
            self._seeking = self._engine.spawn(self._acquire_slot())

    # --- helpers ---

    def _count(self) -> None:
        """What we have is what there is here."""
        self._turns.cap = len(self._places) if self._cap else inf
        if not len(self._places) + len(self._line):
            self._timer.cancel()
        elif self._timer.when is None:
            self._timer.set(self._engine.now.mono + RENEW_INTERVAL)

    def _acquire_slot(self) -> Flow[None]:
        engine = self._engine
        while self._turns.waits_only_for_slot:
            alone = (yield from self._line.holds_all()) is True
            if not alone:
                yield from sleep(engine, MAX_POLL_INTERVAL * (1 + engine.entropy(1)[0]) / 256)
            while self._may_take() and (yield from self._places.acquire()) is True:
                self._count()
                self._runs.start_ready()
            if alone and self._turns.waits_only_for_slot:
                yield from self._freed.wait(engine.now.mono + MAX_POLL_INTERVAL)
        self._seeking = None

    def _may_take(self) -> bool:
        return self._turns.waits_only_for_slot and self._engine.now.mono >= self._node.up_since + TAKEOVER_DELAY

    def _full(self) -> Refused:
        return too_many_requests(f"{self._cap} runs are under way; the limit is {self._cap}")


def _parse_reply(answer: bool | Failure) -> bool:
    if isinstance(answer, Failure):
        raise cluster_unavailable_error("how many turns there are", RETRY)
    return answer
