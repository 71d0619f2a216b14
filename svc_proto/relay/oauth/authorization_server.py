"""The relay as authorization server for remote MCP clients: OAuth 2.1 as the Model Context Protocol profiles it.

Clients are public, register themselves, and use the authorization code grant with PKCE.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, TypeVar, cast

from svc_proto.basics.entropy import secrets_equal, sha256_hex
from svc_proto.basics.errors import Refused
from svc_proto.basics.timers import Timer
from svc_proto.basics.validate import boolean, choice, invalid, optional, seconds, text
from svc_proto.commands import Level
from svc_proto.engine.flow import Flow
from svc_proto.engine.message import JsonResponse, Request, Response, json_response
from svc_proto.engine.page_language import page_texts
from svc_proto.engine.request_origin import TrustedProxies
from svc_proto.facts import Failure, FailureKind
from svc_proto.machines.grants import CHANNELS
from svc_proto.machines.log_throttle import LogThrottle
from svc_proto.machines.oauth_consent import (
    AuthorizationConsent,
    ConsentRegistry,
    ConsentState,
    GrantedConsent,
    parse_consent,
)
from svc_proto.machines.paired_session import DeviceInfo, PairedSession
from svc_proto.machines.paired_session_registry import DEFAULT_TTL
from svc_proto.relay.oauth.issuer import MCP_PATH, issuer_url
from svc_proto.relay.oauth.pages import error_page, expired_page, redirect_to, waiting_page
from svc_proto.relay.ports import PairedSessionsPort
from svc_proto.schema import oauth
from svc_proto.schema.json_object import JsonObject
from svc_proto.wire.urls import parse_query_list

if TYPE_CHECKING:
    from svc_proto.schema import oauth_types as types

__all__ = ["AuthorizationServer"]

FORM = b"application/x-www-form-urlencoded"
NO_STORE = ((b"cache-control", b"no-store"), (b"pragma", b"no-cache"))  # RFC 6749 section 5.1
CODE_REUSED_TEXT = "an authorisation code was shown twice, or by another"
SURFACE = "mcp"  # client surface of its sessions

ResponseT = TypeVar("ResponseT", bound=Response)


class OAuthPort(PairedSessionsPort, Protocol):
    """Members of the relay that the authorization server uses."""

    proxies: TrustedProxies


class AuthorizationServer:
    """Handlers of the OAuth routes, and the pending consent requests."""

    def __init__(self, relay: OAuthPort) -> None:
        self._relay = relay
        self.consents = ConsentRegistry()
        self._mentions = LogThrottle()

    @cached_property
    def _timer(self) -> Timer:
        return self._relay.engine.timers.timer(self._expire)

    # --- metadata ---

    def protected_resource_metadata(self, request: Request) -> JsonResponse[types.ResourceMetadataJson]:
        """Return the protected resource metadata (RFC 9728). Raise `Refused` 400 if there is no issuer URL."""
        return json_response(200, oauth.resource_metadata(self._place(request), MCP_PATH), NO_STORE)

    def server_metadata(self, request: Request) -> JsonResponse[types.ServerMetadataJson]:
        """Return the authorization server metadata (RFC 8414). Raise `Refused` 400 if there is no issuer URL."""
        return json_response(200, oauth.server_metadata(self._place(request)), NO_STORE)

    # --- for clients ---

    def register(self, request: Request) -> JsonResponse[types.ClientMetadataJson]:
        """Return the metadata of a new client (RFC 7591). Raise `Refused` 400, or 413 as `Request.json` does.

        The client id contains the metadata, so nothing is stored (decision 152).
        """
        self._place(request)
        try:
            client = oauth.parse_client(request.json_object())
        except Refused as refused:
            code = refused.code if refused.code == "invalid_redirect_uri" else "invalid_client_metadata"
            raise Refused(refused.status, code, refused.message) from None
        return json_response(201, oauth.client_metadata(client), NO_STORE)

    def token(self, request: Request) -> Flow[JsonResponse[types.TokensJson]]:
        """Exchange a code or a refresh token for new tokens (RFC 6749 section 3.2). Raise `Refused` 400 or 503.

        A code that is used again within ten minutes revokes its session. So does a refresh token that names a session
        but is not accepted, such as a used one after its grace.
        """
        form = self._form(request)
        oauth.check_resource(form.get("resource"), self._place(request) + MCP_PATH)
        match form.get("grant_type"):
            case "authorization_code":
                return self._trade(form)
            case "refresh_token":
                return self._refresh(form)
            case None:
                raise Refused(400, "invalid_request", "grant_type is missing")
            case _:
                raise Refused(400, "unsupported_grant_type", "grant_type: authorization_code or refresh_token")

    def revoke(self, request: Request) -> Flow[Response]:
        """Revoke the session of an access or refresh token (RFC 7009); unknown tokens are ignored.

        Raise `Refused` 400 for an invalid form or without an issuer URL, and 503 if the session cannot be looked up, or
        if the store or Redis does not confirm the revocation.
        """
        token = self._form(request).get("token", "")
        relay = self._relay
        session = self._find_session(token)
        if session is None:
            yield from self._lookup_session(token)
            session = self._find_session(token)
        if session is not None:
            problem = yield from relay.revoke(session, "the agent has given its tokens back")
            if problem is not None:
                raise Refused(503, "temporarily_unavailable", problem)
            yield from relay.coordinator.flush()
        return json_response(200, {}, NO_STORE)

    # --- for browsers ---

    def authorize(self, request: Request) -> Response:
        """Create a consent request and redirect to its waiting page (RFC 6749 section 3.1).

        Return an error page if the connection, the destination of the browser's fetch, a repeated parameter, the client
        id or the redirect URI is refused. For a later error, redirect to a loopback redirect URI with it; for any other
        redirect URI return the page.
        """
        relay = self._relay
        try:
            place = self._place(request)
            if request.headers.get(b"sec-fetch-dest") not in (None, b"document"):
                # An image or frame in another page would use up the consent requests of the page's reader.
                raise Refused(400, "invalid_request", "a browser goes to this page, other pages do not load it")
            query = oauth.parse_form(parse_query_list(request.raw_query))
            client = oauth.decode_client_id(query.get("client_id", ""))
            if client is None:
                raise Refused(400, "invalid_client", "its client_id is not one of ours, it has to register")
            redirect = query.get("redirect_uri", "")
            if not client.allows_redirect(redirect):
                raise Refused(400, "invalid_request", "its redirect_uri is none that it has registered")
        except Refused as refused:
            return error_page(page_texts(request.headers), refused.status, refused.message)
        try:
            question = oauth.parse_authorization_request(query, client, place + MCP_PATH)
            engine, address = relay.engine, relay.proxies.client_address(request)
            if self.consents.is_full and self._mentions.is_due("", engine.now.mono):
                engine.log(Level.WARNING, "too many sign-ins of agents wait for an answer", address=address)
            consent = self.consents.request(question, address, engine.now, engine.entropy)
        except Refused as refused:
            if oauth.is_loopback(redirect):
                fields = {"error": refused.code, "error_description": refused.message, "state": query.get("state")}
                return redirect_to(oauth.add_query_fields(redirect, **fields, iss=place))
            # Any site can register any address: to redirect there without consent would be an open redirect.
            return error_page(page_texts(request.headers), refused.status, refused.message)
        self._watch()
        return redirect_to(f"wait/{consent.ticket}")

    def poll_consent_page(self, request: Request) -> Response | Flow[Response]:
        """Return the waiting page; after the owner's answer, redirect the first GET to the client's redirect URI.

        Return the page `expired_page` for a further GET, for an unknown or expired consent request, and without an
        issuer URL.
        """
        return self._brought("ticket", request.params["ticket"], self._wait, request)

    def _wait(self, request: Request) -> Response:
        engine = self._relay.engine
        consent = self.consents.find_by_ticket(request.params["ticket"], engine.now)
        place = issuer_url(self._relay.proxies, self._relay.config.root_path, request)
        if consent is None or place is None:
            return expired_page(page_texts(request.headers))
        authorization_request = consent.question
        if consent.state is ConsentState.REQUESTED or request.method == "HEAD":  # HEAD issues no code
            return waiting_page(page_texts(request.headers), authorization_request.client.name, consent.code)
        if consent.state not in (ConsentState.ALLOWED, ConsentState.REFUSED):
            return expired_page(page_texts(request.headers))
        code = self.consents.issue_code(consent, engine.now, engine.entropy)
        self._watch()
        error = None if code else "access_denied"
        return redirect_to(
            oauth.add_query_fields(
                authorization_request.redirect, code=code, error=error, state=authorization_request.state, iss=place
            )
        )

    # --- for the owner, by local access ---

    def show_consent(
        self, request: Request
    ) -> JsonResponse[types.ConsentQuestionJson] | Flow[JsonResponse[types.ConsentQuestionJson]]:
        """Return the consent request with this code as JSON, for the owner. Raise `Refused` 404."""
        return self._brought("code", request.params["code"], self._question, request)

    def _question(self, request: Request) -> JsonResponse[types.ConsentQuestionJson]:
        engine = self._relay.engine
        consent = self._find_consent(request)
        authorization_request = consent.question
        body: types.ConsentQuestionJson = {
            "ok": True,
            "code": consent.code,
            "ballot": consent.form_token,
            "client_name": authorization_request.client.name,
            "answer_goes_to": authorization_request.redirect_host,
            "answer_stays_there": authorization_request.is_loopback_redirect,
            "address": consent.address,
            "scope": authorization_request.scope,
            "expires_in": int(consent.until - engine.now.mono),
        }
        return json_response(200, body, NO_STORE)

    def answer_consent(
        self, request: Request
    ) -> JsonResponse[types.ConsentAnsweredJson] | Flow[JsonResponse[types.ConsentAnsweredJson]]:
        """Store the owner's answer: `{"ballot", "allow", "scope"?, "ttl_seconds"?}` with the request's ballot.

        Raise `Refused` 404 for an unknown code, 409 for another ballot, 400 for an invalid body, and 413 as
        `Request.json` does.
        """
        return self._brought("code", request.params["code"], self._answer, request)

    def _answer(self, request: Request) -> JsonResponse[types.ConsentAnsweredJson]:
        relay, consent, body = self._relay, self._find_consent(request), request.json_object()
        if not secrets_equal(text(body.get("ballot"), "ballot"), consent.form_token):
            raise Refused(409, "wrong_ballot", "this answers another question: look at it again")
        allowed, authorization_request = None, consent.question
        if boolean(body.get("allow"), "allow"):
            scope = (
                optional(body, "scope", lambda value, name: choice(value, name, allowed=oauth.SCOPES))
                or authorization_request.scope
            )
            if scope == oauth.SCOPE_ACT and authorization_request.scope == oauth.SCOPE_READ:
                raise invalid("scope", "no more than was asked for")
            ttl = optional(body, "ttl_seconds", seconds)
            allowed = GrantedConsent(scope, DEFAULT_TTL if ttl is None else ttl)
        self.consents.answer(consent, allowed, relay.engine.now)
        self._watch()
        relay.engine.log(
            Level.INFO, "agent answered", client=authorization_request.client.name, allowed=allowed is not None
        )
        return json_response(
            200, {"ok": True, "allowed": allowed is not None, "client_name": authorization_request.client.name}
        )

    # --- for the other nodes: a consent request is at one of them ---

    def release_consent(self, by: str, value: str, send: Callable[[dict[str, object]], bool]) -> None:
        """Send a consent request to another node with `send`, and if it is sent, remove it here; ignore an unknown one.

        A request whose code was exchanged stays here. A lookup by that code is a second use and revokes the session.
        """
        engine = self._relay.engine
        consent = self.consents.find(by, value, engine.now)
        if consent is None:
            return
        if consent.session is not None:
            if by == "secret":
                self.consents.mark_code_reused(consent)
                engine.spawn(self._misused(consent.session, CODE_REUSED_TEXT))
        elif send(consent.to_record(engine.now)):
            self.consents.release_to_node(consent)
        self._watch()

    def adopt_consent(self, record: JsonObject) -> None:
        """Add a consent request that another node has released; an invalid record is ignored."""
        consent = parse_consent(record, self._relay.engine.now)
        if consent is not None:
            self.consents.adopt_from_node(consent)
            self._watch()

    def _brought(
        self, by: str, value: str, then: Callable[[Request], ResponseT], request: Request
    ) -> ResponseT | Flow[ResponseT]:
        """Return the result of `then`, or a flow that first looks the consent request up at the other nodes."""
        seeking = self._lookup(by, value)
        return then(request) if seeking is None else _after(seeking, then, request)

    def _lookup(self, by: str, value: str) -> Flow[None] | None:
        relay = self._relay
        here = self.consents.find(by, value, relay.engine.now) is not None
        return None if here else relay.coordinator.lookup_consent(by, value)

    # --- helpers ---

    def _find_consent(self, request: Request) -> AuthorizationConsent:
        consent = self.consents.find_by_code(request.params["code"], self._relay.engine.now)
        if consent is None:
            raise Refused(404, "not_found", "no agent waits with this word: it may be over already")
        return consent

    def _place(self, request: Request) -> str:
        place = issuer_url(self._relay.proxies, self._relay.config.root_path, request)
        if place is None:
            raise Refused(400, "invalid_request", "over plain HTTP nothing is allowed from elsewhere: HTTPS is needed")
        return place

    def _form(self, request: Request) -> dict[str, str]:
        self._place(request)
        if (request.headers.get(b"content-type") or b"").partition(b";")[0].strip().lower() != FORM:
            raise Refused(400, "invalid_request", f"the body must be {FORM.decode()}")
        return oauth.parse_form(parse_query_list(request.body.decode("utf-8", "replace")))

    def _trade(self, form: dict[str, str]) -> Flow[JsonResponse[types.TokensJson]]:
        relay = self._relay
        entropy, client = relay.engine.entropy, form.get("client_id", "")
        code, verifier = form.get("code", ""), form.get("code_verifier", "")
        yield from self._lookup("secret", sha256_hex(code)) or ()
        now = relay.engine.now
        consent, good = self.consents.exchange_code(code, client, form.get("redirect_uri"), verifier, now)
        self._watch()
        if consent is None or not good:
            if consent is not None:
                yield from self._misused(consent.session, CODE_REUSED_TEXT)
            raise Refused(400, "invalid_grant", "the code is not known, over, used, or for another client or verifier")
        allowed = cast("GrantedConsent", consent.allowed)
        family, session = relay.sessions.create(
            now,
            entropy,
            ttl=allowed.ttl,
            preset={**dict.fromkeys(CHANNELS), allowed.scope: 0.0},
            device=DeviceInfo(name=f"MCP: {consent.question.client.name}", surface=SURFACE),
            max_ttl=relay.config.max_session_ttl,
        )
        consent.session = session
        relay.engine.log(Level.INFO, "agent has come", client=session.device_name, session=session.token_prefix)
        relay.audit.record_agent(session, allowed.scope)
        return (yield from self._tokens(session, family, client))

    def _refresh(self, form: dict[str, str]) -> Flow[JsonResponse[types.TokensJson]]:
        relay = self._relay
        token, client = form.get("refresh_token", ""), form.get("client_id", "")
        if self._find_session(token) is None:
            yield from self._lookup_session(token)
        session, accepted = relay.sessions.find_by_refresh_token(token, relay.engine.now)
        if session is not None and not accepted:
            yield from self._misused(session, "a refresh token was used twice")
            session = None
        if session is None or session.tokens is None or session.tokens.client != sha256_hex(client):
            raise Refused(400, "invalid_grant", "the refresh token is not known, over, used, or of another client")
        if not set(form.get("scope", "").split()) <= set(
            oauth.SCOPES if _scope(session) == oauth.SCOPE_ACT else (oauth.SCOPE_READ,)
        ):
            raise Refused(400, "invalid_scope", "more than was allowed")
        return (yield from self._tokens(session, token.partition(".")[0], client, used=token))

    def _find_session(self, token: str) -> PairedSession | None:
        """Return the session of an access token, or of a refresh token, accepted or not; None if there is none here."""
        sessions, now = self._relay.sessions, self._relay.engine.now
        return sessions.find_by_access_token(token, now) or sessions.find_by_refresh_token(token, now)[0]

    def _lookup_session(self, token: str) -> Flow[None]:
        """Look up the session of an access or refresh token that this node does not have. Raise `Refused` 503."""
        seeking = self._relay.coordinator.lookup_session(token.partition(".")[0], agents=True)
        if seeking is not None:
            yield from seeking

    def _tokens(
        self, session: PairedSession, family: str, client: str, *, used: str = ""
    ) -> Flow[JsonResponse[types.TokensJson]]:
        relay = self._relay
        now = relay.engine.now
        access, part, lasts = relay.sessions.issue(session, client, now, relay.engine.entropy, used=used)
        # If that fails, the client needs a new consent after a restart.
        stored = yield from relay.save(session, again=bool(used))
        if isinstance(stored, Failure) and stored.kind is FailureKind.NOT_FOUND:
            raise Refused(400, "invalid_grant", "the session was revoked")
        yield from relay.coordinator.flush_best_effort()
        body: types.TokensJson = {
            "access_token": access,
            "token_type": "Bearer",
            "expires_in": int(lasts),
            "refresh_token": f"{family}.{part}",
            "scope": _scope(session),
        }
        return json_response(200, body, NO_STORE)

    def _misused(self, session: PairedSession | None, why: str) -> Flow[None]:
        """Revoke an active session whose code or token may have been stolen; None and an ended one are ignored."""
        if session is not None and session.is_active(self._relay.engine.now.wall):
            self._relay.engine.log(Level.WARNING, why, session=session.token_prefix, client=session.device_name)
            yield from self._relay.revoke(session, why)

    def _expire(self) -> None:
        self.consents.expire(self._relay.engine.now)
        self._watch()

    def _watch(self) -> None:
        self._timer.schedule(self.consents.next_expiry())


def _scope(session: PairedSession) -> types.Scope:
    return oauth.SCOPE_ACT if oauth.SCOPE_ACT in session.grants else oauth.SCOPE_READ


def _after(seeking: Flow[None], then: Callable[[Request], ResponseT], request: Request) -> Flow[ResponseT]:
    yield from seeking
    return then(request)
