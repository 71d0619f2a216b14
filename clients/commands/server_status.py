"""`svc status`: show the servers on the service home of this host."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clients.commands.cli import SETTINGS, json_option, print_json, print_lines
from clients.commands.quick_probe import accepts, nodes_at, probe, probe_json
from runtimes.service_home.home import service_home_path
from runtimes.service_home.server_registry import ROLES, RunningServer, find_running_servers, is_held
from svc_proto.basics.duration_text import short_duration
from svc_proto.basics.sanitize import sanitize_line
from svc_proto.schema.json_object import JsonObject

if TYPE_CHECKING:
    from svc_proto.cli.cluster_nodes import ServiceNodes
    from svc_proto.cli.health_facts import HealthResult

__all__ = ["status"]

STATUS = """
\b
Examples:
  svc status
  svc status --json | jq .devices
  SVC_HOME=/srv/svc svc status  # of another service home

Exit codes: 0; 1 when no relay runs, or it does not answer; 2 for bad options.
"""
PORTS = {"relay": 8767, "api": 8642, "dashboard": 9119}  # of servers that do not run, for texts


@click.command("status", epilog=STATUS, context_settings=SETTINGS)
@json_option
def status(*, as_json: bool) -> int:
    """Show which servers run on this host, where they listen, which model answers, and which phones are online."""
    home = service_home_path(os.environ)
    found = {one.role: one for one in find_running_servers(home)}
    if "api" in found:
        found["api"] = _with_present_model(found["api"], home)
    relay, api = found.get("relay"), found.get("api")
    devices = _devices(relay, home)
    services = _services(found, home)
    answers = {
        "relay": devices is not None,
        "api": api is not None and probe_json(api.inside, "/health", home) is not None,
        "dashboard": True,
        "phone": True,
    }
    problems = _find_problems(found, answers, devices, home) if found else []
    if as_json:
        servers = {
            role: {"url": one.url, "pid": one.pid, "version": one.version, "since": one.since, "answers": answers[role]}
            for role, one in found.items()
        }
        nodes = {role: {"store": store, **service.members()} for role, (service, store) in services.items()}
        print_json(
            {
                "home": str(home),
                "servers": servers,
                "model": api and api.model,
                "devices": devices,
                "services": nodes,
                "problems": [each.members() for each in problems],
            }
        )
    elif not found:
        starting = [role for role in ROLES if is_held(home, role)]
        print(f"{' and '.join(starting)} starts or stops" if starting else f"Nothing runs on {home}: svc up")
    else:
        print_lines(_lines(found, answers, devices))
        print_lines(_public_route(relay, home))
        for role, (service, _) in services.items():
            print_lines(service.lines(role, time.time()))
        print_lines([f"{'Store':<11}DOES NOT ANSWER the {role}" for role, (_, store) in services.items() if not store])
        print_lines([line for each in problems for line in each.lines()])
    return 0 if answers["relay"] else 1


def _with_present_model(api: RunningServer, home: Path) -> RunningServer:
    """Return the API as registered, or with the model of its configuration file if the file changed since its start."""
    try:
        changed = bool(api.model_file) and os.stat(api.model_file).st_mtime > api.since
    except OSError:
        return api
    if not changed:
        return api
    from servers.host_report import model_settings

    known = model_settings({"SVC_CONFIG": api.model_file}, home)
    url = str(known.get("base_url") or "")
    return api._replace(
        model=str(known.get("name") or "default") if url else "built-in",
        model_url=url,
        model_source=str(known.get("source") or ""),
    )


def _devices(relay: RunningServer | None, home: Path) -> list[JsonObject] | None:
    """Return the paired devices, online ones first; None unless the relay answers with a list of sessions."""
    answer = None if relay is None else probe_json(relay.inside, "/sessions", home)
    if answer is None or "sessions" not in answer:
        return None
    return sorted(answer.objects("sessions"), key=lambda each: each.get("online") is not True)


def _public_route(relay: RunningServer | None, home: Path) -> list[str]:
    """Return a line if programs of this host must show the local secret because of an invite with a public route.

    Otherwise the list is empty.
    """
    answer = None if relay is None else probe_json(relay.inside, "/relay/security", home)
    if answer is None or answer.get("public_route") is not True:
        return []
    return [
        f"{'Local':<11}programs show the local secret, since an invite had a public route: svc relay public-route off"
    ]


def _services(found: dict[str, RunningServer], home: Path) -> dict[str, tuple[ServiceNodes, bool]]:
    """Return, by role, the nodes of each clustered service, and whether `/readyz` reports it ready."""
    services: dict[str, tuple[ServiceNodes, bool]] = {}
    for role in ("relay", "api"):
        if role in found and (service := nodes_at(found[role].inside, home)) is not None:
            services[role] = service, probe(found[role].inside, "/readyz", home)[0] == 200
    return services


def _find_problems(
    found: dict[str, RunningServer], answers: dict[str, bool], devices: list[JsonObject] | None, home: Path
) -> list[HealthResult]:
    """Return the problems that the health checks of `svc doctor` find in what this command has observed."""
    from shutil import disk_usage

    from runtimes.files.installed_version import installed_version
    from svc_proto.cli.health_checks import run_health_checks
    from svc_proto.cli.health_facts import HostFacts, ModelFacts, ServerFacts, parse_device

    servers = [
        ServerFacts(
            role=role,
            port=one.port if (one := found.get(role)) else port,
            host=one.host if one else "",
            runs=one is not None,
            answers=answers[role],
            version=one.version if one else "",
            wanted=role != "api" or _has_api_key(home),
        )
        for role, port in PORTS.items()
    ]
    api = found.get("api")
    url = "" if api is None else api.model_url
    problem = "accepts no connection" if url and not _accepts(url) else ""
    source = "" if api is None else api.model_source
    name = "" if api is None or not url else api.model
    facts = HostFacts(
        now=time.time(),
        version=installed_version(),
        home=str(home),
        servers=tuple(servers),
        model=ModelFacts(base_url=url, name=name, source=source, problem=problem),
        has_outside_route=None,
        disk_free=disk_usage(home).free,
        devices=None if devices is None else tuple(map(parse_device, devices)),
    )
    return [each for each in run_health_checks(facts) if each.is_problem]


def _has_api_key(home: Path) -> bool:
    """Report whether the environment or `.env` has an API key, or `.env` is unreadable or invalid.

    Without a key, a relay without an API is intended.
    """
    from runtimes.files.env_file import read_env_file
    from runtimes.service_home.home import ENV_FILE, EnvFileError

    if os.environ.get("API_SERVER_KEY", "").strip():
        return True
    try:
        return bool(read_env_file(home / ENV_FILE).get("API_SERVER_KEY", "").strip())
    except EnvFileError:
        return True


def _lines(found: dict[str, RunningServer], answers: dict[str, bool], devices: list[JsonObject] | None) -> list[str]:
    now, lines = time.time(), list[str]()
    for role in ROLES:
        one = found.get(role)
        title = "API" if role == "api" else role.capitalize()
        if one is None:
            if role != "phone":  # its absence is normal
                lines.append(f"{title:<11}does not run")
            continue
        state = f"up {short_duration(now - one.since)}" if answers[role] else "DOES NOT ANSWER"
        where = "simulated" if role == "phone" else one.url
        lines.append(f"{title:<11}{where}  {state}, pid {one.pid}, {one.version}")
    if "api" in found:
        lines.append(f"{'Model':<11}{sanitize_line(found['api'].model)}")
    if devices is not None:
        online = sum(each.get("online") is True for each in devices)
        lines.append(f"{'Devices':<11}{len(devices)} paired, {online} online")
        lines += [
            f"  {_presence(each, now):<9}{sanitize_line(each.text('token_prefix')):<10}"
            f"{sanitize_line(each.text('device_name'))}"
            for each in devices
        ]
    return lines


def _accepts(url: str) -> bool:
    """Report whether a connection to the server of a URL can be opened."""
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    return accepts(parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80))


def _presence(device: dict[str, Any], now: float) -> str:
    seen = JsonObject(device).number("last_seen")
    if device.get("online") is True:
        return "online"
    return "-" if seen is None else f"{short_duration(now - seen)} ago"
