"""`svc-relay notifications`: what the paired phones have shown lately."""

from __future__ import annotations

import time

import click

from clients.commands.cli import SETTINGS, Single, json_option, print_json, print_table
from clients.commands.desktop import on_desktop, who_options, whom
from runtimes.option import runtime_option

__all__ = ["main"]

EXAMPLES = """
\b
Examples:
  svc-relay notifications
  svc-relay notifications --limit 5 --json
"""


@click.command("notifications", cls=Single, epilog=EXAMPLES, context_settings=SETTINGS)
@click.option("--limit", type=click.IntRange(1, 100), default=20, show_default=True, help="How many, newest first.")
@who_options
@json_option
@runtime_option
def main(limit: int, remote: str | None, token: str | None, *, as_json: bool, runtime: str) -> None:
    """Show the latest notifications of the paired phones. The relay keeps 100, until it restarts."""
    from svc_proto.client.desk import find_session, target_for
    from svc_proto.client.remote import notification_rows, notifications
    from svc_proto.engine.core import Engine
    from svc_proto.engine.flow import Flow
    from svc_proto.schema.members import Members

    who = whom(remote, token)

    def plan(engine: Engine) -> Flow[list[Members]]:
        session = yield from find_session(engine, who)
        relay = yield from target_for(engine, session)
        return (yield from notifications(engine, relay, limit))

    found = on_desktop(plan, runtime)
    if as_json:
        print_json(found)
    elif found:
        print_table(("WHEN", "APP", "TITLE", "TEXT"), notification_rows(found, time.time()))
    else:
        print("No notifications: phones send them while they are connected and were allowed to.")


if __name__ == "__main__":
    main(prog_name="svc-relay notifications")
