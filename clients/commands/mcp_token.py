"""`svc mcp token`: create a token for a client that sends a header and does not support OAuth."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from clients.commands.cli import SETTINGS, SingleCommand, json_option, print_json
from runtimes.cli.runtime_option import runtime_option
from svc_proto.cli.errors import CliError

if TYPE_CHECKING:
    from svc_proto.engine.core import Engine
    from svc_proto.engine.flow import Flow
    from svc_proto.service_clients.relay_client import RelayClient

__all__ = ["main"]

EXAMPLES = """
\b
Examples:
  svc mcp token "Open WebUI"
  svc mcp token scripts --days 7
  svc mcp token watcher --read-only  # reads the phone and never acts
  svc mcp token scripts --json  # where there is no terminal

Send the token in the header `Authorization: Bearer TOKEN` of requests to /mcp on the relay. It controls the phone as
any agent does; with --read-only it has only the tools that read.

The session of the token is listed as "MCP: NAME" (svc status). End it in the dashboard or with `svc pair --revoke`. A
client with OAuth needs no token: give it the address only.

Exit codes: 0; 1 when the relay creates no token; 2 for bad options.
"""
DAY = 86_400  # s


@click.command("token", cls=SingleCommand, epilog=EXAMPLES, context_settings=SETTINGS)
@click.argument("name", default="an agent")
@click.option(
    "--days", type=click.IntRange(1, 3_650), default=30, show_default=True, help="Lifetime of the token in days."
)
@click.option("--read-only", is_flag=True, help="Allow reading, not acting (bridge:read).")
@json_option
@runtime_option
def main(name: str, *, days: int, read_only: bool, as_json: bool, runtime: str) -> None:
    """Create a token for an MCP client that sends a header instead of using OAuth."""
    from clients.commands.host_settings import read_relay_config
    from clients.commands.service_runner import run_on_local_relay
    from svc_proto.service_clients.local_pairing import pair_locally, refusal_of
    from svc_proto.service_clients.service_client import ServiceCallError

    if not as_json and not sys.stdout.isatty():
        raise CliError("a token is shown at a terminal alone; --json writes it elsewhere", code=2)

    def plan(engine: Engine, relay: RelayClient) -> Flow[tuple[str, str]]:
        try:
            found = pair_locally(engine, relay, f"MCP: {name}", ttl=days * DAY, looks=read_only, audience="mcp")
            return relay.url, (yield from found)
        except ServiceCallError as error:
            raise CliError(f"{refusal_of(error)} ({relay.url}); is it running? svc up, svc doctor") from None

    url, token = run_on_local_relay(plan, read_relay_config(), runtime)
    if as_json:
        told = {"url": f"{url}/mcp", "token": token, "name": f"MCP: {name}", "days": days, "read_only": read_only}
        print_json({"ok": True, **told})
    else:
        print(token)


if __name__ == "__main__":
    main(prog_name="svc mcp token")
