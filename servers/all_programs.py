"""Set-up of all servers in one process, with pairing on the terminal.

They share the loop, the service home and the store. The API's agent reaches the phone through the local relay, invites
name the local API, and the dashboard shows both, unless the operator configures other addresses.
"""

import logging
import os
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial

from attrs import evolve, frozen

from runtimes.host.host import Program, Services
from runtimes.net.listener import Listener
from runtimes.service_home.server_registry import HomeClaim
from servers import launch
from servers.api_program import announce_disabled, api_program, configured_model, read_api_config
from servers.dashboard_program import (
    dashboard_program,
    dashboard_refusal,
    is_local_safe,
    read_dashboard_config,
    with_local_servers,
    without_unsafe_local_access,
)
from servers.env_file import create_dashboard_password
from servers.relay_program import read_relay_config, relay_program
from servers.start_screen import StartScreen
from svc_proto.api.config import ApiConfig
from svc_proto.basics import strict_json
from svc_proto.cli.one_shot_service import OneShotService
from svc_proto.cli.pairing_candidates import ApiCandidate, CandidateMode, candidate_member
from svc_proto.cli.pairing_routes import FoundRoutes, RouteRequest, find_routes
from svc_proto.commands import Notify
from svc_proto.dashboard.config import DashboardConfig
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.engine.http_client import HttpResult, fetch
from svc_proto.facts import Failure
from svc_proto.machines.auth_rate_limiter import LOOPBACK
from svc_proto.machines.pairing_api_keys import PairingApiKeys
from svc_proto.relay_config import RelayConfig
from svc_proto.service_clients.bind_addresses import WILDCARD_ADDRESSES
from svc_proto.service_clients.local_secret import secret_headers

__all__ = ["ServerSelection", "all_programs", "with_api"]


@frozen(kw_only=True)
class ServerSelection:
    """Selection of the servers that one process runs, with address options, and whether it shows a QR."""

    qr: bool
    api: bool
    api_host: str | None
    api_port: int | None
    dashboard: bool
    dashboard_port: int | None


def all_programs(wanted: ServerSelection, options: Mapping[str, object]) -> list[Program]:
    """Build the programs of the selected servers, and with `qr` that of the invite. Raises `CannotStartError`.

    A server that the settings switch off or do not permit is left out, with a line on standard error. With the
    API and `qr`, a password for the dashboard is created if `_may_serve_phones`.
    """
    relay = read_relay_config(os.environ, options)
    if relay.workers > 1:
        raise launch.CannotStartError("RELAY_WORKERS is for a relay by itself: python -m servers.relay", code=2)
    where = {"host": wanted.api_host, "port": wanted.api_port}
    api = _api_config(relay, where, options) if wanted.api else None
    pointed = bool(options["webapi_url"] or launch.read_environment(os.environ).get("RELAY_WEBAPI_URL"))
    shared = {name: options[name] for name in ("no_ssl", "log_level", "log_format")}
    own = {"port": wanted.dashboard_port, **shared}
    board = read_dashboard_config(os.environ, own) if wanted.dashboard else None
    password = None
    if board is not None and api is not None and wanted.qr and _may_serve_phones(board, relay):
        password = create_dashboard_password(launch.private_home(relay.home), relay.host)
        board = read_dashboard_config(os.environ, own)
    problem = None if board is None else dashboard_refusal(board, relay)
    if problem is not None:
        board = None
        print(f"dashboard: not started: {problem}", file=sys.stderr, flush=True)
    if board is not None:
        board = without_unsafe_local_access(board, relay)
    return _open(relay, api, board, qr=wanted.qr, pointed=pointed, password=password)


def with_api(relay: RelayConfig, key: str, outside: Listener, inside: Listener) -> RelayConfig:
    """Return the relay's settings with the API beside it: its key, and its addresses.

    Phones use its listener `outside`, programs of this host `inside`; they may be the same.
    """
    scheme = "http" if outside.tls is None else "https"
    url, host = launch.inner_url(inside), WILDCARD_ADDRESSES.get(outside.address.host, outside.address.host)
    return evolve(
        relay,
        webapi_url=f"{scheme}://{launch.format_authority(host, outside.address.port)}",
        webapi_inside=url,
        api_key=key,
        voice=evolve(relay.voice, webapi_url=url, api_key=key),
    )


def _may_serve_phones(board: DashboardConfig, relay: RelayConfig) -> bool:
    """Report whether to open the dashboard to phones.

    This is so on a terminal, if the dashboard has no configured password or host, the relay listens beyond loopback,
    and `is_local_safe`.
    """
    configured = bool(board.password or launch.read_environment(os.environ).get("SVC_DASHBOARD_HOST"))
    return not configured and sys.stdout.isatty() and relay.host not in LOOPBACK and is_local_safe(relay)


def _api_config(relay: RelayConfig, own: Mapping[str, object], options: Mapping[str, object]) -> ApiConfig | None:
    """Return the API's settings, or None if it is switched off.

    The relay's address and configuration file are the defaults; the relay's `local_trust` is also that of the API.
    """
    shared = {name: options[name] for name in ("log_level", "log_format", "config", "brand", "no_ssl")}
    if not launch.read_environment(os.environ).get("SVC_CONFIG"):
        shared["config"] = relay.config_path
    config = evolve(read_api_config(os.environ, {**own, **shared}, beside=relay.host), local_trust=relay.local_trust)
    if not config.enabled:
        announce_disabled()
        return None
    return config


# --- opening ------------------------------------------------------------------------------------------------------


def _open(
    relay: RelayConfig,
    api: ApiConfig | None,
    board: DashboardConfig | None,
    *,
    qr: bool,
    pointed: bool,
    password: str | None,
) -> list[Program]:
    """Open the resources of all servers and build their programs; close everything if that fails.

    `pointed`: the operator has configured the API's address for phones. `password` is that of the dashboard if it was
    created now: the screen shows it once.
    """
    with ExitStack() as undo:

        def keep(listener: Listener) -> Listener:
            undo.callback(listener.sock.close)
            return listener

        def keep_inside(listener: Listener) -> Listener | None:
            inner = launch.open_inner_listener(listener)
            return None if inner is None else keep(inner)

        home = launch.private_home(relay.home)
        claims = dict[str, HomeClaim]()
        for role in ("relay", *(() if api is None else ("api",))):
            claims[role] = launch.claim_home(home, role)
            undo.callback(claims[role].release)
        listener = keep(launch.bind_server(relay, "relay"))
        api_listener = keep(launch.bind_server(api, "api")) if api is not None else None
        board_listener = keep(launch.bind_server(board, "dashboard")) if board is not None else None
        store = launch.open_home_store(home)
        undo.callback(store.close)
        inner, api_inner = keep_inside(listener), None
        if api is not None and api_listener is not None:
            if api.relay_url == ApiConfig().relay_url:  # otherwise the operator has configured another relay
                api = evolve(api, relay_url=launch.inner_url(inner or listener))
            api_inner = keep_inside(api_listener)
            if not pointed:
                relay = with_api(relay, api.key, api_listener, api_inner or api_listener)
        if board is not None and board_listener is not None and api is not None:
            relay = evolve(relay, dashboard=_dashboard_of_phones(board, board_listener))
        servers = 1 + (api is not None) + (board is not None)
        # Phones of this API get keys of their own; an API without a key needs none.
        keys = PairingApiKeys() if api is not None and api.key and not pointed else None
        announces = not (qr and sys.stdout.isatty())  # the screen has the addresses
        shared = partial(relay_program, listener=listener, inner=inner, store=store, servers=servers, keys=keys)
        programs = [shared(relay, claim=claims["relay"], announces=announces)]
        if api is not None:
            to_api = partial(api_program, listener=api_listener, inner=api_inner, store=store, servers=servers)
            programs.append(to_api(api, keys=keys, claim=claims["api"], announces=announces))
        if board is not None:
            there = (
                None if api is None or api_listener is None else (launch.inner_url(api_inner or api_listener), api.key)
            )
            seen = evolve(relay, port=listener.address.port)
            told = with_local_servers(board, seen, relay_url=launch.inner_url(inner or listener), api=there)
            programs.append(dashboard_program(told, listener=board_listener, servers=servers, announces=announces))
        if qr:
            api_url = None if api_listener is None else launch.inner_url(api_inner or api_listener)
            screen = StartScreen(
                brand=relay.brand,
                dashboard=None if board_listener is None or board is None else _page(board, board_listener),
                password=password,
                model=None if api is None else configured_model(api),
                api_only_here=(
                    api_listener is not None and api_listener.address.host in LOOPBACK and relay.public_url is None
                ),
            )
            keyless = api is not None and not pointed and keys is None
            bound = evolve(relay, port=listener.address.port)
            programs.append(_inviter(bound, launch.inner_url(inner or listener), api_url, screen, keyless=keyless))
        undo.pop_all()
        # They share a logger, and each core filters by its own level.
        levels = [int(config.log_level) for config in (relay, api, board) if config is not None]
        logging.getLogger("svc").setLevel(min(levels))
        return programs


def _dashboard_of_phones(board: DashboardConfig, listener: Listener) -> tuple[str, int] | None:
    """Return host and port on which the dashboard serves phones; None on loopback, with TLS, or without a password."""
    host = listener.address.host
    return None if not board.password or listener.tls is not None or host in LOOPBACK else (host, listener.address.port)


def _page(board: DashboardConfig, listener: Listener) -> str:
    """Return the dashboard's URL for a browser on this host."""
    host = WILDCARD_ADDRESSES.get(board.host, board.host)
    return f"{'http' if board.ssl_cert is None else 'https'}://{launch.format_authority(host, listener.address.port)}"


# --- pairing ------------------------------------------------------------------------------------------------------


class _InviteService(OneShotService[None]):
    """Service that requests an invite. Its early stop is no failure: the relay determines the exit code."""

    def on_stopping(self) -> None:
        self._engine.exit(0)


def _inviter(config: RelayConfig, url: str, api_url: str | None, screen: StartScreen, *, keyless: bool) -> Program:
    """Build the program that requests an invite, for `screen` to show, after relay and API have answered.

    It waits at most 10 s for each answer. Without a terminal it requests no invite. `keyless`: the API has no key.
    """

    def plan(engine: Engine) -> Flow[None]:
        yield from fetch(engine, "GET", f"{url}/health", within=10.0)  # once the relay answers, its secret exists
        if api_url is not None:
            # the API prints its lines before the screen
            yield from fetch(engine, "GET", f"{api_url}/health", within=10.0)
        secret = yield from secret_headers(engine)
        listed = yield from fetch(engine, "GET", f"{url}/sessions", headers=secret, within=10.0)
        if not sys.stdout.isatty():
            engine.emit(Notify("started", {}))
            return
        asked: dict[str, object] = {"api_key": ""} if keyless else {}
        found = yield from _find_routes(engine, config)
        asked["endpoints"] = [candidate_member(route, place) for place, route in enumerate(found.routes)]
        body = strict_json.dumps_bytes(asked)
        answer = yield from fetch(engine, "POST", f"{url}/pairing/mint", headers=secret, body=body, within=10.0)
        if isinstance(answer, Failure):
            engine.emit(Notify("no invite", {"why": f"{answer.kind.value} {answer.detail}".strip()}))
        elif answer.status != 200:
            engine.emit(Notify("no invite", {"why": f"it answered {answer.status}"}))
        else:
            notes = {} if screen.api_only_here else {"notes": found.notes}  # the screen has its own note then
            engine.emit(Notify("invite", {**answer.members, "paired": _count(listed), **notes}))

    services = Services(state=launch.private_home(config.home))
    return Program(core=Engine(_InviteService(plan), entropy=os.urandom), services=services, on_notify=screen.show)


def _find_routes(engine: Engine, config: RelayConfig) -> Flow[FoundRoutes]:
    """Find the routes that `svc pair` would put into an invite."""
    there = config.webapi
    request = RouteRequest(mode=CandidateMode.AUTO, api=ApiCandidate(there.host, there.port, there.tls))
    return find_routes(engine, config, request)


def _count(listed: HttpResult | Failure) -> int | None:
    """Return the number of paired devices in the relay's list; None without a list."""
    if isinstance(listed, Failure) or listed.status != 200:
        return None
    sessions = listed.members.array_or_none("sessions")
    return None if sessions is None else len(sessions)
