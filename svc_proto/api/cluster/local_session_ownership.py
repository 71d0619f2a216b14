"""Session ownership for an API server that runs as a single node: the process owns every session.

The methods are called at each event on which the nodes of a service would have to agree. `LocalSessionOwnership` is
the whole implementation for one process. `svc_proto.api.cluster.session_ownership.ClusterSessionOwnership` implements
the same methods over the cluster; the API uses either without a distinction.
"""

from __future__ import annotations

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
        """Return a run that is live or ended less than an hour ago, or None."""

    def start_ready(self) -> None:
        """Start the waiting runs that have a slot and no earlier run in their session."""

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
        """Connect to the other nodes; a single node has none."""
        yield from ()

    def stop(self) -> None:
        """Disconnect from the other nodes; a single node has none."""

    def acquire(
        self, session_id: str, request: Request | None = None, key: str = ""
    ) -> Flow[Response | StreamedResponse | None]:
        """Acquire the turns of a session until `release`, or return the owner's answer to the request; here None.

        Without a request, wait until the session is free. With a `key`, the request may repeat an earlier one, and the
        node that has the earlier run answers. Raises `Refused` 503 if the owner cannot be determined.
        """
        yield from ()
        return None

    def release(self, session_id: str) -> None:
        """Release a session after `acquire`; a single node does nothing."""

    # --- slots: the number of concurrent turns ---

    def check_capacity(self) -> Flow[None]:
        """Raise `Refused` 429 if a turn that may not wait gets no slot; in a cluster, 503 if that is unknown."""
        yield from ()
        self.api.runs.registry.check_capacity()

    def reserve_slot(self, session_id: str, *, may_wait: bool) -> Flow[None]:
        """Reserve a slot among the nodes for the turn that enters next; a single node does nothing.

        Raises `Refused` 429 or 503.
        """
        yield from ()

    def on_slot_freed(self) -> None:
        """Release a turn's shared slot, unless another turn of this node has taken it; a single node does nothing."""

    def on_ready_started(self) -> None:
        """Acquire shared slots for the turns that still wait; a single node does nothing."""

    # --- location of runs and responses ---

    def fence(self, session_id: str) -> int | None:
        """Return the fencing token for writes into a session; the store refuses an earlier owner's.

        A single node has none.
        """
        return None

    def lookup_run(self, request: Request, run_id: str) -> Flow[Response | StreamedResponse | None] | None:
        """Return the owner's answer to a request for a run that is unknown here; None: there are no other nodes."""
        return None

    def responses(self) -> ResponseStore:
        """Return a new store of `/v1/responses` entries for this server."""
        return ResponseStore(self.api.engine)

    def metrics(self) -> list[MetricFamily]:
        """Return the metrics of the cluster; empty for a single node."""
        return []
