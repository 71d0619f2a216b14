"""`svc doctor`: run the health checks on this host; with a public address, check the access at it, too."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from clients.commands.cli import SETTINGS, json_option, print_json, print_lines
from runtimes.cli.runtime_option import runtime_option

if TYPE_CHECKING:
    from svc_proto.cli.health_facts import HealthResult, HostFacts

__all__ = ["main"]

EXAMPLES = """
\b
Examples:
  svc doctor
  svc doctor --all  # what is well, too
  svc doctor --public-url https://home.example
  svc doctor --json | jq -r '.checks[] | select(.ok | not) | .code'

It looks at servers, ports, addresses, certificates, the model, disk, database, clock, keys, phones, backups and
versions. One short request goes to the model; --no-model leaves it out.

The requests to --public-url come from this host. If this network cannot reach its own public address, run the command
on another host too.

Exit codes: 0 when every check passes; 1 when one fails.
"""


@click.command("doctor", epilog=EXAMPLES, context_settings=SETTINGS)
@click.option("--public-url", metavar="URL", help="Address of this host from outside.  [SVC_PUBLIC_URL]")
@click.option("--all", "shows_all", is_flag=True, help="Print the checks that pass, too.")
@click.option("--model/--no-model", default=True, show_default=True, help="Send one short request to the model.")
@json_option
@runtime_option
def main(public_url: str | None, *, shows_all: bool, model: bool, as_json: bool, runtime: str) -> int:
    """Check this host and its servers, and with a public address the access of clients without credentials."""
    from clients.commands.host_settings import read_relay_config, service_home
    from clients.commands.service_runner import run_flow
    from runtimes.files.installed_version import installed_version
    from runtimes.host.compute import COMPUTE_FUNCTIONS
    from servers.host_report import collect_host_report
    from svc_proto.cli.health_checks import run_health_checks
    from svc_proto.cli.health_facts import ERROR
    from svc_proto.cli.health_gathering import HealthRequest, gather_facts
    from svc_proto.cli.pairing_candidates import public_candidate

    config, home = read_relay_config(lenient=True), service_home()
    outside = public_url or config.public_url
    request = HealthRequest(
        config=config,
        version=installed_version(),
        public=None if outside is None else public_candidate(outside, config.port, config.root_path),
        tries_model=model,
        ports=configured_ports(),
    )
    compute = {**COMPUTE_FUNCTIONS, "host.report": collect_host_report}
    facts = run_flow(lambda engine: gather_facts(engine, request), runtime, home=home, compute=compute)
    results = run_health_checks(facts)
    failed = any(result.is_problem and result.check.severity is ERROR for result in results)
    if as_json:
        checks = [result.members() for result in results]
        print_json({"ok": not failed, "home": facts.home, "checks": checks, "left_out": list(facts.left_out)})
    else:
        print_lines(_lines(results, facts, shows_all=shows_all))
    return 1 if failed else 0


def configured_ports() -> tuple[tuple[str, int], ...]:
    """Return pairs of role and port of relay, API and dashboard, from the environment and a usable `.env`.

    A role whose port is missing, "0" or not decimal has its default port.
    """
    import os

    from runtimes.service_home.home import EnvFileError, with_env_file

    try:
        env = with_env_file(os.environ)
    except EnvFileError:
        env = dict(os.environ)
    names = {"relay": ("RELAY_PORT", 8767), "api": ("API_SERVER_PORT", 8642), "dashboard": ("SVC_DASHBOARD_PORT", 9119)}
    found = {role: env.get(name, "").strip() for role, (name, _) in names.items()}
    return tuple(
        (role, int(found[role]) if found[role].isdecimal() and found[role] != "0" else usual)
        for role, (_, usual) in names.items()
    )


def _lines(results: list[HealthResult], facts: HostFacts, *, shows_all: bool) -> list[str]:
    lines = list[str]()
    for result in results:
        if result.text is not None:
            lines += result.lines()
        elif shows_all:
            lines.append(f"✓ {result.check.title}: {result.check.looked_at}   [{result.check.code}]")
    good = sum(result.text is None for result in results)
    tested = list[str]()
    for route in facts.routes:
        if not route.problem:
            tested.append(f"✓ Route {route.role}: {route.url} answers")
            tested.append(f"    from another machine: {route.remote_test}")
    return [*lines, *tested, f"{good} of {len(results)} checks found nothing, at {facts.home}."]
