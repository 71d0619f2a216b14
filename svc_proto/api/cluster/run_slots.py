"""Limit of concurrent turns for all nodes of a service together, see `svc_proto.cluster.semaphore`.

The cap of a node's `RunScheduler` is the number of slots that the node holds. A node with turns that wait for nothing
but a slot polls for free ones: at random intervals if turns wait at other nodes too, so that no node starves another.
"""

from math import inf

from svc_proto.api.cluster.local_session_ownership import OwnershipPort
from svc_proto.basics.errors import Refused
from svc_proto.cluster.leases import RENEW_INTERVAL, TAKEOVER_DELAY
from svc_proto.cluster.node import RETRY, Node, cluster_unavailable_error
from svc_proto.cluster.semaphore import DistributedSemaphore
from svc_proto.engine.flow import Flow, Task, sleep
from svc_proto.engine.sync import Condition
from svc_proto.facts import Failure
from svc_proto.machines.run_scheduler import MAX_QUEUED, too_many_requests

__all__ = ["MAX_POLL_INTERVAL", "ClusterRunSlots"]

MAX_POLL_INTERVAL = 0.5  # s between two polls, at most


class ClusterRunSlots:
    """Slots of this node for running turns and for waiting turns."""

    def __init__(self, api: OwnershipPort, node: Node) -> None:
        self._engine = api.engine
        self._runs = api.runs
        self._turns = api.runs.registry
        self._node = node
        self._cap = api.config.max_concurrent_runs  # 0: no limit
        self._semaphore = DistributedSemaphore(node, "turns", self._cap)
        self._line = DistributedSemaphore(node, "line", MAX_QUEUED)
        self._timer = api.engine.timers.timer(self.renew)
        self._freed = Condition(api.engine)
        self._seeking: Task | None = None
        self._count()

    def stop(self) -> None:
        """Stop renewing slots and polling for more: those that are still held expire."""
        self._timer.cancel()
        if self._seeking is not None:
            self._seeking.cancel()

    def renew(self) -> None:
        """Release unused slots and queue places as `on_slot_freed` does, and renew the others.

        Called periodically while this node holds any, and as soon as Redis is reachable again.
        """
        self.on_slot_freed()
        self._semaphore.renew()
        self._line.renew()
        self._count()

    # --- as in `LocalSessionOwnership` ---

    def check_capacity(self) -> Flow[None]:
        """Check that a turn that may not wait gets a slot. Raises `Refused` 429 or 503."""
        if self._cap and not _parse_reply((yield from self._semaphore.has_free())):
            raise self._full()

    def reserve_slot(self, session_id: str, *, may_wait: bool) -> Flow[None]:
        """Reserve a slot for the turn that enters right after this call.

        With `may_wait`, reserve a place in the queue instead if the session is busy or no slot is free. Raises
        `Refused` 429 or 503.
        """
        turns = self._turns
        while self._cap and not (may_wait and turns.busy(session_id)):
            if len(self._semaphore) > turns.slots:
                return
            if _parse_reply((yield from self._semaphore.acquire())):
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
        """Release the slots and queue places that no turn of this node uses, unless the node is disconnected."""
        if self._node.is_up:
            self._semaphore.release_down_to(self._turns.slots)
            self._line.release_down_to(self._turns.waiting)
            self._count()

    def on_ready_started(self) -> None:
        """Release unused slots while connected; start to poll for more if a turn waits for nothing but a slot."""
        self.on_slot_freed()
        self._freed.notify_all()
        if self._turns.waits_only_for_slot and self._seeking is None:
            self._seeking = self._engine.spawn(self._acquire_slot())

    # --- helpers ---

    def _count(self) -> None:
        """Set the cap of this node's turns to the number of slots held, and start or stop the renewal timer.

        Without a limit of concurrent turns, the cap is infinite.
        """
        self._turns.cap = len(self._semaphore) if self._cap else inf
        if not len(self._semaphore) + len(self._line):
            self._timer.cancel()
        elif self._timer.when is None:
            self._timer.set(self._engine.now.mono + RENEW_INTERVAL)

    def _acquire_slot(self) -> Flow[None]:
        engine = self._engine
        while self._turns.waits_only_for_slot:
            alone = (yield from self._line.holds_all()) is True
            if not alone:
                yield from sleep(engine, MAX_POLL_INTERVAL * (1 + engine.entropy(1)[0]) / 256)
            while self._can_acquire() and (yield from self._semaphore.acquire()) is True:
                self._count()
                self._runs.start_ready()
            if alone and self._turns.waits_only_for_slot:
                yield from self._freed.wait(engine.now.mono + MAX_POLL_INTERVAL)
        self._seeking = None

    def _can_acquire(self) -> bool:
        return self._turns.waits_only_for_slot and self._engine.now.mono >= self._node.up_since + TAKEOVER_DELAY

    def _full(self) -> Refused:
        return too_many_requests(f"{self._cap} runs are under way; the limit is {self._cap}")


def _parse_reply(answer: bool | Failure) -> bool:
    if isinstance(answer, Failure):
        raise cluster_unavailable_error("how many turns there are", RETRY)
    return answer
