"""`svc mcp allow`: the owner's answer to an agent elsewhere, where there is no dashboard."""

from __future__ import annotations

import click

from clients.commands.cli import SETTINGS, print_lines
from runtimes.option import runtime_option

__all__ = ["main"]

EXAMPLES = """
\b
Examples:
  svc mcp allow 7Q2MZK                  shows who asks, then asks you
  svc mcp allow 7Q2MZK --read-only --days 1
  svc mcp allow 7Q2MZK --yes            without a question
  svc mcp allow 7Q2MZK --refuse

\b
The word stands on the page that the agent has opened in your browser. Type none that somebody else has sent you.
Exit codes: 0; 1 when nobody waits with that word, or you say no; 2 for bad options.
"""
DAY = 86_400  # s


@click.command("allow", epilog=EXAMPLES, context_settings=SETTINGS)
@click.argument("word")
@click.option("--read-only", is_flag=True, help="It may look, and not act (bridge:read).")
@click.option("--days", type=click.IntRange(1, 3_650), help="For how long.  [30]")
@click.option("--refuse", is_flag=True, help="Say no.")
@click.option("--yes", is_flag=True, help="Ask nothing.")
@runtime_option
def main(word: str, *, read_only: bool, days: int | None, refuse: bool, yes: bool, runtime: str) -> None:
    """Let an agent elsewhere in that speaks OAuth (docs/reference/mcp.md), by the word that its page shows."""
    from clients.commands.host import read_relay_config, service_home, trust_for
    from clients.commands.perform import perform
    from svc_proto.client.operator import answer_agent, asked_by_agent, local_relay
    from svc_proto.client.report import agent_lines
    from svc_proto.schema.oauth import READ

    config = read_relay_config()
    relay, home, trust = local_relay(config), service_home(), trust_for(config)
    asked = perform(lambda engine: asked_by_agent(engine, relay, word), runtime, home=home, client_tls=trust)
    print_lines(agent_lines(asked))
    allow = not refuse and (yes or click.confirm("Allow it?"))
    scope, ttl = READ if read_only else None, None if days is None else days * DAY
    perform(
        lambda engine: answer_agent(engine, relay, asked, allow=allow, scope=scope, ttl=ttl),
        runtime,
        home=home,
        client_tls=trust,
    )
    print("Allowed: its page goes on by itself." if allow else "Refused: its page says so.")
    if not allow and not refuse:
        raise click.exceptions.Exit(1)
