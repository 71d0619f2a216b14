"""`svc relay insecure-api-key`: show or set whether API keys are accepted over plain HTTP (wire core 10.2)."""

import click

from clients.commands.cli import SETTINGS, json_option, print_json, print_lines
from runtimes.cli.runtime_option import runtime_option

__all__ = ["main"]

EXAMPLES = """
\b
Examples:
  svc relay insecure-api-key  # show the setting
  svc relay insecure-api-key on  # until the relay restarts
  svc-relay insecure-api-key off --json
"""
WANTED = {"status": None, "on": True, "enable": True, "off": False, "disable": False}


@click.command("insecure-api-key", epilog=EXAMPLES, context_settings=SETTINGS)
@click.argument("what", type=click.Choice(list(WANTED)), default="status", metavar="[status|on|off]")
@click.option("--host", help="The relay's loopback address.  [as it runs; 127.0.0.1]")
@click.option("--port", type=click.IntRange(1, 65_535), help="The relay's port.  [as it runs; RELAY_PORT; 8767]")
@json_option
@runtime_option
def main(what: str, host: str | None, port: int | None, *, as_json: bool, runtime: str) -> None:
    """Show or set whether voice routes accept an API key over plain HTTP from other hosts.

    Such a key can be read on the network. The setting returns to its default when the relay restarts.
    """
    from clients.commands.host_settings import read_relay_config
    from clients.commands.service_runner import run_on_local_relay
    from svc_proto.cli.operator_output import security_lines
    from svc_proto.cli.operator_requests import security_setting

    named = host is not None or port is not None
    config = read_relay_config(named=named, host=host or "127.0.0.1", port=port)
    wanted = WANTED[what]
    state = run_on_local_relay(lambda engine, relay: security_setting(engine, relay, wanted), config, runtime)
    if as_json:
        print_json(state, ordered=True)
    else:
        print_lines(security_lines(state.get("allow_insecure_api_bearer")))
