"""`svc-relay doctor`: check the stored sessions of this desktop and their relays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from clients.commands.cli import SETTINGS, json_option, print_json, print_lines
from clients.commands.desktop_options import relay_option, run_on_desktop
from runtimes.cli.runtime_option import runtime_option

if TYPE_CHECKING:
    from svc_proto.cli.health_facts import Finding

__all__ = ["main", "report"]

EXAMPLES = """
\b
Examples:
  svc-relay doctor
  svc-relay doctor --remote wss://home.example --json

Exit codes: 0; 1 when there is a problem.
"""


@click.command("doctor", epilog=EXAMPLES, context_settings=SETTINGS)
@relay_option
@json_option
@runtime_option
def main(remote: str | None, *, as_json: bool, runtime: str) -> int:
    """Check the stored sessions, their relays and routes, and suggest remedies for problems."""
    from svc_proto.cli.doctor import run_checks
    from svc_proto.cli.input_parsing import parse_relay_url

    only = parse_relay_url(remote) if remote else None
    findings = run_on_desktop(lambda engine: run_checks(engine, only), runtime)
    return report(findings, as_json=as_json)


def report(findings: Sequence[Finding], *, as_json: bool) -> int:
    """Print the findings as lines or as JSON; return the exit code, 1 if a finding is a failure."""
    from svc_proto.cli.doctor import finding_lines, findings_json

    found = findings_json(findings)
    if as_json:
        print_json(found)
    else:
        print_lines(finding_lines(findings))
    return 0 if found["ok"] else 1
