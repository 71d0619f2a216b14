"""Sessions of a desktop: pair, find the one for a relay, list and change devices (wire core 10.3, 10.5, 10.7).

Host functions by name, which the program that runs this provides: `sessions.read` () -> text; `sessions.change`
(SessionStoreChange) -> None; `host.identity` () -> (hostname, platform); `tls.expect` (host, port, pin or None) ->
None; `tls.seen` (host, port) -> pin or None.
"""

from collections.abc import Mapping
from typing import cast
from uuid import UUID

from attrs import evolve, field, frozen

from svc_proto.cli.desktop_connection import DesktopIdentity, RelayUnreachableError, connect_desktop
from svc_proto.cli.error_text import PAIRED, sanitize_line, with_explanation
from svc_proto.cli.errors import USAGE_ERROR, CliError
from svc_proto.cli.invites import DesktopInvite, parse_candidates
from svc_proto.cli.one_shot_service import announce_progress
from svc_proto.cli.session_store import (
    RemoveSession,
    SessionStoreChange,
    StoredSession,
    UpdateSession,
    parse_sessions,
    record_members,
)
from svc_proto.commands import Compute
from svc_proto.engine.core import Engine
from svc_proto.engine.files import ensure_secret
from svc_proto.engine.flow import Flow, run_operation
from svc_proto.facts import Failure
from svc_proto.machines.candidate_selection import Candidate
from svc_proto.schema.json_object import JsonObject
from svc_proto.service_clients.candidate_prober import CandidateProber
from svc_proto.service_clients.default_ttl import default_ttl
from svc_proto.service_clients.failure_text import failure_reason
from svc_proto.service_clients.relay_client import RelayClient
from svc_proto.service_clients.relay_connection import AuthOk, RelayConnection
from svc_proto.service_clients.relay_url import RelayUrl
from svc_proto.service_clients.service_client import ServiceFault
from svc_proto.wire.urls import encode_segment

__all__ = [
    "PairRequest",
    "PairingResult",
    "RelaySelection",
    "change_sessions",
    "candidates_of",
    "list_devices",
    "apply_pins",
    "extend_session",
    "find_relay",
    "find_stored_session",
    "forget_session",
    "store_first_pin",
    "desktop_identity",
    "pair_desktop",
    "load_sessions",
    "select_url",
    "sign_in",
    "relay_client_for",
]

IDENTITY_FILE = "desktop-id"
PAIR_FIRST = "pair first: svc-relay pair CODE --remote ws://…"
STORE_TIMEOUT = 10.0  # s for the lock of the session file, and for writing it


@frozen(kw_only=True)
class PairRequest:
    """Pairing of a desktop. `invitation` holds one candidate when the address was typed."""

    invitation: DesktopInvite
    name: str | None = None
    ttl_seconds: int | None = None  # None: the default of the route
    grants: Mapping[str, float | None] | None = None  # durations in s; None: withheld
    by_qr: bool = False  # which clears the stored pins (spec)
    new_certificate: bool = False


@frozen(kw_only=True)
class RelaySelection:
    """Relay and token that a command names; None stands for the stored ones."""

    remote: str | None = None
    token: str | None = field(default=None, repr=False)


@frozen(kw_only=True)
class PairingResult:
    """Result of a pairing: the stored session, and the relay's hint on the transport."""

    session: StoredSession
    transport_hint: str


# --- the session file -----------------------------------------------------------------------------------------


def load_sessions(engine: Engine) -> Flow[dict[str, StoredSession]]:
    """Return the stored sessions; none if the file cannot be read (wire core 10.5)."""
    text = yield from run_operation(engine, Compute(engine.new_op(), "sessions.read"))
    return parse_sessions(text) if isinstance(text, str) else {}


def change_sessions(engine: Engine, change: SessionStoreChange) -> Flow[Failure | None]:
    """Change the session file under its lock; return the failure, if any."""
    done = yield from run_operation(
        engine, Compute(engine.new_op(), "sessions.change", (change,)), within=STORE_TIMEOUT
    )
    return done if isinstance(done, Failure) else None


def find_stored_session(engine: Engine, selection: RelaySelection) -> Flow[StoredSession]:
    """Return the stored session that `selection` names, or else the only one, with the selection's token if it has one.

    A relay and a token for which none is stored make a new session. Raises `CliError` if no session is found; with code
    2 if several are stored and none is named.
    """
    stored = yield from load_sessions(engine)
    if selection.remote is not None:
        found = stored.get(selection.remote)
        if selection.token is not None:
            return (
                evolve(found, token=selection.token)
                if found
                else StoredSession(url=selection.remote, token=selection.token)
            )
        if found is None:
            raise CliError(f"no session is stored for {selection.remote}: {PAIR_FIRST}")
        return found
    if not stored:
        raise CliError(f"no session is stored: {PAIR_FIRST}")
    if len(stored) > 1:
        raise CliError(f"several relays are stored, name one with --remote: {', '.join(stored)}", code=USAGE_ERROR)
    (only,) = stored.values()
    return only if selection.token is None else evolve(only, token=selection.token)


# --- pairing --------------------------------------------------------------------------------------------------


def pair_desktop(engine: Engine, pair_request: PairRequest) -> Flow[PairingResult]:
    """Pair by the code of an invite, and store the session. Raises `CliError`.

    With `by_qr`, the best candidate that answers is used; without, the first one.
    """
    stored = yield from load_sessions(engine)
    candidates = pair_request.invitation.candidates
    for candidate in candidates:
        before = stored.get(candidate.url)
        fresh = pair_request.by_qr or pair_request.new_certificate or before is None
        yield from _expect(engine, candidate.url, None if fresh or before is None else before.cert_pin)
    chosen = candidates[0]
    if pair_request.by_qr:
        chosen = yield from _choose(engine, CandidateProber(engine, candidates), candidates)
    identity = yield from desktop_identity(engine, pair_request.name)
    credentials: dict[str, object] = {"pairing_code": pair_request.invitation.code}
    lifetime = default_ttl(chosen) if pair_request.ttl_seconds is None else pair_request.ttl_seconds
    if lifetime is not None:
        credentials["ttl_seconds"] = lifetime
    if pair_request.grants is not None:
        credentials["grants"] = {name: False if span is None else span for name, span in pair_request.grants.items()}
    announce_progress(engine, f"pairing with {chosen.url}")
    link, welcome = yield from connect_desktop(engine, chosen.url, credentials, identity)
    yield from link.finish()
    session = StoredSession(
        url=chosen.url,
        token=welcome.token,
        server_version=sanitize_line(welcome.server_version) or "unknown",
        paired_at=int(engine.now.wall),
        cert_pin=(yield from _seen(engine, chosen.url)),
        grants=welcome.grants,
        expires_at=welcome.expires_at,
        role=chosen.role if pair_request.by_qr else None,
        candidates=pair_request.invitation.stored if len(candidates) > 1 else (),
        api_url=pair_request.invitation.apis.get(chosen.url),
        api_key=pair_request.invitation.api_key,
    )
    failure = yield from change_sessions(engine, UpdateSession(session.url, record_members(session)))
    if failure is not None:
        raise CliError(
            f"paired, but the session cannot be stored: {failure_reason(failure)}; "
            f"make room, revoke {welcome.token[:8]} with svc pair --revoke, and pair again"
        )
    return PairingResult(session=session, transport_hint=welcome.transport_hint)


def desktop_identity(engine: Engine, name: str | None = None) -> Flow[DesktopIdentity]:
    """Return the identity of this desktop; its id is made once and stored beside the sessions.

    If it cannot be stored, the id is a new one each time.
    """
    described = yield from run_operation(engine, Compute(engine.new_op(), "host.identity"))
    hostname, platform = cast("tuple[str, str]", described) if isinstance(described, tuple) else ("desktop", "unknown")
    secret = yield from ensure_secret(engine, IDENTITY_FILE, 16)
    seed = engine.entropy(16) if isinstance(secret, Failure) else secret[:16]
    return DesktopIdentity(
        name=name or hostname, hostname=hostname, device_id=str(UUID(bytes=seed, version=4)), platform=platform
    )


def _choose(engine: Engine, routes: CandidateProber, candidates: tuple[Candidate, ...]) -> Flow[Candidate]:
    tried = ", ".join(f"{candidate.role} {candidate.url}" for candidate in candidates)
    announce_progress(engine, f"looking for the best route: {tried}")
    chosen = yield from routes.select()
    if chosen is None:
        why = "; ".join(f"{each.role} {each.url}: {routes.problems.get(each, 'no answer')}" for each in candidates)
        raise RelayUnreachableError(f"no route to the relay answers: {why}")
    return chosen


# --- signed in ------------------------------------------------------------------------------------------------


def select_url(engine: Engine, session: StoredSession, routes: CandidateProber | None = None) -> Flow[str]:
    """Return the address to use now: the stored one, or the best of several candidates that answers.

    The stored certificate pins apply to further connections. Raises `RelayUnreachableError` if none of several answers.
    """
    yield from apply_pins(engine, session)
    candidates = candidates_of(session)
    if len(candidates) < 2:
        return session.url
    return (yield from _choose(engine, routes or CandidateProber(engine, candidates), candidates)).url


def candidates_of(session: StoredSession) -> tuple[Candidate, ...]:
    """Return the valid candidates that were stored with the session at pairing."""
    return tuple(candidate for candidate, _ in parse_candidates(session.candidates, "transportHint"))


def apply_pins(engine: Engine, session: StoredSession) -> Flow[None]:
    """Require the stored certificate pins on further connections to the addresses of the session."""
    yield from _expect(engine, session.url, session.cert_pin)
    for url, pin in session.route_pins.items():
        yield from _expect(engine, url, pin)


def store_first_pin(engine: Engine, session: StoredSession, url: str) -> Flow[None]:
    """Store the pin of the certificate that a route has shown, unless one is stored or the route has no TLS."""
    known = session.cert_pin if url == session.url else session.route_pins.get(url)
    seen = yield from _seen(engine, url)
    if known is not None or seen is None:
        return
    members: dict[str, object] = {"cert_pin_sha256": seen}
    if url != session.url:
        members = {"route_cert_pins": {**session.route_pins, url: seen}}
    yield from change_sessions(engine, UpdateSession(session.url, members))


def sign_in(engine: Engine, session: StoredSession, url: str) -> Flow[tuple[RelayConnection, AuthOk]]:
    """Connect to the relay with the stored token; return the connection and the relay's welcome. Raises `CliError`.

    The pin of the relay's certificate is stored at its first use.
    """
    identity = yield from desktop_identity(engine)
    link, welcome = yield from connect_desktop(engine, url, {"session_token": session.token}, identity)
    yield from store_first_pin(engine, session, url)
    return link, welcome


def relay_client_for(engine: Engine, session: StoredSession) -> Flow[RelayClient]:
    """Return an HTTP client of the session's relay, at the address that `select_url` selects."""
    return _relay_client_at((yield from select_url(engine, session)), session)


def _relay_client_at(url: str, session: StoredSession) -> RelayClient:
    return RelayClient(
        "the relay", RelayUrl(url).http_url, session.token, remedy="is it running, and this its address?"
    )


def find_relay(engine: Engine, selection: RelaySelection) -> Flow[RelayClient]:
    """Return an HTTP client of the relay that `selection` names, or of the only stored one. Raises `CliError`."""
    return (yield from relay_client_for(engine, (yield from find_stored_session(engine, selection))))


# --- devices --------------------------------------------------------------------------------------------------


def list_devices(engine: Engine, session: StoredSession) -> Flow[list[JsonObject]]:
    """Return the paired devices, as the relay lists them. Raises `CliError`.

    The pin of the relay's certificate is stored at its first use of each address.
    """
    url = yield from select_url(engine, session)
    found = yield from with_explanation(_relay_client_at(url, session).sessions(engine), PAIRED)
    yield from store_first_pin(engine, session, url)
    return found


def extend_session(engine: Engine, session: StoredSession, prefix: str, ttl: int) -> Flow[JsonObject]:
    """Request the expiry of the session with this token prefix in `ttl` seconds (0: never); return the relay's answer.
    The stored record is updated if it is this desktop's session. Raises `CliError`.
    """
    relay = yield from relay_client_for(engine, session)
    asked = relay.json(engine, "PATCH", f"/sessions/{encode_segment(prefix)}", {"ttl_seconds": ttl})
    sentences = {
        ServiceFault.NOT_FOUND: f"no session has a token that begins with {prefix!r}: see svc-relay devices",
        ServiceFault.CONFLICT: "{said}: give more of the token",
    }
    found = yield from with_explanation(asked, PAIRED | sentences)
    if session.token.startswith(prefix):
        members = {"ttl_expires_at": found.get("expires_at"), "grants": found.get("grants")}
        yield from change_sessions(engine, UpdateSession(session.url, members))
    return found


def forget_session(engine: Engine, session: StoredSession) -> Flow[None]:
    """Remove this session from the session file, unless the file has another token for the relay."""
    yield from change_sessions(engine, RemoveSession(session.url, session.token))


def _expect(engine: Engine, url: str, pin: str | None) -> Flow[None]:
    where = RelayUrl(url).pinned
    if where is not None:
        yield from run_operation(engine, Compute(engine.new_op(), "tls.expect", (*where, pin)))


def _seen(engine: Engine, url: str) -> Flow[str | None]:
    where = RelayUrl(url).pinned
    if where is None:
        return None
    pin = yield from run_operation(engine, Compute(engine.new_op(), "tls.seen", where))
    return pin if isinstance(pin, str) else None
