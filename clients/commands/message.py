"""`svc message`: send a message to the owner's phone, and with `--wait` print the reply."""

from __future__ import annotations

import click

from clients.commands.cli import SETTINGS, json_option, print_json
from runtimes.cli.runtime_option import runtime_option

__all__ = ["main"]

EXAMPLES = """
\b
Examples:
  svc message "The backup is done"
  svc message --title Backup "Disk is full. Delete old ones?" --wait 120  # prints the reply
  make world; svc message "Build ended with $?"

The phone needs an app with messages from the agent switched on, and a session with the grant chat. Without such a
phone the message waits in the relay's memory; the queue has 100 places. The owner gets at most 60 messages an hour.

Exit codes: 0; 1 when the relay does not accept the message, or no reply came in time; 2 for bad options.
"""


@click.command("message", epilog=EXAMPLES, context_settings=SETTINGS)
@click.argument("text")
@click.option("--title", help="Title of the notification.")
@click.option("--wait", "seconds", type=click.IntRange(1, 86_400), help="Wait this many seconds for a reply.")
@json_option
@runtime_option
@click.pass_context
def main(
    context: click.Context, text: str, title: str | None, seconds: int | None, *, as_json: bool, runtime: str
) -> None:
    """Send TEXT to the owner's phone as a message of this host."""
    from clients.commands.host_settings import read_relay_config, service_home, trust_for
    from clients.commands.service_runner import run_flow
    from svc_proto.cli.operator_requests import local_relay
    from svc_proto.cli.owner_messages import message_line, send_message, wait_for_reply

    config = read_relay_config()
    relay, trust = local_relay(config), trust_for(config)
    sent = run_flow(
        lambda engine: send_message(engine, relay, text, title), runtime, home=service_home(), client_tls=trust
    )
    reply = None
    if seconds is not None:
        limit = float(seconds)
        reply = run_flow(
            lambda engine: wait_for_reply(engine, relay, limit), runtime, home=service_home(), client_tls=trust
        )
    if as_json:
        print_json({**sent, "reply": reply} if seconds is not None else sent)
    else:
        print(message_line(sent) if seconds is None else "No reply." if reply is None else reply.text("text"))
    if seconds is not None and reply is None:
        context.exit(1)
