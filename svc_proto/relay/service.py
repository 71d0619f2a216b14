"""The relay service: its state and routes, and the end of sessions, phones and the process."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from math import ceil
from typing import TYPE_CHECKING, cast

from svc_proto.basics.entropy import uuid_stream
from svc_proto.basics.errors import Refused
from svc_proto.basics.moment import Moment
from svc_proto.commands import Level, Ready
from svc_proto.engine.admission import AdmissionControl
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.engine.message import Request, Response, json_response
from svc_proto.engine.request_origin import TrustedProxies
from svc_proto.engine.router import Route, Router
from svc_proto.engine.server_channel import ServerChannel
from svc_proto.engine.sync import Condition
from svc_proto.facts import Accepted, Failure, FailureKind
from svc_proto.machines.bridge_commands import BridgeCommands
from svc_proto.machines.inbox import NotificationBuffer
from svc_proto.machines.log_throttle import LogThrottle
from svc_proto.machines.owner_messages import OwnerMessages
from svc_proto.machines.paired_session import PairedSession
from svc_proto.machines.paired_session_registry import MAX_CLUSTER_SESSIONS, PairedSessionRegistry
from svc_proto.machines.pairing_api_keys import PairingApiKeys
from svc_proto.machines.pairing_codes import PairingCodes
from svc_proto.machines.phone_registry import ConnectedPhone, PhoneRegistry
from svc_proto.monitoring.monitoring_routes import MonitoringRoutes
from svc_proto.openapi.routes import OpenApiRoutes
from svc_proto.relay.access import (
    BASIC_PATHS,
    GRANTS,
    RelayAccess,
    authorize,
    bearer_session,
    bearer_token,
    may_read_phone,
    quick_bridge_session,
)
from svc_proto.relay.agent_profiles import RESCAN_INTERVAL, load_profiles
from svc_proto.relay.audit import RelayAudit
from svc_proto.relay.change_notifier import DEVICES, ChangeNotifier
from svc_proto.relay.cluster.coordinator_factory import new_coordinator
from svc_proto.relay.cluster.local_coordinator import PhoneRoute
from svc_proto.relay.local_access import LocalAuthorizer
from svc_proto.relay.media.media_service import MediaService
from svc_proto.relay.metrics import relay_metrics
from svc_proto.relay.oauth.issuer import challenge_headers
from svc_proto.relay.routes import device_control, inbox, mcp, media, owner_messages, pairing, profile, sessions, status
from svc_proto.relay.session_records import SessionRecords
from svc_proto.relay.terminals.shells import ShellLauncher
from svc_proto.relay.terminals.terminal_channel import Terminal
from svc_proto.relay.websocket.client_connection import ClientConnection
from svc_proto.relay_config import RelayConfig
from svc_proto.service_clients.pairing_defaults import default_terms
from svc_proto.wire.events import Headers, RequestHead
from svc_proto.wire.limits import DEFAULT_LIMITS, Limits

if TYPE_CHECKING:
    from svc_proto.mcp.streamable_http import McpHttpServer
    from svc_proto.openapi.operation_doc import ApiDoc
    from svc_proto.relay.oauth.authorization_server import AuthorizationServer
    from svc_proto.relay.voice.subsystem import VoiceSubsystem
    from svc_proto.schema.relay_types import ProfileJson

__all__ = ["Relay"]

EXPIRY_PAUSE = 0.025  # s between two pages of expired sessions, of which each record is erased in the store
RECHECK_INTERVAL = 3600.0  # s; the wall clock may be stepped, so expired sessions are looked for at least this often
_BRIDGE, _MONITOR = RelayAccess.BRIDGE, RelayAccess.MONITOR  # as in `machines.paired_session`
THEMES = (status, pairing, sessions, media, inbox, owner_messages, device_control, mcp, profile)
TARGET_SURFACES = ("android", "quest")  # surfaces that become phones right after auth.ok (wire bridge 1.4)


class Relay:
    """The relay as a service of an engine. Voice, MCP and OAuth are loaded with their first use."""

    engine: Engine
    router: Router

    def __init__(
        self, config: RelayConfig, *, limits: Limits = DEFAULT_LIMITS, keys: PairingApiKeys | None = None
    ) -> None:
        """Create a relay. `keys` are the pairing API keys that it shares with an API server beside it, if any."""
        self.config = config
        self.limits = limits
        self.keys = keys
        self.codes = PairingCodes() if keys is None else keys.codes
        self.sessions = PairedSessionRegistry() if keys is None else keys.sessions
        if config.cluster is not None:
            self.sessions.cap = MAX_CLUSTER_SESSIONS
        self.coordinator = new_coordinator(self)
        self.limiter = self.coordinator.limiter
        self._mentions = LogThrottle()
        self.proxies = TrustedProxies(config.trusted_proxies)
        self.local_authorizer = LocalAuthorizer(config)
        self._monitor = MonitoringRoutes(
            config.metrics_token,
            self.limiter,
            local=self.local_authorizer.is_allowed,
            address=self.proxies.client_address,
            version=config.version,
        )
        self.bridge = BridgeCommands(hide_text=config.hide_typed_text)
        self.phones = PhoneRegistry()
        self.notifications = NotificationBuffer()
        self.owner_messages = OwnerMessages()
        self.changes = ChangeNotifier()
        self.profiles: list[ProfileJson] = []
        self.allow_insecure_api_bearer = config.allow_insecure_api_bearer
        self.clients: dict[int, ClientConnection] = {}
        self._sockets: dict[str, dict[int, ClientConnection]] = {}  # the same clients, by token hash and number
        self.started = Moment(0.0, 0.0)
        self.router = Router(
            [
                *(route for theme in THEMES for route in theme.routes(self)),
                *self._monitor.routes(RelayAccess.MONITOR, RelayAccess.PUBLIC),
                *OpenApiRoutes(_manual, lambda: self.router, config.root_path, config.version).routes(
                    RelayAccess.LOOPBACK_OR_BEARER
                ),
            ],
            config.root_path,
            public_access=RelayAccess.PUBLIC,
            later={
                "/voice/": self._voice_routes,
                "/.well-known/": self._described_routes,
                "/oauth/": self._oauth_routes,
            },
        )
        self._oauth: AuthorizationServer | None = None
        self._mcp: McpHttpServer | None = None
        self._voice: VoiceSubsystem | None = None

    # --- Service ---

    def bind(self, engine: Engine) -> None:
        """Store the engine and create the parts that need it."""
        self.engine = engine
        self.command_ids = uuid_stream(engine.entropy)
        self._admission = AdmissionControl(
            engine, self, self.limits, behind=self.proxies.client_address if self.config.trusted_proxies else None
        )
        self._monitor.bind(engine, self._admission, lambda: relay_metrics(self))
        self.audit = RelayAudit(engine, self.proxies)
        self.records = SessionRecords(engine, self.sessions, shared=self.config.shares_home)
        self.owner_replied = Condition(engine)
        self.shells = ShellLauncher(engine, self.config)
        self.media = MediaService(engine, self.config, self.coordinator.broadcast)
        self._session_timer = engine.timers.timer(self.expire_sessions)
        self._profile_timer = engine.timers.timer(self._rescan)
        self._bridge_timer = engine.timers.timer(self._expire_commands)

    def on_started(self) -> None:
        """Load the stored state, then accept connections; exit the process if the sessions cannot be read."""
        self.started = self.engine.now
        self.engine.spawn(self._start(), on_error=self._start_failed)

    def on_accepted(self, fact: Accepted) -> ServerChannel | None:
        """Return the channel that serves a connection; None if it is refused at the limits."""
        return self._admission.admit(fact)

    def on_stopping(self) -> None:
        """Stop the services; a single node fails pending commands, and in a cluster the clients begin to move."""
        self._profile_timer.cancel()
        self.records.stop()
        moving = self.coordinator.stop()
        for client in list(self.clients.values()):
            if moving is not None:
                client.socket.stays = True
                continue
            self.bridge.socket_lost(client.number)
            client.stop_children()
        if moving is not None:
            self.engine.spawn(moving)
        if self._mcp is not None:
            self._mcp.stop()
        self.media.stop()
        if self._voice is not None:
            self._voice.stop()

    # --- HttpApp ---

    def authorize(self, access: Enum, request: Request) -> object:
        """Return the principal of an admitted request, None without one, or a flow that finds it; raise `Refused`."""
        if not isinstance(access, RelayAccess):
            raise TypeError("the relay's routes name an Access")
        if access is _BRIDGE:
            session = quick_bridge_session(request, self.sessions, self.engine.now)
            if session is not None:
                return session
        if access is _MONITOR:
            self._monitor.check(request)
            return None
        if access in GRANTS:
            return self.voice_side.gate.authorize(access, request)
        try:
            return authorize(access, request, self.sessions, self.local_authorizer, self.engine.now)
        except Refused as refused:
            agents = access is RelayAccess.AGENT
            token = bearer_token(request)
            seeking = self.coordinator.lookup_session(token, agents=agents) if refused.status == 401 else None
            if seeking is not None:
                return self._authorize_remote(seeking, access, request)
            raise self._explain_refusal(refused, access, request) from None

    def error_response(self, refused: Refused, head: RequestHead) -> Response:
        """Return `{"ok": false, "error": "<text>", "code": "<word>"}`; for voice routes, the text alone.

        Basic voice gets JSON with `success`, except for 401 and 403. For OAuth routes, `error` and `error_description`
        follow RFC 6749 section 5.2.
        """
        body = {"ok": False, "error": refused.message, "code": refused.code, **refused.extra}
        path = self.router.inner(head.target.partition("?")[0])
        if path.startswith("/oauth/"):
            body |= {"error": refused.code, "error_description": refused.message}
        elif path in BASIC_PATHS and refused.status not in (401, 403):
            body["success"] = False  # wire terminal-voice 3: voice clients test this member
        elif path.startswith("/voice/"):
            fields = Headers([(b"content-type", b"text/plain; charset=utf-8"), *refused.headers])
            return Response(refused.status, fields, refused.message.encode("utf-8", "replace"))
        return json_response(refused.status, body, refused.headers)

    def response_headers(self, head: RequestHead, *, secure: bool) -> tuple[tuple[bytes, bytes], ...]:
        """Return no header fields: a relay adds none to its responses."""
        return ()

    # --- sessions ---

    def save(self, session: PairedSession, *, again: bool = False) -> Flow[Failure | None]:
        """Store a session, if there is a store; return a `Failure` if that did not succeed, else None.

        With `again`, a session that is missing in the store was revoked at another node, and ends here, too.
        """
        self.watch_sessions()
        failure = yield from self.records.save(session, again=again)
        if failure is not None and failure.kind is FailureKind.NOT_FOUND:
            self.close_connections(session, "the session was revoked")
        if failure is None and session.is_active(self.engine.now.wall):
            self.coordinator.session_saved(session)
        return failure

    def erase(self, session: PairedSession) -> Flow[str | None]:
        """Remove an ended session from the store; return a warning if that failed, else None."""
        self.watch_sessions()
        failure = yield from self.records.erase(session)
        if failure is None:
            return None
        after = "" if self.records.are_revocations_stored else "; a restart before that would make it valid again"
        return f"revoked, but the store did not take it yet: the relay goes on trying{after}"

    def grants_changed(self, session: PairedSession) -> None:
        """Close the MCP sessions and voice sockets, and unregister the phones, that lack a grant of the session now."""
        if self._mcp is not None and not may_read_phone(session, self.engine.now):
            self._mcp.close_principal_sessions(session.token_hash)
        if self._voice is not None:
            for holder in session.credential_ids:
                self._voice.recheck(holder)
        # Last, so that requests are refused before they fail for a lost phone.
        self.drop_lapsed_phones(self.clients_of(session))

    def name_changed(self, session: PairedSession) -> None:
        """Register the phones of a session under its new name, and report a change of the list of phones."""
        for client in self.clients_of(session):
            phone = self.phones.find_by_socket(client.number)
            if phone is not None and phone.name != session.device_name:
                self._register_phone(client.number, session)
        self.changes.notify(DEVICES)

    def revoke(self, session: PairedSession, reason: str) -> Flow[str | None]:
        """End a session and all that depends on it; return a warning if the store could not delete it, else None."""
        if self.close_connections(session, reason):
            self.coordinator.session_ended(session)
        return (yield from self.erase(session))

    def close_connections(self, session: PairedSession, reason: str) -> bool:
        """End a session at this node; return False if it had ended already."""
        if not session.is_active(self.engine.now.wall):
            return False
        self.sessions.revoke(session, self.engine.now)
        self.engine.log(Level.INFO, "session revoked", session=session.token_prefix, device=session.device_name)
        self.end_session(session, reason)
        return True

    def end_session(self, session: PairedSession, reason: str) -> None:
        """End the requests, sockets, MCP and voice sessions of a session that was revoked or has expired."""
        # Requests first: one that waits for a phone of the same session is refused rather than failed for a lost phone.
        for holder in session.credential_ids:
            self.engine.revoke_credential(holder, Refused(401, "unauthorized", reason))
        if self._mcp is not None:
            self._mcp.close_principal_sessions(session.token_hash)
        for client in self.clients_of(session):
            self.forget(client)
            client.close_for(reason)
        if self._voice is not None:
            self._voice.end_bearers(session.credential_ids, reason)

    def forget_session(self, session: PairedSession) -> None:
        """Revoke a session that no client uses, such as an undelivered pairing; erase its record in the background."""
        if session.is_active(self.engine.now.wall):
            self.sessions.revoke(session, self.engine.now)
            self.coordinator.session_ended(session)
        self.records.erase_later(session)

    def expire_sessions(self) -> None:
        """End the sessions whose lifetime has elapsed: the first ones now, and the rest in pages after pauses."""
        for session in self.sessions.expire_due(self.engine.now):
            self.engine.log(Level.INFO, "session expired", session=session.token_prefix, device=session.device_name)
            self.end_session(session, "the session has expired")
            self.records.erase_later(session)
        self.watch_sessions()

    def watch_sessions(self) -> None:
        """Set the timer for the next expiry of a session, at most an hour ahead, or cancel it if no session expires."""
        if (expiry := self.sessions.next_expiry()) is None:
            self._session_timer.cancel()
            return
        rest = max(expiry - self.engine.now.wall, EXPIRY_PAUSE)
        self._session_timer.set(self.engine.now.mono + min(rest, RECHECK_INTERVAL))

    # --- clients and phones ---

    def online(self) -> frozenset[str]:
        """Return the token hashes of the sessions that have an open socket."""
        return frozenset(self._sockets)

    def clients_of(self, session: PairedSession) -> list[ClientConnection]:
        """Return the authenticated WebSocket clients of a session at this node."""
        return list(self._sockets.get(session.token_hash, {}).values())

    def open_client(self, request: Request) -> ClientConnection:
        """Create the handler of a WebSocket request.

        Raise `Refused` 429 for a blocked address, unless the request has a valid token.
        """
        client, now = ClientConnection(self, request), self.engine.now
        wait = self.limiter.blocked_for(client.address, now)
        if wait > 0 and bearer_session(request, self.sessions, now) is None:
            seconds = ceil(wait)
            raise Refused(
                429,
                "rate_limited",
                f"rate limited: too many failed attempts; try again in {seconds} seconds",
                extra={"retry_after": seconds},
                headers=((b"retry-after", b"%d" % seconds),),
            )
        return client

    def welcome(self, client: ClientConnection, session: PairedSession) -> None:
        """Register an authenticated client; also as a phone if it is one by its surface and has the bridge grant."""
        self.clients[client.number] = client
        self._sockets.setdefault(session.token_hash, {})[client.number] = client
        if session.client_surface in TARGET_SURFACES and client.has_grant("bridge"):
            self._register_phone(client.number, session)

    def forget(self, client: ClientConnection) -> None:
        """Unregister a client whose socket is closed, or is about to be closed with its session."""
        if self.clients.pop(client.number, None) is not None:
            session = cast("PairedSession", client.session)
            del self._sockets[session.token_hash][client.number]
            if not self._sockets[session.token_hash]:
                del self._sockets[session.token_hash]
            self.owner_messages.unsubscribe(client.number)
            self.remove_phone(client.number)

    def register_phone(
        self, socket: int, *, device_id: str, name: str, surface: str, form_factor: str, session_prefix: str | None
    ) -> int | None:
        """Register a phone; return the number of the phone that it replaces for the same device, if any."""
        replaced = self.phones.register(
            socket,
            device_id=device_id,
            name=name,
            surface=surface,
            form_factor=form_factor,
            session_prefix=session_prefix,
        )
        if replaced is not None:
            self.bridge.socket_lost(replaced)
        self.changes.notify(DEVICES)
        return replaced

    def phone_reported(self, number: int, session: PairedSession, payload: Mapping[str, object]) -> None:
        """Record a client's `bridge.status`; first register the client as a phone if it is none.

        If its device is registered with another socket, do nothing.
        """
        if self.phones.find_by_socket(number) is None and self.phones.find_by_device_id(session.device_id) is None:
            self._register_phone(number, session)  # never in the place of another open socket
        if self.phones.status(number, payload, self.engine.now):
            self.coordinator.phone_status_changed(number)

    def owns_locally(self, what: str, name: str) -> bool:
        """Report whether this node has the file or session `name`; an ended voice or tmux session may still count.

        `what` is `media`, `mcp`, `voice` or `terminal`.
        """
        match what:
            case "media":
                return self.media.has(name)
            case "mcp":
                return self._mcp is not None and name in self._mcp.sessions
            case "voice":
                return self._voice is not None and name in self._voice
            case "terminal":
                return name in self.shells.begun
            case _:
                return False  # of a later version

    @property
    def open_oauth(self) -> AuthorizationServer | None:
        """Authorization server of MCP clients; None if it is not loaded yet."""
        return self._oauth

    def live_terminals(self) -> dict[str, Terminal]:
        """Return the attached terminals by the names of their tmux sessions, one for each name."""
        return {
            self.shells.session_name(name): terminal
            for client in self.clients.values()
            if client.terminals is not None
            for name, terminal in client.terminals.held.items()
        }

    def remove_phone(self, socket: int) -> None:
        """Unregister a phone; pending commands to it fail at once."""
        if self.phones.remove(socket) is not None:
            self.coordinator.phone_disconnected(socket)
            self.changes.notify(DEVICES)
        self.bridge.socket_lost(socket)

    def phone_for(self, selector: str | None) -> tuple[ConnectedPhone, PhoneRoute]:
        """Return the selected phone and the route to it; unregister a phone without a route or a live grant of its own.

        Raise `Refused` 404, 409 or 503 if no phone, or several, can be meant.
        """
        while True:
            try:
                phone = self.phones.choose(selector)
            except Refused as refused:
                raise self.coordinator.explain_missing_phone(refused) from None
            client = self.clients.get(phone.socket)
            route = self.coordinator.route_to_phone(phone.socket) if client is None else client.socket
            if route is not None and (client is None or client.has_grant("bridge")):
                return phone, route
            self.remove_phone(phone.socket)

    def drop_lapsed_phones(self, among: Iterable[ClientConnection] | None = None) -> None:
        """Unregister phones whose own bridge grant has expired (wire bridge 1.4), of these clients or of all."""
        for client in list(self.clients.values()) if among is None else among:
            if self.phones.find_by_socket(client.number) is not None and not client.has_grant("bridge"):
                self.remove_phone(client.number)

    def watch_commands(self) -> None:
        """Set the timer for the next deadline of a pending command, unless it is set."""
        if self._bridge_timer.when is None:
            deadline = self.bridge.next_deadline()
            if deadline is not None:
                self._bridge_timer.set(deadline)

    # --- parts that are loaded with their first use ---

    def voice_counts(self) -> dict[str, int]:
        """Return the number of voice sessions of each mode, by `voice:<mode>`; empty while voice is not loaded."""
        return {} if self._voice is None else self._voice.counts()

    @property
    def voice_side(self) -> VoiceSubsystem:
        """Voice subsystem, loaded with its first use."""
        if self._voice is None:
            from svc_proto.relay.voice.subsystem import VoiceSubsystem  # noqa: PLC0415, RUF100 - a third of the start

            self._voice = VoiceSubsystem(self)
        return self._voice

    @property
    def mcp(self) -> McpHttpServer:
        """MCP server of `/mcp`, loaded with its first use."""
        if self._mcp is None:
            from svc_proto.relay.mcp_phone_control import mcp_server  # noqa: PLC0415, RUF100 - a tenth of the start

            self._mcp = mcp_server(self)
        return self._mcp

    @property
    def oauth(self) -> AuthorizationServer:
        """Authorization server of MCP clients, loaded with its first use."""
        if self._oauth is None:
            from svc_proto.relay.oauth.authorization_server import AuthorizationServer  # noqa: PLC0415, RUF100 - see `voice_side`

            self._oauth = AuthorizationServer(self)
        return self._oauth

    def _described_routes(self) -> list[Route]:
        from svc_proto.relay.routes.oauth import metadata_routes  # noqa: PLC0415, RUF100 - see `voice_side`

        return metadata_routes(self.oauth)

    def _oauth_routes(self) -> list[Route]:
        from svc_proto.relay.routes.oauth import routes  # noqa: PLC0415, RUF100 - see `voice_side`

        return routes(self.oauth)

    def _voice_routes(self) -> list[Route]:
        from svc_proto.relay.routes import voice_basic, voice_settings  # noqa: PLC0415, RUF100 - see `voice_side`

        return [*voice_basic.routes(self), *voice_settings.routes(self)]

    # --- helpers ---

    def _authorize_remote(self, seeking: Flow[object], access: RelayAccess, request: Request) -> Flow[object]:
        """Authorize again after the lookup of a session that another node may have created; raise `Refused`."""
        yield from seeking
        try:
            return authorize(access, request, self.sessions, self.local_authorizer, self.engine.now)
        except Refused as refused:
            raise self._explain_refusal(refused, access, request) from None

    def _explain_refusal(self, refused: Refused, access: RelayAccess, request: Request) -> Refused:
        self._log_refusal(refused, request)
        if access is RelayAccess.AGENT and refused.code in ("unauthorized", "grant_required"):
            refused.headers = (
                challenge_headers(self.proxies, self.config.root_path, request, refused.status) or refused.headers
            )
        return refused

    def _log_refusal(self, refused: Refused, request: Request) -> None:
        """Log a refusal 401 of a request with `Authorization`; repeated ones of an address are logged at intervals."""
        address, engine = self.proxies.client_address(request), self.engine
        guessed = refused.status == 401 and request.headers.get(b"authorization") is not None
        if guessed and self._mentions.is_due(address, engine.now.mono):
            engine.log(Level.WARNING, "wrong session token", address=address)

    def _start(self) -> Flow[None]:
        engine = self.engine
        failure = yield from self.coordinator.load_sessions(self.records)
        if failure is not None:
            engine.exit(1, f"the session store cannot be read: {failure.detail or failure.kind.value}")
            return
        self.profiles = yield from self._load_profiles()
        yield from self.local_authorizer.prepare(engine)
        yield from self.shells.prepare()
        yield from self.media.prepare()
        yield from self.coordinator.start()
        if self.config.pairing_code is not None and self.config.begins:
            yield from self.coordinator.register_code(self.config.pairing_code, default_terms(self.config))
        self.watch_sessions()
        engine.log(Level.INFO, "ready", sessions=self.sessions.total, port=self.config.port)
        engine.emit(Ready())

    def _start_failed(self, error: Exception) -> None:
        self.engine.exit(70, f"internal error, reference {self.engine.log_bug(error)}")

    def _load_profiles(self) -> Flow[list[ProfileJson]]:
        config = self.config
        if config.profile_discovery:
            self._profile_timer.set(self.engine.now.mono + RESCAN_INTERVAL)
        return (yield from load_profiles(self.engine, config.config_path, discover=config.profile_discovery))

    def _rescan(self) -> None:
        self.engine.spawn(self._load_profiles(), on_done=self._profiles_found)

    def _profiles_found(self, profiles: list[ProfileJson]) -> None:
        if profiles == self.profiles:
            return
        self.profiles = profiles
        for client in self.clients.values():
            client.send_profiles(profiles)

    def _register_phone(self, number: int, session: PairedSession) -> None:
        replaced = self.register_phone(
            number,
            device_id=session.device_id,
            name=session.device_name,
            surface=session.client_surface,
            form_factor=session.device_form_factor,
            session_prefix=session.token_prefix,
        )
        self.coordinator.phone_connected(number, replaced)
        self.engine.log(Level.INFO, "phone connected", device=session.device_name, session=session.token_prefix)

    def _expire_commands(self) -> None:
        self.bridge.expire_due(self.engine.now)
        self.watch_commands()


def _manual() -> ApiDoc:
    from svc_proto.relay.openapi.operations import API_DOC  # noqa: PLC0415, RUF100 - rarely used

    return API_DOC
