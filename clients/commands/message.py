"""`svc message`: send a message to the owner's phone, and with `--wait` print the replies."""

import click

from clients.commands.cli import SETTINGS, json_option, print_json
from runtimes.cli.runtime_option import runtime_option

__all__ = ["main"]

EXAMPLES = """
\b
Examples:
  svc message "The backup is done"
  svc message --title Backup "Disk is full. Delete old ones?" --wait 120  # prints the replies
  make world; svc message "Build ended with $?"

The phone needs an app with messages from the agent switched on, and a session with the grant chat. Without such a
phone the message waits in the relay's memory; the queue has 100 places. The owner gets at most 60 messages an hour.

Exit codes: 0; 1 when the relay does not accept the message, or no reply came in time; 2 for bad options.
"""


@click.command("message", epilog=EXAMPLES, context_settings=SETTINGS)
@click.argument("text")
@click.option("--title", help="Title of the notification.")
@click.option("--wait", "seconds", type=click.IntRange(1, 86_400), help="Wait this many seconds for replies to it.")
@json_option
@runtime_option
@click.pass_context
def main(
    context: click.Context, text: str, title: str | None, seconds: int | None, *, as_json: bool, runtime: str
) -> None:
    """Send TEXT to the owner's phone as a message of this host."""
    from clients.commands.host_settings import read_relay_config
    from clients.commands.service_runner import run_on_local_relay
    from svc_proto.cli.operator_requests import message_line, send_message, wait_for_replies
    from svc_proto.schema.json_object import JsonObject

    config = read_relay_config()
    sent = run_on_local_relay(lambda engine, relay: send_message(engine, relay, text, title), config, runtime)
    replies: list[JsonObject] = []
    if seconds is not None:
        limit, message_id = float(seconds), sent.text("message_id")
        replies = run_on_local_relay(
            lambda engine, relay: wait_for_replies(engine, relay, message_id, limit), config, runtime
        )
    if as_json:
        answers = {} if seconds is None else {"reply": replies[0] if replies else None, "replies": replies}
        print_json({**sent, **answers})
    else:
        lines = [message_line(sent)] if seconds is None else [reply.text("text") for reply in replies] or ["No reply."]
        print("\n".join(lines))
    if seconds is not None and not replies:
        context.exit(1)
