"""What a relay shares with the other nodes of its service, as a relay has it that is alone: with nobody.

Everything here is called where something happens that others would have to agree on or to hear. `LocalCoordinator` is
the whole of it for one process: a code is used up in its own table, a session is ended by whoever ends it, and a phone
is where its socket is. `svc_proto.relay.cluster.coordinator.ClusterCoordinator` does the same by way of the cluster;
the relay does not know which of the two it has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol, TypeVar

from svc_proto.basics.errors import Refused
from svc_proto.basics.metrics import MetricFamily
from svc_proto.engine.flow import Flow
from svc_proto.engine.message import Request
from svc_proto.engine.router import HandlerResult
from svc_proto.machines.auth_rate_limiter import AuthRateLimiter
from svc_proto.machines.paired_session import PairedSession
from svc_proto.machines.pairing_codes import PairingMeta

if TYPE_CHECKING:
    from svc_proto.relay.service import Relay
    from svc_proto.relay.websocket.client_connection import ClientConnection

__all__ = ["LocalCoordinator", "PhoneRoute", "local_or_forwarded"]

T = TypeVar("T")


class PhoneRoute(Protocol):
    """What leads to a phone."""

    def send_text(self, text: str, /) -> bool:
        """Send it a message; False if that cannot be done any more."""
        ...


class LocalCoordinator:
    """See the module."""

    def __init__(self, relay: Relay) -> None:
        self.relay = relay
        self.limiter = AuthRateLimiter()

    def start(self) -> Flow[None]:
        """Meet the others, if they can be met."""
        yield from ()

    def stop(self) -> None:
        """Leave them."""

    def broadcast(self, word: str, body: Mapping[str, object]) -> None:
        """Tell every node."""

    # --- codes: who may use one up has to be agreed on ---

    def register_code(self, code: str, meta: PairingMeta) -> Flow[None]:
        """Make a code usable, once. `Refused` 400 for what is not a code, 503 if that cannot be agreed on."""
        yield from ()
        self.relay.codes.register(code, self.relay.engine.now, meta)

    def consume_code(self, code: str) -> Flow[PairingMeta | None]:
        """Use a code up: what was attached to it; None for one that is unknown, used or too old. `Refused` 503."""
        yield from ()
        return self.relay.codes.consume(code, self.relay.engine.now)

    # --- sessions: all that others have to hear ---

    def session_saved(self, session: PairedSession) -> None:
        """It is in the store, as it is now."""

    def session_ended(self, session: PairedSession) -> None:
        """It was revoked."""

    def lookup_session(self, token: str) -> Flow[PairedSession | None] | None:
        """Look for a session that is not here; None: there is nowhere to look."""
        return None

    def flush(self) -> Flow[None]:
        """Wait until what was told is heard, or will be. `Refused` 503 if nobody can promise that."""
        yield from ()

    def flush_best_effort(self) -> Flow[None]:
        """The same, as far as that can be: a node that heard nothing asks for all later."""
        yield from ()

    def sync_sessions(self) -> Flow[None]:
        """Hear what there is to be heard of sessions, before one is said not to be there."""
        yield from ()

    def online_sessions(self) -> Flow[frozenset[str]]:
        """Which of them have a socket open, by the hashes of their tokens."""
        yield from ()
        return self.relay.online()

    # --- phones: where they are, and what they say ---

    def phone_connected(self, number: int, replaced: int | None) -> None:
        """The client of this number is a phone that can be driven, in place of the one of that number."""

    def phone_status_changed(self, number: int) -> None:
        """It has told how it is."""

    def phone_disconnected(self, number: int) -> None:
        """It cannot be driven any more."""

    def phone_selected(self) -> None:
        """Another is driven unless one is named."""

    def notification_received(self, payload: Mapping[str, object]) -> None:
        """A phone has passed a notification on."""

    def route_to_phone(self, number: int) -> PhoneRoute | None:
        """What leads to a phone that has no socket here."""
        return None

    def explain_missing_phone(self, refused: Refused) -> Refused:
        """Why there is no such phone."""
        return refused

    def forward_answer(self, client: ClientConnection, payload: Mapping[str, object]) -> None:
        """A phone has answered a command that nobody here has sent."""

    def metrics(self) -> list[MetricFamily]:
        """What a monitor is shown of the others."""
        return []

    def activity(self, limit: int) -> Flow[list[dict[str, object]]]:
        """The last commands, newest first."""
        yield from ()
        return self.relay.bridge.records(limit)

    # --- what one of them has alone ---

    def terminal_owner_url(self, terminal: str) -> Flow[str]:
        """The address of the node where a terminal of that name was begun, which may still be there; empty: none."""
        yield from ()
        return ""

    def lookup_consent(self, by: str, value: str) -> Flow[None] | None:
        """Bring a question of an agent's here that another node may have; None: nobody is to be asked."""
        return None

    def forward_request(self, what: str, name: str, request: Request) -> Flow[HandlerResult | None] | None:
        """The answer to a request for what is not here, see `passing`; None: nobody is to be asked. `Refused` 503."""
        return None


def local_or_forwarded(
    relay: Relay, request: Request, what: str, name: str, here: Callable[[], T]
) -> T | Flow[HandlerResult]:
    """What `here` makes of a request about a session. If there is none of that name, the answer of the node with it."""
    try:
        return here()
    except Refused as refused:
        missing = refused.code == "session_not_found"
        asking = relay.coordinator.forward_request(what, name, request) if missing else None
        if asking is None:
            raise
        return _or(asking, refused)


def _or(asking: Flow[HandlerResult | None], refused: Refused) -> Flow[HandlerResult]:
    answer = yield from asking
    if answer is None:
        raise refused
    return answer
