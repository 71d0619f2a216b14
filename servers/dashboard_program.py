"""Set-up of the dashboard: reads its settings, opens its resources and builds its program."""

import logging
import os
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from urllib.parse import urlsplit

from attrs import evolve

from runtimes.files.installed_version import installed_version
from runtimes.host.compute import COMPUTE_FUNCTIONS
from runtimes.host.file_descriptors import limits_per_server
from runtimes.host.host import Program, Services
from runtimes.host.logs import setup_logging
from runtimes.net.listener import Listener
from runtimes.net.mdns import ServiceAnnouncement, can_announce, find_lan_addresses
from runtimes.net.peer_user import can_look_up_users
from runtimes.service_home.running_relay import with_running_settings
from runtimes.service_home.server_registry import HomeClaim
from servers import launch
from servers.api_program import read_api_config
from servers.relay_program import read_relay_config
from servers.supervision import inherited_address
from svc_proto.commands import Exit
from svc_proto.dashboard.config import DashboardConfig, parse_dashboard_config
from svc_proto.dashboard.service import LIMITS, Dashboard
from svc_proto.dashboard.static_files import command_sentences
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.machines.auth_rate_limiter import LOOPBACK
from svc_proto.relay_config import PUBLIC_ROUTE, LocalTrustPolicy, RelayConfig, asks_for_users
from svc_proto.service_clients.bind_addresses import WILDCARD_ADDRESSES
from svc_proto.service_clients.relay_client import RelayClient
from svc_proto.settings import ConfigError

__all__ = [
    "HEALTH_FUNCTIONS",
    "dashboard_program",
    "dashboard_programs",
    "dashboard_refusal",
    "host_health",
    "is_local_safe",
    "page_files",
    "read_dashboard_config",
    "with_local_servers",
    "without_unsafe_local_access",
]

RELAY_PORT = ("SVC_RELAY_PORT", "HERMES_RELAY_PORT")


def dashboard_programs(options: Mapping[str, object], *, chat: bool) -> list[Program]:
    """Build the dashboard in a process of its own. Raises `CannotStartError`."""
    relay = read_relay_config(os.environ, {})
    config = read_dashboard_config(os.environ, options, relay_port=relay.port)
    problem = dashboard_refusal(config, relay)
    if problem is not None:
        raise launch.CannotStartError(problem, code=2)
    config = without_unsafe_local_access(config, relay)
    config, trusted = _alone(config, relay, chat=chat)
    return [dashboard_program(config, trusted=trusted)]


def read_dashboard_config(
    env: Mapping[str, str], options: Mapping[str, object], *, relay_port: int | None = None
) -> DashboardConfig:
    """Return the dashboard's settings, including `.env`. Raises `CannotStartError` with exit code 2."""
    try:
        options = {**options, **inherited_address(env, "dashboard")}
        parsed = parse_dashboard_config(launch.read_environment(env), options, relay_port=relay_port)
        return evolve(parsed, version=installed_version())
    except ConfigError as error:
        raise launch.CannotStartError(str(error), code=2) from error


def without_unsafe_local_access(config: DashboardConfig, relay: RelayConfig) -> DashboardConfig:
    """Return the settings, without local access unless `is_local_safe`."""
    return config if is_local_safe(relay) else evolve(config, local_access=False)


def dashboard_refusal(config: DashboardConfig, relay: RelayConfig) -> str | None:
    """Return why the dashboard may not start, or None if it may.

    It may not start without a password unless `is_local_safe`.
    """
    if config.password or is_local_safe(relay):
        return None
    return "behind a proxy, and with the local secret, a dashboard needs a password: set SVC_DASHBOARD_PASSWORD"


def is_local_safe(relay: RelayConfig) -> bool:
    """Report whether programs of this host may be recognized by their address or user, without the local secret.

    They may not if the settings require the secret, or if clients of a proxy could count as local: with a trusted
    proxy, or with a public route unless the kernel names the users of callers, since a proxy has a user of its own.
    """
    if _identifies_users(relay):
        policy = evolve(relay, public_url=None).local_trust_policy(public_route=False)
    else:
        stored = Path(relay.home).expanduser() / PUBLIC_ROUTE
        policy = relay.local_trust_policy(public_route=stored.exists() and stored.stat().st_size > 0)
    return policy is not LocalTrustPolicy.SECRET and not relay.trusted_proxies


def dashboard_program(
    config: DashboardConfig,
    *,
    listener: Listener | None = None,
    trusted: tuple[str, ...] = (),
    servers: int = 1,
    announces: bool = True,
) -> Program:
    """Build the dashboard program with opened resources. Raises `CannotStartError`: code 1 for TLS files, else 2.

    `trusted` are the certificates of the servers that it calls over TLS. `announces`: print the address.
    """
    logger = setup_logging(int(config.log_level), as_json=config.log_json)
    home = Path(config.relay.home).expanduser().absolute()
    services = Services(
        state=home,
        logger=logger,
        client_tls=launch.trust_certificates(*trusted) if trusted else None,
        compute={**COMPUTE_FUNCTIONS, **HEALTH_FUNCTIONS},
    )
    listener = listener or launch.bind_server(config, "dashboard")
    plain = listener.tls is None and listener.address.host not in LOOPBACK
    path = Path(config.relay.config_path).expanduser().absolute()
    relay = evolve(config.relay, home=str(home), config_path=str(path))
    asks = _identifies_users(relay)
    bound = evolve(config, port=listener.address.port, relay=relay, asks_for_users=asks)
    claimed = _claim(home)
    limits = limits_per_server(servers, LIMITS)
    board = Dashboard(bound, page_files(), limits=limits, health=host_health(bound))
    core = Engine(board, entropy=os.urandom, log_level=bound.log_level)

    announcement = lan_announcement(bound, listener, logger)

    def ready() -> None:
        if plain:
            logger.warning("serving other hosts without TLS: the password can be read on the way")
        if claimed is not None:
            launch.publish_running_server(claimed, config, listener)
        if announces:
            announce_dashboard(bound)
        if announcement is not None:
            announcement.start()

    def exited(outcome: Exit) -> None:
        if announcement is not None:
            announcement.close()
        launch.print_exit_reason(outcome)

    return Program(
        core=core,
        listeners=[listener],
        asks_for_users=bound.asks_for_users,
        services=services,
        on_ready=ready,
        on_exit=exited,
        claim=claimed,
    )


def announce_dashboard(config: DashboardConfig) -> None:
    """Print on standard error the address of the dashboard."""
    scheme = "http" if config.ssl_cert is None else "https"
    how = "with a password" if config.password else "this host only"
    print(
        f"dashboard: {scheme}://{launch.format_authority(config.host, config.port)} ({how})",
        file=sys.stderr,
        flush=True,
    )


def lan_announcement(config: DashboardConfig, listener: Listener, logger: logging.Logger) -> ServiceAnnouncement | None:
    """Return the mDNS announcement of a dashboard that serves the local network.

    None without a password, on loopback, on an IPv6 address, without a local address, or without the package zeroconf.
    """
    host = listener.address.host
    if not config.password or host in LOOPBACK or not can_announce():
        return None
    addresses = find_lan_addresses() if host in WILDCARD_ADDRESSES else [host]
    if not addresses or (host not in WILDCARD_ADDRESSES and ":" in host):  # zeroconf announces IPv4 addresses here
        return None
    return ServiceAnnouncement(
        f"{config.relay.brand.name} dashboard on {socket.gethostname()}",
        listener.address.port,
        addresses,
        tls=listener.tls is not None,
        properties={"path": f"{config.root_path}/"},
        on_problem=lambda problem: logger.warning("not announced in the local network: %s", problem),
    )


def with_local_servers(
    config: DashboardConfig, relay: RelayConfig, *, relay_url: str, api: tuple[str, str] | None
) -> DashboardConfig:
    """Return the dashboard's settings for a relay and an API in the same process.

    `api` is the API's local URL and key, if it runs. `relay_url` is not used if the operator has configured another
    relay.
    """
    if _names_relay():
        relay_url = config.relay_url  # the operator has configured another relay
    url, key = api or (None, "")
    return evolve(config, relay=relay, relay_url=relay_url, api_url=url, api_key=key)


def page_files() -> dict[str, bytes]:
    """Return the files of the page by path, such as `app.js`, and the generated `command_sentences.js`."""
    found = {"command_sentences.js": command_sentences()}
    folders = [("", files("servers").joinpath("page"))]
    for prefix, folder in folders:
        for entry in folder.iterdir():
            if entry.is_dir():
                folders.append((f"{prefix}{entry.name}/", entry))
            else:
                found[prefix + entry.name] = entry.read_bytes()
    return found


def host_health(config: DashboardConfig) -> Callable[[Engine], Flow[list[dict[str, object]]]]:
    """Return a function that starts a flow, which runs the health checks of this host as `svc doctor` does.

    It requests the list of models from the model's server, but sends no prompt. It does not check a public address.
    """
    ports = [("relay", config.relay.port), ("dashboard", config.port)]
    if config.api_url is not None:
        ports.append(("api", urlsplit(config.api_url).port or 8642))
    relay = RelayClient("relay", config.relay_url, patience=config.patience, local=config.identifies_owner)

    def check(engine: Engine) -> Flow[list[dict[str, object]]]:
        # loaded at the first use: they need the modules of pairing
        from svc_proto.cli.health_checks import run_health_checks  # noqa: PLC0415, RUF100
        from svc_proto.cli.health_gathering import HealthRequest, gather_facts  # noqa: PLC0415, RUF100

        request = HealthRequest(
            config=config.relay, version=installed_version(), relay=relay, tries_model=False, ports=tuple(ports)
        )
        facts = yield from gather_facts(engine, request)
        return [each.members() for each in run_health_checks(facts)]

    return check


def _alone(config: DashboardConfig, relay: RelayConfig, *, chat: bool) -> tuple[DashboardConfig, tuple[str, ...]]:
    """Return the settings for a relay and an API in other processes, and the certificates to trust."""
    trusted: list[str] = []
    runs = with_running_settings(relay)
    if runs.inside is not None and not _names_relay():
        relay, relay_url = runs, runs.inside
    else:
        scheme, _, place = config.relay_url.partition("://")
        if relay.ssl_cert is not None:
            scheme = "https"
            trusted.append(relay.ssl_cert)
        relay, relay_url = evolve(relay, port=int(place.rpartition(":")[2])), f"{scheme}://{place}"
    config = evolve(config, relay=relay, relay_url=relay_url)
    api = read_api_config(os.environ, {})
    if chat and api.enabled:
        if runs.webapi_inside is None and api.ssl_cert is not None:
            trusted.append(api.ssl_cert)
        where = launch.format_authority(WILDCARD_ADDRESSES.get(api.host, api.host), api.port)
        api_url = runs.webapi_inside or f"{'https' if api.tls else 'http'}://{where}"
        config = evolve(config, api_url=api_url, api_key=api.key)
    return config, tuple(trusted)


def _identifies_users(relay: RelayConfig) -> bool:
    """Report whether the kernel names the users of callers on this host, and the settings want it."""
    return asks_for_users(relay.local_trust) and can_look_up_users()


def _names_relay() -> bool:
    """Report whether the environment or `.env` names the relay that the dashboard uses."""
    env = launch.read_environment(os.environ)
    return any(env.get(name, "").strip() for name in RELAY_PORT)


def _claim(home: Path) -> HomeClaim | None:
    """Claim the home for the dashboard, so that other programs find it; None if it cannot be claimed."""
    try:
        return launch.claim_home(home, "dashboard")
    except launch.CannotStartError:
        return None


def _report(home: str, ports: Sequence[tuple[str, int]]) -> dict[str, object]:
    from servers.host_report import collect_host_report  # noqa: PLC0415, RUF100 - with the readers of all settings

    return collect_host_report(home, ports)


HEALTH_FUNCTIONS: dict[str, Callable[..., object]] = {"host.report": _report}
