"""`svc doctor`: check the servers of this host, and the access of unauthenticated clients from outside."""

from __future__ import annotations

import click

from clients.commands.cli import SETTINGS, json_option
from clients.commands.doctor import report
from runtimes.cli.runtime_option import runtime_option

__all__ = ["main"]

EXAMPLES = """
\b
Examples:
  svc doctor
  svc doctor --public-url https://home.example
  svc doctor --public-url https://home.example --json

The requests to --public-url come from this host. If this network cannot reach its own public address, run the command
on another host too.

Exit codes: 0 when every check passes; 1 when one fails.
"""


@click.command("doctor", epilog=EXAMPLES, context_settings=SETTINGS)
@click.option("--public-url", metavar="URL", help="http:// or https:// address of this host from outside.")
@json_option
@runtime_option
def main(public_url: str | None, *, as_json: bool, runtime: str) -> int:
    """Check the servers of this host, and with --public-url the access of clients without credentials."""
    from clients.commands.host_settings import read_relay_config, service_home
    from clients.commands.service_runner import run_flow
    from runtimes.service_home.server_registry import find_running_server
    from svc_proto.cli.doctor import Finding, check_reachable
    from svc_proto.cli.operator_requests import local_relay
    from svc_proto.cli.pairing_candidates import public_candidate
    from svc_proto.cli.public_url_check import PublicUrlCheck, check_public_url
    from svc_proto.engine.core import Engine
    from svc_proto.engine.flow import Flow

    config, home = read_relay_config(), service_home()
    route = None if public_url is None else public_candidate(public_url, config.port, config.root_path)
    runs, board = find_running_server(home, "relay"), find_running_server(home, "dashboard")

    def plan(engine: Engine) -> Flow[list[Finding]]:
        found = Finding("the relay of this host", "failure", "does not run", "start it with: svc up")
        if runs is not None:
            found = yield from check_reachable(engine, runs.inside.replace("http", "ws", 1), alone=True)
        if route is None:
            return [found]
        relay = local_relay(config) if found.verdict == "ok" else None
        path = "" if board is None else board.root_path
        outside = yield from check_public_url(engine, PublicUrlCheck(route=route, relay=relay, dashboard_path=path))
        return [found, *outside]

    findings = run_flow(plan, runtime, home=home)
    return report(findings, as_json=as_json)
