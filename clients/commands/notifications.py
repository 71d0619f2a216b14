"""`svc-relay notifications`: list the latest notifications of the paired phones."""

import time

import click

from clients.commands.cli import SETTINGS, json_option, print_json, print_table
from clients.commands.desktop_options import relay_selection, run_on_relay, session_options
from runtimes.cli.runtime_option import runtime_option

__all__ = ["main"]

EXAMPLES = """
\b
Examples:
  svc-relay notifications
  svc-relay notifications --limit 5 --json
"""


@click.command("notifications", epilog=EXAMPLES, context_settings=SETTINGS)
@click.option(
    "--limit", type=click.IntRange(1, 100), default=20, show_default=True, help="Maximum number, newest first."
)
@session_options
@json_option
@runtime_option
def main(limit: int, remote: str | None, token: str | None, *, as_json: bool, runtime: str) -> None:
    """Show the latest notifications of the paired phones. The relay stores 100 until it restarts."""
    from svc_proto.cli.relay_requests import list_notifications, notification_rows

    found = run_on_relay(
        lambda engine, relay: list_notifications(engine, relay, limit), relay_selection(remote, token), runtime
    )
    if as_json:
        print_json(found)
    elif found:
        print_table(("WHEN", "APP", "TITLE", "TEXT"), notification_rows(found, time.time()))
    else:
        print("No notifications: phones send them while they are connected and were allowed to.")
