"""`svc-relay bridge`: call a Device Control route of a phone."""

import sys

import click

from clients.commands.cli import SETTINGS, print_json
from clients.commands.desktop_options import relay_selection, run_on_relay, session_options
from runtimes.cli.runtime_option import runtime_option

__all__ = ["main"]

EXAMPLES = """
\b
Examples:
  svc-relay bridge GET /ping
  svc-relay bridge POST /tap_text text=Mail
  svc-relay bridge POST /tap x:=310 y:=870
  svc-relay bridge GET /screen | jq '.nodes | length'

key=text sends text; key:=json sends a number, a list or another JSON value. With several phones, add device=NAME.

Exit codes: 0; 1 when the phone or the relay refuses (its answer is on standard output); 2 for bad arguments.
"""


@click.command("bridge", epilog=EXAMPLES, context_settings=SETTINGS)
@click.argument("method", type=click.Choice(["GET", "POST"], case_sensitive=False))
@click.argument("route", metavar="/ROUTE")
@click.argument("arguments", nargs=-1, metavar="[KEY=VALUE]...")
@session_options
@runtime_option
def main(
    method: str, route: str, arguments: tuple[str, ...], remote: str | None, token: str | None, runtime: str
) -> int:
    """Send a command to a phone and print its answer as JSON. The phone's own safety gates apply."""
    from svc_proto.basics.sanitize import sanitize_line
    from svc_proto.cli.errors import USAGE_ERROR, CliError
    from svc_proto.cli.relay_requests import call_phone, parse_arguments

    who, given = relay_selection(remote, token), parse_arguments(arguments)
    if not route.startswith("/") or not route.strip("/"):
        raise CliError("the route begins with a slash, for example /ping", code=USAGE_ERROR)

    status, answer = run_on_relay(
        lambda engine, relay: call_phone(engine, relay, method.upper(), route, given), who, runtime
    )
    print_json(answer)
    if status < 300:
        return 0
    said = sanitize_line(str(answer.get("error") or "")) if isinstance(answer, dict) else ""
    print(f"error: {said} (status {status})" if said else f"error: status {status}", file=sys.stderr)
    return 1
