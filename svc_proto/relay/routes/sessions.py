"""Routes that list, change and revoke paired sessions (wire core 4.2 to 4.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from svc_proto.basics.errors import Refused
from svc_proto.basics.validate import integer, integer_text
from svc_proto.engine.files import read_state
from svc_proto.engine.flow import Flow
from svc_proto.engine.message import JsonResponse, Request, json_response
from svc_proto.engine.router import Route
from svc_proto.facts import Failure, FailureKind
from svc_proto.machines.agent_changes import FILE, changes_by, parse_changes
from svc_proto.machines.grants import MANAGE
from svc_proto.machines.paired_session import PREFIX_LENGTH, PairedSession, parse_new_name, parse_patch, session_record
from svc_proto.machines.paired_session_registry import TOKEN_LENGTHS
from svc_proto.relay.access import RelayAccess, has_right
from svc_proto.relay.ports import PairedSessionsPort
from svc_proto.relay_config import SessionPolicy

if TYPE_CHECKING:
    from svc_proto.schema.relay_types import DeviceSessionsJson, RevokedJson, SessionChangedJson

__all__ = ["MAX_LISTED", "MAX_PAGE", "routes"]

MAX_PAGE = 200  # sessions of one page, which takes a few milliseconds
MAX_LISTED = 10_000  # sessions that are listed at once; of more, a request without parameters gets the first page


class SessionRoutesPort(PairedSessionsPort, Protocol):
    """Members of the relay that the routes of paired sessions use."""

    def expire_sessions(self) -> None:
        """End the sessions whose lifetime has elapsed, in pages."""


def routes(relay: SessionRoutesPort) -> list[Route]:
    """Return the routes that list, change and revoke paired sessions."""
    view = _SessionRoutes(relay)
    one = "/sessions/{token_prefix}"
    return [
        Route(method="GET", pattern="/sessions", access=RelayAccess.LOOPBACK_OR_BEARER, handler=view.list_all),
        Route(method="DELETE", pattern=one, access=RelayAccess.LOOPBACK_OR_BEARER, handler=view.revoke),
        Route(method="PATCH", pattern=one, access=RelayAccess.LOOPBACK_OR_BEARER, handler=view.patch),
    ]


class _SessionRoutes:
    def __init__(self, relay: SessionRoutesPort) -> None:
        self._relay = relay

    def list_all(self, request: Request) -> Flow[JsonResponse[DeviceSessionsJson]]:
        relay, asks, query = self._relay, request.principal, request.query
        limit = integer(integer_text(query.get("limit", MAX_PAGE)), "limit", 1, MAX_PAGE)
        online = yield from relay.coordinator.online_sessions()
        if self._manages(request):
            yield from relay.coordinator.wait_until_loaded()
        relay.expire_sessions()
        now, cursor = relay.engine.now, ""
        if isinstance(asks, PairedSession) and not self._manages(request):
            found = [session for session in relay.sessions.find(asks.token_prefix, now) if session is asks]
        elif "limit" in query or "cursor" in query or len(relay.sessions) > MAX_LISTED:
            found, cursor = relay.sessions.page(query.get("cursor", ""), limit, now)
        else:
            found = relay.sessions.active(now)
        records = [session_record(session, session is asks, online=session.token_hash in online) for session in found]
        return json_response(200, {"sessions": records, "next_cursor": cursor} if cursor else {"sessions": records})

    def revoke(self, request: Request) -> Flow[JsonResponse[RevokedJson]]:
        relay = self._relay
        prefix = _prefix(request)
        found = yield from self._found(prefix)
        session = _only(found or relay.sessions.tombstones(prefix))
        self._check_other(request, session)
        relay.audit.record("session revoked", request, session=session.principal_name)
        problem = yield from relay.revoke(session, "the session was revoked")
        if problem is not None:
            raise Refused(500, "store_failed", problem)
        yield from relay.coordinator.flush()
        is_self = session is request.principal
        body: RevokedJson = {"ok": True, "revoked": session.token_prefix, "revoked_self": is_self}
        changes = yield from self._count_changes(session)
        if session.knows_key:
            body["knows_api_key"] = True
        if changes:
            body["agent_changes"] = changes
        return json_response(200, body)

    def _count_changes(self, session: PairedSession) -> Flow[int]:
        """Return the number of the session's changes that the file of changes at this host's agent lists.

        Return 0 if the file cannot be read.
        """
        stored = yield from read_state(self._relay.engine, FILE)
        return len(changes_by(parse_changes(stored), session.token_prefix)) if isinstance(stored, str) else 0

    def patch(self, request: Request) -> Flow[JsonResponse[SessionChangedJson]]:
        relay = self._relay
        body = request.json()
        (ttl, grants), name = parse_patch(body), parse_new_name(body)
        session = _only((yield from self._found(_prefix(request))))
        self._check_other(request, session)
        # The operator is not bound by the policy for sessions.
        policy = None if request.principal is None else relay.config.session_policy
        if policy not in (None, SessionPolicy.OPEN) and session is not request.principal:
            raise Refused(403, "self_only", "a session may only change itself here")
        if ttl is not None or grants is not None:
            relay.sessions.patch(
                session,
                relay.engine.now,
                ttl=ttl,
                grants=grants,
                max_ttl=relay.config.max_session_ttl,
                policy=policy,
            )
            relay.grants_changed(session)
        if name is not None:
            relay.sessions.rename(session, name, relay.engine.now)
            relay.name_changed(session)
        changed = ", ".join(f"{each}={'none' if span is None else int(span)}" for each, span in (grants or {}).items())
        relay.audit.record(
            "session changed",
            request,
            session=session.principal_name,
            ttl=None if ttl is None else int(ttl),
            grants=changed or None,
            name=name,
        )
        stored = yield from relay.save(session, again=True)
        if isinstance(stored, Failure):
            if stored.kind is FailureKind.NOT_FOUND:
                raise Refused(404, "not_found", "the session was revoked")
            raise Refused(500, "store_failed", "changed until the relay restarts: the store did not take it")
        yield from relay.coordinator.flush()
        answer: SessionChangedJson = {
            "ok": True,
            "token_prefix": session.token_prefix,
            "expires_at": session.expires_at,
            "grants": session.grants,
        }
        return json_response(200, answer if name is None else {**answer, "device_name": name})

    def _manages(self, request: Request) -> bool:
        """Report whether the caller is the operator, or a session with the right `manage`."""
        asks = request.principal
        return not isinstance(asks, PairedSession) or has_right(asks, MANAGE, self._relay.engine.now)

    def _check_other(self, request: Request, session: PairedSession) -> None:
        if session is not request.principal and not self._manages(request):
            raise Refused(
                403, "grant_required", f"another session needs the right {MANAGE}, which the pairing withheld"
            )

    def _found(self, prefix: str) -> Flow[list[PairedSession]]:
        """Return the active sessions whose token starts with this prefix.

        If this node has none, wait until all sessions are loaded, read those that changed, and search again.
        A prefix shorter than `PREFIX_LENGTH` may match several, so the flow first waits until all are loaded.
        """
        relay = self._relay
        if len(prefix) < PREFIX_LENGTH:
            yield from relay.coordinator.wait_until_loaded()
        found = relay.sessions.find(prefix, relay.engine.now)
        if not found:
            yield from relay.coordinator.wait_until_loaded()
            yield from relay.coordinator.sync_sessions()
            found = relay.sessions.find(prefix, relay.engine.now)
        return found


def _prefix(request: Request) -> str:
    """Return the token prefix of the path: up to eight characters of a token, or the whole token.

    Only the hash and eight characters of a token are stored, so a part of another length cannot be compared: raise
    `Refused` 400.
    """
    prefix = request.params["token_prefix"]
    if PREFIX_LENGTH < len(prefix) < TOKEN_LENGTHS[0]:
        text = f"a token is named by its first {PREFIX_LENGTH} characters at most, or by all of them"
        raise Refused(400, "invalid_prefix", text, extra={"field": "token_prefix"})
    return prefix


def _only(found: list[PairedSession]) -> PairedSession:
    if not found:
        raise Refused(404, "not_found", "no session has a token that begins so")
    if len(found) > 1:
        count = len(found)
        raise Refused(409, "ambiguous_prefix", f"{count} sessions match that prefix", extra={"matches": count})
    return found[0]
