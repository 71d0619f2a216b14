"""`svc mcp allow`: give or refuse the owner's consent to a remote agent at the terminal."""

import click

from clients.commands.cli import SETTINGS, print_lines
from runtimes.cli.runtime_option import runtime_option

__all__ = ["main"]

EXAMPLES = """
\b
Examples:
  svc mcp allow 7Q2MZK  # shows the request, then asks you
  svc mcp allow 7Q2MZK --read-only --days 1
  svc mcp allow 7Q2MZK --yes  # without a question
  svc mcp allow 7Q2MZK --refuse

The code is on the page that the agent has opened in your browser. Never type a code that another person has sent you.

Exit codes: 0; 1 when no agent waits with this code, or you refuse; 2 for bad options.
"""
DAY = 86_400  # s


@click.command("allow", epilog=EXAMPLES, context_settings=SETTINGS)
@click.argument("word")
@click.option("--read-only", is_flag=True, help="Allow reading, not acting (bridge:read).")
@click.option("--days", type=click.IntRange(1, 3_650), help="Lifetime of the access in days.  [30]")
@click.option("--refuse", is_flag=True, help="Refuse the access.")
@click.option("--yes", is_flag=True, help="Allow without a question.")
@runtime_option
def main(word: str, *, read_only: bool, days: int | None, refuse: bool, yes: bool, runtime: str) -> None:
    """Allow a remote agent that uses OAuth (docs/reference/mcp.md), by the code of its page."""
    from clients.commands.host_settings import read_relay_config
    from clients.commands.service_runner import run_on_local_relay
    from svc_proto.cli.operator_output import agent_lines
    from svc_proto.cli.operator_requests import answer_consent, find_consent
    from svc_proto.schema.oauth import SCOPE_READ

    config = read_relay_config()
    asked = run_on_local_relay(lambda engine, relay: find_consent(engine, relay, word), config, runtime)
    print_lines(agent_lines(asked))
    allow = not refuse and (yes or click.confirm("Allow it?"))
    scope, ttl = SCOPE_READ if read_only else None, None if days is None else days * DAY
    run_on_local_relay(
        lambda engine, relay: answer_consent(engine, relay, asked, allow=allow, scope=scope, ttl=ttl), config, runtime
    )
    print("Allowed: its page goes on by itself." if allow else "Refused: its page says so.")
    if not allow and not refuse:
        raise click.exceptions.Exit(1)
