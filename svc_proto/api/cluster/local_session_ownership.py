"""Which process has the turns of a session, as an API server has it that is alone: all of them are its own.

Everything here is called where something happens that other nodes of the service would have to agree on.
`LocalSessionOwnership` is the whole of it for one process.
`svc_proto.api.cluster.session_ownership.ClusterSessionOwnership` does the same by way of the cluster; the API does not
know which of the two it has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc_proto.api.runs.response_store import ResponseStore
from svc_proto.basics.metrics import MetricFamily
from svc_proto.engine.flow import Flow
from svc_proto.engine.message import Request, Response, StreamedResponse
from svc_proto.machines.auth_rate_limiter import AuthRateLimiter

if TYPE_CHECKING:
    from svc_proto.api.service import Api

__all__ = ["LocalSessionOwnership"]


class LocalSessionOwnership:
    """See the module."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self.limiter = AuthRateLimiter()  # of who shows wrong keys

    def start(self) -> Flow[None]:
        """Meet the others, if they can be met."""
        yield from ()

    def stop(self) -> None:
        """Leave them."""

    def acquire(
        self, session_id: str, request: Request | None = None, key: str = ""
    ) -> Flow[Response | StreamedResponse | None]:
        """Have the turns of a session, until `release`; or what the node that has them answers to the request.

        Without a request one waits until they are to be had. With a `key` the request may be one that was made before:
        who has answered that answers it. `Refused` 503 if nobody can say who has what.
        """
        yield from ()
        return None

    def release(self, session_id: str) -> None:
        """What it was acquired for is over."""

    # --- places: how many turns there may be ---

    def check_capacity(self) -> Flow[None]:
        """For a turn that may not wait, before its body is read. `Refused` 429, or 503 if nobody can say."""
        yield from ()
        self.api.runs.registry.check_capacity()

    def reserve_slot(self, session_id: str, *, may_wait: bool) -> Flow[None]:
        """Let the turn that enters next have its place, where those are shared. `Refused` 429 or 503."""
        yield from ()

    def on_slot_freed(self) -> None:
        """A turn has left its place, and nobody else has it yet."""

    def on_ready_started(self) -> None:
        """Who can begin has begun."""

    # --- what is where ---

    def fence(self, session_id: str) -> int | None:
        """What goes with what is written into a session, so that the store refuses who was overtaken."""
        return None

    def lookup_run(self, request: Request, run_id: str) -> Flow[Response | StreamedResponse | None] | None:
        """The answer to a request for a run that is not known here; None: there is nowhere to ask."""
        return None

    def responses(self) -> ResponseStore:
        """Those that are kept."""
        return ResponseStore(self.api.engine)

    def metrics(self) -> list[MetricFamily]:
        """What a monitor is shown of the others."""
        return []
