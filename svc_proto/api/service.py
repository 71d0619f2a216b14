"""The API server: its parts, its access policies, start and stop."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import TYPE_CHECKING, TypeVar, cast

from attrs import evolve

from svc_proto.agent.agent_factory import AgentConfig, build_agent
from svc_proto.agent.interface import Agent
from svc_proto.agent.memory import MemoryChangeResult
from svc_proto.agent.sentences import SentenceParser
from svc_proto.api.access import (
    MAIN_KEY_PRINCIPAL,
    ApiAccess,
    Cors,
    KeyGuessLimiter,
    authorize,
    has_bearer,
    preflight_headers,
)
from svc_proto.api.agent_settings import AgentSettings, AgentSettingsReader
from svc_proto.api.change_ledger import ChangeLedger
from svc_proto.api.cluster.local_session_ownership import LocalSessionOwnership
from svc_proto.api.config import ApiConfig
from svc_proto.api.errors import error_response, store_unavailable
from svc_proto.api.host_settings import HostSettings, read_key
from svc_proto.api.model_config_file import PROMPT, ModelConfigFile
from svc_proto.api.model_list import ModelList
from svc_proto.api.routes import (
    approvals,
    chat,
    completions,
    gateway,
    host_settings,
    image_activity,
    management,
    mcp,
    profile,
    responses,
    runs,
    sessions,
    status,
)
from svc_proto.api.runs.run_manager import RunManager
from svc_proto.basics.brand import Brand, recognize_headers
from svc_proto.basics.errors import Refused
from svc_proto.basics.moment import Moment
from svc_proto.commands import Level, Query, Ready, StoreRequest
from svc_proto.engine.admission import AdmissionControl
from svc_proto.engine.audit_log import AuditLog
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, run_operation
from svc_proto.engine.message import AnonymousType, Request, Response
from svc_proto.engine.router import Route, RouteMatch, Router
from svc_proto.engine.server_channel import ServerChannel
from svc_proto.engine.sync import Lock
from svc_proto.facts import Accepted, Failure
from svc_proto.machines.log_throttle import LogThrottle
from svc_proto.machines.pairing_api_keys import PairingApiKeys
from svc_proto.monitoring.monitoring_routes import MonitoringRoutes
from svc_proto.openapi.routes import OpenApiRoutes
from svc_proto.service_clients.authority import MANAGE, Authority, named_principal, withheld_powers
from svc_proto.wire.events import NO_HEADERS, Headers, RequestHead
from svc_proto.wire.limits import DEFAULT_LIMITS, Limits

if TYPE_CHECKING:
    from svc_proto.api.gateway.service import ApiGateway
    from svc_proto.mcp.streamable_http import McpHttpServer
    from svc_proto.openapi.operation_doc import ApiDoc

__all__ = ["BODY_LIMIT", "LIMITS", "Api"]

BODY_LIMIT = 10_000_000  # bytes, wire api 2.5
# A file of 50 MB in base64 arrives at the gateway as one message, which is read in parts. Two are read whole at a time,
# over HTTP/2 or without an attachment.
LIMITS = evolve(DEFAULT_LIMITS, max_message=68 * 1024 * 1024, large_inputs=2)
BODILESS = ("GET", "HEAD")
STORE_TIMEOUT = 30.0  # s
# Seconds between two checks of the keys behind open requests, while there are any.
KEY_CHECK_INTERVAL = 1.0
NO_ROUTE = "not_found"  # the code of the router's 404

T = TypeVar("T")


class Api:
    """The API server as a service of an engine."""

    engine: Engine
    runs: RunManager

    def __init__(
        self,
        config: ApiConfig,
        *,
        limits: Limits = LIMITS,
        agent: Agent | None = None,
        keys: PairingApiKeys | None = None,
        sentences: SentenceParser | None = None,
    ) -> None:
        """Create the service.

        `agent` replaces the configured agent; `keys` are those of a relay beside it; `sentences` is the parser of the
        built-in agent.
        """
        self.config = config
        self.limits = limits
        self.cors = Cors(config.cors_origins)
        self.started = Moment(0.0, 0.0)
        self.ownership = _ownership(self)
        self._guesses = KeyGuessLimiter(self.ownership.limiter)
        self._monitor = MonitoringRoutes(config.metrics_token, self._guesses.limiter, version=config.version)
        self._mentions = LogThrottle()
        self._keys = keys or PairingApiKeys()
        self._replaced = ""  # the previous key, after a replacement
        self._agent = agent
        self._sentences = sentences
        self._mcp: McpHttpServer | None = None
        self._gateway: ApiGateway | None = None
        themes = (
            status,
            sessions,
            image_activity,
            host_settings,
            management,
            approvals,
            profile,
            chat,
            completions,
            runs,
            responses,
            mcp,
            gateway,
        )
        rows = [row for theme in themes for row in theme.routes(self)]
        rows += self._monitor.routes(ApiAccess.MONITOR, ApiAccess.PUBLIC)
        rows += OpenApiRoutes(_manual, lambda: self.router, config.root_path, config.version).routes(
            ApiAccess.LOCAL_OR_KEY
        )
        self.router = ApiRouter(rows, config.root_path)

    # --- Service ---

    def bind(self, engine: Engine) -> None:
        """Implement `Service.bind`: store the engine and create the parts."""
        self.engine, config = engine, self.config
        self._admission = AdmissionControl(engine, self, self.limits)
        self._monitor.bind(engine, self._admission, lambda: [*self.runs.metrics(), *self.ownership.metrics()])
        self.parts = build_agent(
            engine,
            AgentConfig(
                home=config.home,
                relay_url=config.relay_url,
                relay_token=config.relay_token,
                brand=config.brand,
                tools=config.tools,
                sentences=self._sentences,
            ),
        )
        self.agent = self._agent or self.parts.agent
        self.config_file = ModelConfigFile(engine, config)
        self.host_settings = HostSettings(engine, config)
        self.ledger = ChangeLedger(self)
        self._audit = AuditLog(engine)
        self.model_list = ModelList(engine)
        self._settings = AgentSettingsReader(engine)
        self._servers: Mapping[str, object] | None = None
        self.runs = RunManager(self)
        self.responses = self.ownership.responses()
        self.forks = Lock(engine)
        self._key_check_timer = engine.timers.timer(self._revoke_expired_keys)

    def on_started(self) -> None:
        """Connect to the cluster, then accept connections."""
        self.started = self.engine.now
        self.engine.spawn(self._start())

    def _start(self) -> Flow[None]:
        engine, config = self.engine, self.config
        yield from self.ownership.start()
        engine.log(Level.INFO, "ready", service="api", port=config.port, key=bool(config.key))
        engine.emit(Ready())

    def on_accepted(self, fact: Accepted) -> ServerChannel | None:
        """Return the channel that serves a connection; None if it is refused at the limits."""
        return self._admission.admit(fact)

    def on_stopping(self) -> None:
        """Stop the runs, whose turns store their texts as they end, and the cluster, the agent's parts and MCP."""
        self.runs.stop_all()
        self.ownership.stop()
        self.parts.stop()
        if self._mcp is not None:
            self._mcp.stop()

    # --- HttpApp ---

    def authorize(self, access: Enum, request: Request) -> AnonymousType | str | None:
        """Check the origin, then `access`, of a request; return its principal as `access.authorize` does.

        The principal is None for `MONITOR`. Wrong keys are counted. Raises `Refused` 403 for a web page that is not
        allowed or a right that is withheld, and as `access.authorize`; 429 in place of 401 for an address with too many
        wrong keys.
        """
        if not isinstance(access, ApiAccess):
            raise TypeError("the API's routes name an Access")
        if not self.cors.allows(request.headers):
            raise Refused(403, "", "this web page may not call the API")
        if access is ApiAccess.MONITOR:
            self._monitor.check(request)
            return None
        now = self.engine.now
        try:
            caller = authorize(
                access, request, self.config.key, self.config.names, lambda key: self._keys.accepts(key, now)
            )
        except Refused as refused:
            guess = self._guesses.record_failure(request, now) if refused.status == 401 else None
            if refused.status == 401:
                self._log_refusal(request, blocked=guess is not None)
            raise guess or refused from None
        if access is ApiAccess.MANAGE and not self.authority_of(caller, request.headers).holds(MANAGE):
            raise Refused(403, "grant_required", "this needs the right manage, which the pairing of this key withholds")
        if access in (ApiAccess.KEY, ApiAccess.MANAGE, ApiAccess.MAIN_KEY, ApiAccess.OWNER):
            self._guesses.record_success(request, now)
        if isinstance(caller, str):
            request.credential_id = caller
            if self._key_check_timer.when is None:
                self._key_check_timer.set(now.mono + KEY_CHECK_INTERVAL)
        elif access in (ApiAccess.KEY, ApiAccess.MANAGE, ApiAccess.OWNER) and self.config.key:
            request.credential_id = MAIN_KEY_PRINCIPAL
        return caller

    def _log_refusal(self, request: Request, *, blocked: bool) -> None:
        address, engine = request.peer.host, self.engine
        if request.headers.get(b"authorization") is None or not self._mentions.is_due(address, engine.now.mono):
            return
        # The previous key is no attack: its client has to read the files, or to pair, again.
        if self._replaced and has_bearer(request.headers, self._replaced):
            engine.log(Level.INFO, "replaced API key refused", address=address, blocked=blocked)
        else:
            engine.log(Level.WARNING, "wrong API key", address=address, blocked=blocked)

    def error_response(self, refused: Refused, head: RequestHead) -> Response:
        """Build an error response; a web page without permission gets an empty 403 (wire api 2.4).

        A HEAD request whose route exists gets 200 instead of 404 (wire api 1).
        """
        if not self.cors.allows(head.headers):
            return Response(403)
        if head.method == "HEAD" and refused.status == 404 and refused.code != NO_ROUTE:
            return Response(200)  # wire api 1: a HEAD request probes for the route, with an id that does not exist
        return error_response(refused, head.target)  # the target may be unreadable

    def response_headers(self, head: RequestHead, *, secure: bool) -> tuple[tuple[bytes, bytes], ...]:
        """Return the CORS and security header fields (wire api 2.4)."""
        return self.cors.fields(head.headers, secure=secure)

    # --- for routes ---

    def authority(self, request: Request) -> Authority:
        """Return the authority of the client that sent a request."""
        return self.authority_of(cast("str | None", request.principal), request.headers)

    def record_audit(self, event: str, request: Request, /, **about: object) -> None:
        """Record an audit event of the client that sent a request."""
        self._audit.record(event, self.authority(request).name, request.peer.host, **about)

    def authority_of(self, caller: AnonymousType | str | None, headers: Headers = NO_HEADERS) -> Authority:
        """Return the authority of `caller`, without the powers that these header fields renounce.

        `caller` is the credential id of a pairing's API key; any other value has all powers: the main key, a program of
        this host, or a server without a key.
        """
        renounced = withheld_powers(headers)
        if not isinstance(caller, str):
            return Authority(named_principal(headers), lambda power: power not in renounced)

        def holds(power: str) -> bool:
            return power not in renounced and self._keys.holds(caller, power, self.engine.now)

        return Authority(self._keys.name(caller), holds)

    def run_store_request(self, request: StoreRequest[T]) -> Flow[T]:
        """Run a store request. Raises `Refused` 503 if it fails or times out."""
        answer = yield from run_operation(self.engine, Query(self.engine.new_op(), request), within=STORE_TIMEOUT)
        if isinstance(answer, Failure):
            problem = {"problem": answer.kind.value, "why": answer.detail}
            self.engine.log(Level.ERROR, "store failed", request=type(request).__name__, **problem)
            raise store_unavailable()
        return answer

    def settings(self) -> Flow[AgentSettings]:
        """Return the current settings of the agent, and pass changed MCP servers to the agent."""
        settings = yield from self._settings.read(self.config)
        if settings.servers is not self._servers:
            self._servers = settings.servers
            self.parts.use_servers(settings.servers)
        return settings

    def setting_values(self) -> Flow[dict[str, str]]:
        """Return the values of the settings that can be changed, by name; "" if unset."""
        settings = yield from self.settings()
        found = {
            "model": settings.model,
            "provider": settings.provider,
            "base_url": settings.base_url,
            PROMPT: settings.system,
        }
        return {name: value or "" for name, value in found.items()}

    def change_settings(self, request: Request, change: dict[str, str]) -> Flow[None]:
        """Change the configuration file for a client, and record it."""
        before = yield from self.setting_values()
        yield from self.config_file.change_model(change)
        self.ledger.settings(self.authority(request).name, before, change)
        self.record_audit("setting changed", request, settings=", ".join(sorted(change)))

    def memory_changed(self, request: Request, change: MemoryChangeResult) -> None:
        """Record a client's change of the notes, if there was one."""
        if change.note is not None:
            for note in (change.note, *change.others):
                self.ledger.memory(self.authority(request).name, note)
            self.record_audit("memory changed", request, list=change.note.target)

    def reload_key(self) -> Flow[bool]:
        """Load the key from the files; report whether it has changed.

        After a change, requests with the old key to routes of `KEY`, `MANAGE` and `OWNER` end, and so do its gateway
        connections, queued prompts, runs and MCP sessions. Raises `Refused` 409 in the cases of `read_key`: the old key
        stays.
        """
        key = yield from read_key(self.engine, self.config)
        if key == self.config.key:
            return False
        self._replaced, self.config = self.config.key, evolve(self.config, key=key)
        self._keys.replaced += 1
        self.engine.log(Level.INFO, "API key replaced")
        self._revoke_credential(MAIN_KEY_PRINCIPAL, "this API key was replaced")
        return True

    @property
    def gateway(self) -> ApiGateway:
        """JSON-RPC gateway at `/api/ws`, created at the first use."""
        if self._gateway is None:
            from svc_proto.api.gateway.service import ApiGateway  # noqa: PLC0415, RUF100 - loaded at the first use

            self._gateway = ApiGateway(self)
        return self._gateway

    @property
    def mcp(self) -> McpHttpServer:
        """MCP server at `/mcp`, created at the first use."""
        if self._mcp is None:
            from svc_proto.api.mcp_agent import agent_server  # noqa: PLC0415, RUF100 - loaded at the first use

            self._mcp = agent_server(self)
        return self._mcp

    # --- helpers ---

    def brand_of(self, request: Request) -> Brand:
        """Return the brand of the client of a request: by its headers, else by its key, else the server's."""
        brand = recognize_headers(request.headers)
        if brand is None and isinstance(request.principal, str):
            session = self._keys.sessions.find_by_api_key(request.principal)
            brand = None if session is None else session.brand
        return brand or self.config.brand

    def _revoke_credential(self, credential_id: str, why: str) -> None:
        self.engine.revoke_credential(credential_id, Refused(401, "invalid_api_key", why))
        if self._mcp is not None:
            self._mcp.close_principal_sessions(credential_id)

    def _revoke_expired_keys(self) -> None:
        """Revoke credentials whose key is no longer valid; called by a timer, as the relay ends keys without notice."""
        held = self.engine.revocables
        for credential_id in [
            credential_id for credential_id in dict.fromkeys(held.values()) if credential_id != MAIN_KEY_PRINCIPAL
        ]:
            if not self._keys.is_valid(credential_id, self.engine.now):
                self._revoke_credential(credential_id, "the session of this API key is over")
        if any(credential_id != MAIN_KEY_PRINCIPAL for credential_id in held.values()):
            self._key_check_timer.set(self.engine.now.mono + KEY_CHECK_INTERVAL)


class ApiRouter(Router):
    """Route table in which changing methods take bodies up to `BODY_LIMIT`, and GET and HEAD none.

    A CORS preflight request is answered for every path, also for one that does not exist.
    """

    def __init__(self, routes: Iterable[Route], prefix: str = "") -> None:
        limited = (evolve(route, body_limit=0 if route.method in BODILESS else BODY_LIMIT) for route in routes)
        super().__init__(limited, prefix)

    def match(self, method: str, path: str) -> RouteMatch:
        """Match as `Router.match`; OPTIONS matches every path, and names the methods of a path that exists."""
        if method != "OPTIONS":
            return super().match(method, path)
        return _SERVER_OPTIONS if path == "*" else _about_options(self.methods(path))


def _ownership(api: Api) -> LocalSessionOwnership:
    if api.config.cluster is None:
        return LocalSessionOwnership(api)
    from svc_proto.api.cluster.session_ownership import ClusterSessionOwnership  # noqa: PLC0415, RUF100 - not loaded by a single node

    return ClusterSessionOwnership(api, api.config.cluster)


def _manual() -> ApiDoc:
    from svc_proto.api.openapi.operations import API_DOC  # noqa: PLC0415, RUF100 - loaded at the first use

    return API_DOC


def _about_options(methods: Iterable[str]) -> RouteMatch:
    """Return the route that answers OPTIONS for a path with these methods.

    Without methods the path does not exist: a preflight request is answered, any other gets 404.
    """
    allowed = ", ".join((*methods, "OPTIONS"))

    def answer(request: Request) -> Response:
        if not methods and request.headers.get(b"access-control-request-method") is None:
            raise Refused(404, NO_ROUTE, "there is nothing at this path")
        return Response(200, Headers((*preflight_headers(request), (b"allow", allowed.encode("ascii")))))

    return RouteMatch(Route(method="OPTIONS", pattern="*", access=ApiAccess.PUBLIC, handler=answer, body_limit=0), {})


_SERVER_OPTIONS = _about_options(("GET", "HEAD", "POST", "PATCH", "DELETE"))  # of the server: RFC 9110 section 9.3.7
