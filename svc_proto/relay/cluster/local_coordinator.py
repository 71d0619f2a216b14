"""Coordination for a relay that runs as a single node.

`svc_proto.relay.cluster.coordinator.ClusterCoordinator` implements the same methods for several nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sized
from typing import TYPE_CHECKING, Protocol, TypeVar

from svc_proto.basics.errors import Refused
from svc_proto.basics.metrics import MetricFamily
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.engine.message import Request
from svc_proto.engine.router import HandlerResult
from svc_proto.facts import Failure
from svc_proto.machines.auth_rate_limiter import AuthRateLimiter
from svc_proto.machines.bridge_commands import BridgeCommands
from svc_proto.machines.paired_session import PairedSession
from svc_proto.machines.pairing_codes import PairingCodes, PairingMeta

if TYPE_CHECKING:
    from svc_proto.relay.session_records import SessionRecords
    from svc_proto.schema.relay_types import CommandJson

__all__ = ["LocalCoordinator", "PhoneRoute", "local_or_forwarded"]

T = TypeVar("T")


class PhoneRoute(Protocol):
    """Route by which messages reach a phone."""

    def send_text(self, text: str, /) -> bool:
        """Send the phone a message; return False if that is no longer possible."""
        ...


class CoordinatorPort(Protocol):
    """Members of the relay that the coordination of a node uses."""

    engine: Engine
    codes: PairingCodes
    bridge: BridgeCommands

    def online(self) -> frozenset[str]:
        """Return the token hashes of the sessions that have an open socket."""


class LocalCoordinator:
    """Coordinator of a single node; base class of the cluster's coordinator."""

    moves: Sized = ()  # phones that move from a stopping node to others

    def __init__(self, relay: CoordinatorPort) -> None:
        self.relay = relay
        self.limiter = AuthRateLimiter()

    def load_sessions(self, records: SessionRecords) -> Flow[Failure | None]:
        """Load the stored sessions at the start, if there is a store.

        Return a `Failure` if they, or the tombstones of any, cannot be read, else None.
        """
        return records.load()

    def start(self) -> Flow[None]:
        """Join the cluster; a single node does nothing."""
        yield from ()

    def stop(self) -> Flow[None] | None:
        """Return a flow that moves the clients to other nodes and leaves the cluster; None for a single node."""
        return None

    def broadcast(self, word: str, body: Mapping[str, object]) -> None:
        """Send a message to every other node; a single node has none."""

    # --- codes: the nodes must agree on the consumer ---

    def register_code(self, code: str, meta: PairingMeta) -> Flow[None]:
        """Register a code. Raise `Refused` 400 for an invalid one; in a cluster, 503 without Redis."""
        yield from ()
        self.relay.codes.register(code, self.relay.engine.now, meta)

    def consume_code(self, code: str) -> Flow[PairingMeta | None]:
        """Consume a code and return its metadata; None if unknown, used or expired.

        In a cluster, raise `Refused` 503 without Redis.
        """
        yield from ()
        return self.relay.codes.consume(code, self.relay.engine.now)

    # --- sessions: events for the other nodes ---

    def session_saved(self, session: PairedSession) -> None:
        """Publish to other nodes that the session's present state is stored; a single node does nothing."""

    def session_ended(self, session: PairedSession) -> None:
        """Publish to other nodes that the session was revoked; a single node does nothing."""

    def lookup_session(self, token: str, *, agents: bool = False) -> Flow[object] | None:
        """Return a flow that looks up a session which this node does not have; None for a single node.

        With `agents`, the token may be an OAuth access token. The flow raises `Refused` 503.
        """
        return None

    def wait_until_loaded(self, within: float = 0.0) -> Flow[None]:
        """Wait until all stored sessions are loaded; a single node does not wait.

        In a cluster, raise `Refused` 503 after `within` seconds.
        """
        yield from ()

    def flush(self) -> Flow[None]:
        """Do nothing for a single node.

        In a cluster, wait until Redis has received the messages that this node has sent; raise `Refused` 503 otherwise.
        """
        yield from ()

    def flush_best_effort(self) -> Flow[None]:
        """Wait as `flush` does, but never raise; a single node does not wait."""
        yield from ()

    def sync_sessions(self) -> Flow[None]:
        """Load changed sessions that another node stored; a single node does nothing.

        Callers do this before they report that a session does not exist.
        """
        yield from ()

    def online_sessions(self) -> Flow[frozenset[str]]:
        """Return the token hashes of the sessions that have an open socket."""
        yield from ()
        return self.relay.online()

    # --- phones: their nodes and messages ---

    def phone_connected(self, socket: int, replaced: int | None) -> None:
        """Publish to other nodes that client `socket` is a phone, in place of client `replaced`, if any.

        A single node does nothing.
        """

    def phone_status_changed(self, socket: int) -> None:
        """Publish the phone's new status to other nodes; a single node does nothing."""

    def phone_disconnected(self, socket: int) -> None:
        """Publish to other nodes that the phone has disconnected; a single node does nothing."""

    def phone_selected(self) -> None:
        """Publish to other nodes which phone commands go to by default; a single node does nothing."""

    def notification_received(self, source: str, payload: Mapping[str, object]) -> None:
        """Publish a notification from a phone to other nodes; a single node does nothing."""

    def route_to_phone(self, socket: int) -> PhoneRoute | None:
        """Return the route to a phone of another node; None for a phone of this node, so always for a single node."""
        return None

    def wait_for_phone(self, selector: str | None) -> Flow[None]:
        """Wait for the phone of a command if it moves to another node; a single node does not wait."""
        yield from ()

    def explain_missing_phone(self, refused: Refused) -> Refused:
        """Return the refusal to raise for a missing phone; a single node returns the given one."""
        return refused

    def forward_answer(self, socket: int, payload: Mapping[str, object]) -> None:
        """Forward a phone's answer to the node that sent the command; a single node drops it."""

    def metrics(self) -> list[MetricFamily]:
        """Return the metrics of the connection to other nodes; empty for a single node."""
        return []

    def activity(self, limit: int) -> Flow[list[CommandJson]]:
        """Return the records of the last `limit` commands, newest first; in a cluster, those of other nodes too."""
        yield from ()
        return self.relay.bridge.records(limit)

    # --- objects of one node ---

    def terminal_owner_url(self, terminal: str) -> Flow[str]:
        """Return the address of another node that has this terminal; empty if none has it, and for a single node."""
        yield from ()
        return ""

    def lookup_consent(self, by: str, value: str) -> Flow[None] | None:
        """Return a flow that moves a consent request from another node to this one; None for a single node."""
        return None

    def forward_request(self, what: str, name: str, request: Request) -> Flow[HandlerResult | None] | None:
        """Return a flow that forwards a request to the node that has the object; None for a single node.

        In a cluster, see `ClusterCoordinator.forward_request`.
        """
        return None


def local_or_forwarded(
    coordinator: LocalCoordinator, request: Request, what: str, name: str, here: Callable[[], T]
) -> T | Flow[HandlerResult]:
    """Return the result of `here`, or a flow that forwards the request to the node that has the session `name`.

    The flow is returned if `here` raises `session_not_found` and the coordinator can forward; otherwise the error of
    `here` is raised. The flow raises it if it gets no response of another node to return.
    """
    try:
        return here()
    except Refused as refused:
        missing = refused.code == "session_not_found"
        asking = coordinator.forward_request(what, name, request) if missing else None
        if asking is None:
            raise
        return _or(asking, refused)


def _or(asking: Flow[HandlerResult | None], refused: Refused) -> Flow[HandlerResult]:
    answer = yield from asking
    if answer is None:
        raise refused
    return answer
