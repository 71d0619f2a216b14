"""Gathering of the observations that the health checks judge: the host's report, and requests to servers."""

from collections.abc import Collection, Mapping, Sequence

from attrs import evolve, frozen

from svc_proto.cli.health_facts import (
    CertificateFacts,
    DeviceFacts,
    Finding,
    HostFacts,
    ModelFacts,
    RouteFacts,
    ServerFacts,
    parse_device,
)
from svc_proto.cli.operator_requests import local_relay
from svc_proto.cli.pairing_candidates import ApiCandidate, CandidateMode, HostCandidate
from svc_proto.cli.pairing_routes import RouteRequest, find_routes
from svc_proto.cli.public_url_check import PublicUrlCheck, check_public_url
from svc_proto.commands import Compute
from svc_proto.engine.core import Engine
from svc_proto.engine.files import read_state
from svc_proto.engine.flow import Flow, run_operation
from svc_proto.engine.http_client import HttpResult, fetch
from svc_proto.engine.retry_delay import parse_response_date
from svc_proto.facts import Failure
from svc_proto.relay_config import RelayConfig
from svc_proto.schema.json_object import JsonObject
from svc_proto.schema.model_profile import DEFAULT_PROFILE, PROFILES_FILE, parse_profiles
from svc_proto.service_clients.bind_addresses import LOCAL_HOSTS, WILDCARD_ADDRESSES
from svc_proto.service_clients.host_addresses import find_host_addresses
from svc_proto.service_clients.local_api import find_local_api
from svc_proto.service_clients.model_probe import ModelListing, find_abilities, list_models, try_model
from svc_proto.service_clients.relay_client import RelayClient
from svc_proto.service_clients.relay_url import RelayUrl
from svc_proto.service_clients.service_client import ServiceCallError

__all__ = ["HealthRequest", "gather_facts"]

PROBE_TIMEOUT = 4.0  # s, spec "Limits"
REPORT_TIMEOUT = 15.0  # s: a check of a large database reads it
HERE_ALONE = set(LOCAL_HOSTS) - set(WILDCARD_ADDRESSES)
API_KEY = "API_SERVER_KEY"  # without this setting a relay runs alone by choice
HEALTH_PATHS = {"relay": "/health", "api": "/health", "dashboard": "/healthz"}


@frozen(kw_only=True)
class HealthRequest:
    """Scope of the observations. `tries_model` permits a request to the model, which may cost money.

    `relay` is the client that lists the devices; None stands for the relay on this host.
    """

    config: RelayConfig
    version: str
    relay: RelayClient | None = None
    public: HostCandidate | None = None
    tries_model: bool = True
    ports: tuple[tuple[str, int], ...] = ()  # roles with configured ports


def gather_facts(engine: Engine, request: HealthRequest) -> Flow[HostFacts]:
    """Gather the observations of this host: servers, routes, certificates, model, disk and devices."""
    config = request.config
    answer = yield from run_operation(
        engine, Compute(engine.new_op(), "host.report", (config.home, request.ports)), within=REPORT_TIMEOUT
    )
    report = JsonObject.of({} if isinstance(answer, Failure) else answer)
    running = {row.text("role"): row for row in report.objects("servers")}
    settings = report.get_object("settings")
    wanted = {"relay", "api"} if settings.text(API_KEY) else {"relay"}
    servers = yield from _servers(engine, request, running, report.array_or_none("busy_ports") or [], wanted)
    local = yield from find_local_api(engine, config)
    api = ApiCandidate(running["api"].text("host") if "api" in running else local.host, local.port, local.tls)
    routes = yield from find_routes(engine, config, RouteRequest(mode=CandidateMode.AUTO, api=api))
    relay = next((each for each in servers if each.role == "relay"), None)
    up = relay is not None and relay.runs and relay.answers
    chats = "api" in running and api.host not in HERE_ALONE  # else `api_local_only` is found
    tested = list[RouteFacts]()
    for route in routes.routes if up else ():
        tested.append((yield from _test_route(engine, config, route, chats=chats)))
    public = list[Finding]()
    if request.public is not None:
        board = running.get("dashboard")
        check = PublicUrlCheck(
            route=request.public,
            relay=local_relay(config) if up else None,
            dashboard_path="" if board is None else board.text("root_path"),
        )
        public = yield from check_public_url(engine, check)
    model, date, source = yield from _model(engine, report.get_object("model"), tries=request.tries_model)
    return HostFacts(
        now=engine.now.wall,
        version=request.version,
        home=report.text("home") or config.home,
        servers=servers,
        addresses=(yield from find_host_addresses(engine)),
        routes=tuple(tested),
        left_out=tuple(f"{each.what}: {each.why}" for each in routes.left_out),
        has_outside_route=any(route.role != "lan" for route in routes.routes),
        public=tuple(public),
        certificates=tuple(_certificate(row) for row in report.objects("certificates")),
        model=model,
        disk_free=report.integer("disk_free"),
        home_problem=report.text("home_problem"),
        open_files=tuple(report.texts("open_files")),
        database=report.text("database"),
        database_problem=report.text("database_problem"),
        newest_file_at=report.number("newest_file_at"),
        foreign_clock=date,
        clock_source=source,
        key=_key(running, local.key),
        dashboard_password=settings.text("SVC_DASHBOARD_PASSWORD"),
        brand=config.brand.name,
        devices=(yield from _devices(engine, request.relay or local_relay(config))) if up else None,
        backup_at=report.number("backup_at"),
        home_since=report.number("home_since"),
        env_problem=report.text("env_problem"),
        unknown_variables=tuple(report.texts("unknown_variables")),
        config_problems=tuple(report.texts("config_problems")),
        missing_paths=tuple(report.texts("missing_paths")),
        is_container=report.boolean("is_container") is True,
    )


def _servers(
    engine: Engine,
    request: HealthRequest,
    running: Mapping[str, JsonObject],
    busy: Sequence[object],
    wanted: Collection[str],
) -> Flow[tuple[ServerFacts, ...]]:
    servers = list[ServerFacts]()
    for role, port in request.ports:
        row = running.get(role)
        if row is None:
            taken, is_wanted = port in busy, role in wanted
            servers.append(ServerFacts(role=role, port=port, runs=False, answers=False, taken=taken, wanted=is_wanted))
            continue
        answer = yield from fetch(engine, "GET", row.text("inside") + HEALTH_PATHS[role], within=PROBE_TIMEOUT)
        servers.append(
            ServerFacts(
                role=role,
                port=row.integer("port") or port,
                host=row.text("host"),
                answers=isinstance(answer, HttpResult) and answer.status == 200,
                version=row.text("version"),
                brand=row.text("brand") or "svc",
            )
        )
    return tuple(servers)


def _test_route(engine: Engine, config: RelayConfig, route: HostCandidate, *, chats: bool) -> Flow[RouteFacts]:
    relay = RelayClient("the relay", RelayUrl(route.relay_url).http_url)
    try:
        yield from relay.health(engine, within=PROBE_TIMEOUT)
    except ServiceCallError as error:
        return RouteFacts(route.role, route.relay_url, error.why or error.brief)
    if chats:
        answer = yield from fetch(engine, "GET", f"{route.api.url}/health", within=PROBE_TIMEOUT)
        if isinstance(answer, Failure):
            return RouteFacts(route.role, route.api.url, answer.detail or answer.kind.value)
    return RouteFacts(route.role, route.relay_url, api_url=route.api.url if chats else "")


def _model(engine: Engine, settings: JsonObject, *, tries: bool) -> Flow[tuple[ModelFacts, float | None, str]]:
    url, name, key = settings.text("base_url"), settings.text("name"), settings.text("key")
    source = settings.text("source")
    if not url:
        return ModelFacts(name=name, source=source), None, ""
    listing = yield from list_models(engine, url, key)
    found = ModelFacts(
        base_url=url,
        name=name,
        source=source,
        problem=listing.problem,
        status=listing.status,
        listed=listing.names,
        configured_context=settings.integer("context", 1),
    )
    if listing.problem or listing.status in (401, 403):
        return found, None, ""
    chosen = name or (listing.names[0] if len(listing.names) == 1 else "")
    if chosen:
        stored = yield from read_state(engine, PROFILES_FILE)
        if isinstance(stored, str):
            profile = parse_profiles(stored).get((url, chosen, found.configured_context), DEFAULT_PROFILE)
            found = evolve(found, learned=tuple(profile.describe()))
        found = yield from _with_abilities(engine, found, chosen, key, listing, tries=tries)
    return found, parse_response_date(listing.date), url


def _with_abilities(
    engine: Engine, model: ModelFacts, name: str, key: str, listing: ModelListing, *, tries: bool
) -> Flow[ModelFacts]:
    able = yield from find_abilities(engine, model.base_url, name, key, listing)
    tools = able.has_tools
    if tools is None and tries and (not listing.names or name in listing.names):
        trial = yield from try_model(engine, model.base_url, name, key)
        tools = False if trial.refuses_tools else None
    return evolve(model, has_tools=tools, context=able.context)


def _certificate(row: JsonObject) -> CertificateFacts:
    return CertificateFacts(
        role=row.text("role"),
        path=row.text("path"),
        problem=row.text("problem"),
        days_left=row.number("days_left") or 0.0,
        names=tuple(row.texts("names")),
    )


def _key(running: Mapping[str, JsonObject], key: str) -> str | None:
    """Return the API's key: "" if the running API has none, else `key`, or None if `key` is empty."""
    api = running.get("api")
    if api is not None and not api.text("key"):
        return ""
    return key or None


def _devices(engine: Engine, relay: RelayClient) -> Flow[tuple[DeviceFacts, ...] | None]:
    try:
        sessions = yield from relay.sessions(engine)
        phones = (yield from relay.json(engine, "GET", "/bridge/devices")).objects("devices")
    except ServiceCallError:
        return None
    by_prefix = {phone.text("session_token_prefix"): phone for phone in phones}
    return tuple(parse_device(row, by_prefix.get(row.text("token_prefix"))) for row in sessions)
