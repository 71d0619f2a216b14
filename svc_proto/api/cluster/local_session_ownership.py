"""Session ownership for an API server that runs as a single node: the process owns every session.

`svc_proto.api.cluster.session_ownership.ClusterSessionOwnership` implements the same methods for several nodes.
"""

from collections.abc import Sequence
from typing import Protocol

from svc_proto.api.ports import StorePort
from svc_proto.api.runs.response_store import ResponseStore
from svc_proto.basics.metrics import MetricFamily
from svc_proto.engine.flow import Flow
from svc_proto.engine.message import Request, Response, StreamedResponse
from svc_proto.engine.router import Router
from svc_proto.machines.auth_rate_limiter import AuthRateLimiter
from svc_proto.machines.run_scheduler import RunScheduler

__all__ = ["LocalSessionOwnership"]


class NodeRuns(Protocol):
    """Runs of this node, as the ownership of sessions uses them."""

    registry: RunScheduler

    def __len__(self) -> int: ...
    def get(self, run_id: str) -> object | None:
        """Return a run that is live, or one of the newest ended runs for an hour after its end; else None."""

    def start_ready(self) -> None:
        """Start the waiting runs that have or get a slot, and have no earlier run in their session."""

    def stop_session_runs(self, session_id: str) -> Sequence[object]:
        """Stop every turn of a session, waiting ones included, and return the runs."""


class OwnershipPort(StorePort, Protocol):
    """Members of the API server that the ownership of sessions uses."""

    @property
    def router(self) -> Router:
        """The route table of the API server."""

    @property
    def runs(self) -> NodeRuns:
        """The runs of this node."""


class LocalSessionOwnership:
    """Session ownership of a single node, and the base class of `ClusterSessionOwnership`."""

    def __init__(self, api: OwnershipPort) -> None:
        self.api = api
        self.limiter = AuthRateLimiter()  # counts wrong keys by address

    def start(self) -> Flow[None]:
        """Do nothing. In a cluster, connect to the other nodes."""
        yield from ()

    def stop(self) -> None:
        """Do nothing. In a cluster, disconnect from the other nodes."""

    def acquire(
        self, session_id: str, request: Request | None = None, key: str = ""
    ) -> Flow[Response | StreamedResponse | None]:
        """Return None: this process owns every session.

        In a cluster, the method acquires the turns of the session until `release`, or returns the owner's answer to the
        request. Without a request it waits until the session is free. With a `key`, the request may repeat an earlier
        one, and the node that has the earlier run answers. It raises `Refused` 503 if the owner cannot be determined
        or does not answer, or if the session does not become free in time.
        """
        yield from ()
        return None

    def release(self, session_id: str) -> None:
        """Do nothing. In a cluster, release one use of the lease of a session, which `acquire` has acquired."""

    # --- slots: the number of concurrent turns ---

    def check_capacity(self) -> Flow[None]:
        """Raise `Refused` 429 if a turn that may not wait gets no slot; in a cluster, 503 if that is unknown."""
        yield from ()
        self.api.runs.registry.check_capacity()

    def reserve_slot(self, session_id: str, *, may_wait: bool) -> Flow[None]:
        """Do nothing: a single node has no shared slots.

        In a cluster, reserve a slot, or a place in the queue, for the turn that enters next; raise `Refused` 429 or
        503.
        """
        yield from ()

    def on_slot_freed(self) -> None:
        """Do nothing: a single node has no shared slots.

        In a cluster, release the shared slot of an ended turn, unless another turn of this node has taken it.
        """

    def on_ready_started(self) -> None:
        """Do nothing. In a cluster, release unused slots, and seek some for turns that wait for nothing else."""

    # --- location of runs and responses ---

    def fence(self, session_id: str) -> int | None:
        """Return None: a single node has no fencing tokens.

        In a cluster, return the token for writes into a session, None without a lease of it. The store refuses those
        of an earlier owner.
        """
        return None

    def lookup_run(self, request: Request, run_id: str) -> Flow[Response | StreamedResponse | None] | None:
        """Return None: there are no other nodes.

        In a cluster, look for a run that is unknown here at the other nodes, and return the answer of the node that has
        it.
        """
        return None

    def responses(self) -> ResponseStore:
        """Return a new store of `/v1/responses` entries for this server."""
        return ResponseStore(self.api.engine)

    def metrics(self) -> list[MetricFamily]:
        """Return an empty list. In a cluster, return the metrics of the cluster."""
        return []
