"""`svc relay public-route`: show which local programs the relay trusts, or end what a public route has changed."""

import click

from clients.commands.cli import SETTINGS, json_option, print_json, print_lines
from runtimes.cli.runtime_option import runtime_option

__all__ = ["main"]

EXAMPLES = """
\b
Examples:
  svc relay public-route  # what programs of this host must show
  svc relay public-route off  # no proxy leads to the relay any more

The first invite with a public route (svc pair --public-url) makes the relay require its local secret from programs of
this host, also after restarts: a proxy could make remote clients look local. `off` restores the setting before that.

Exit codes: 0; 1 when the relay does not answer; 2 for bad options.
"""


@click.command("public-route", epilog=EXAMPLES, context_settings=SETTINGS)
@click.argument("what", type=click.Choice(["status", "off"]), default="status", metavar="[status|off]")
@json_option
@runtime_option
def main(what: str, *, as_json: bool, runtime: str) -> None:
    """Show or end the requirement that a public route has switched on."""
    from clients.commands.host_settings import read_relay_config
    from clients.commands.service_runner import run_on_local_relay
    from svc_proto.cli.operator_output import public_route_lines
    from svc_proto.cli.operator_requests import public_route_setting

    state = run_on_local_relay(
        lambda engine, relay: public_route_setting(engine, relay, remove=what == "off"), read_relay_config(), runtime
    )
    if as_json:
        print_json({name: state.get(name) for name in ("local_trust", "public_route")})
    else:
        print_lines(public_route_lines(state))
