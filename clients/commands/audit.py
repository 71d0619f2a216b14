"""`svc audit`: show the audit log of this host's servers, from their store."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from clients.commands.cli import SETTINGS, SingleCommand, json_option, print_json, print_lines
from svc_proto.cli.errors import CliError

if TYPE_CHECKING:
    from svc_proto.basics.audit_event import AuditEvent

__all__ = ["main"]

EXAMPLES = """
\b
Examples:
  svc audit  # the last 50 events, newest first
  svc audit revoked  # events that contain this text
  svc audit 1c2d3e4f -n 1000  # all that concerns a device
  svc audit --json | jq

The log has pairings, sign-ins from new addresses, changes and revocations of sessions, approvals beyond one call,
changed settings and notes, rotated keys and restored backups, with principal, address and time. It holds no secret and
no private text. The newest 10,000 events of a year are kept in the store, and are part of a backup.

Exit codes: 0; 1 when the store cannot be read; 2 for bad options.
"""
LIMIT = 10_000  # events that are read: all that the store keeps


@click.command("audit", cls=SingleCommand, epilog=EXAMPLES, context_settings=SETTINGS)
@click.argument("text", default="")
@click.option(
    "-n", "--lines", type=click.IntRange(1, LIMIT), default=50, show_default=True, help="Number of events at most."
)
@json_option
def main(text: str, *, lines: int, as_json: bool) -> None:
    """Show who changed access, approvals and settings, and when; only events with TEXT, if given."""
    found = [event for event in _events() if text.casefold() in _line(event).casefold()][:lines]
    if as_json:
        print_json(
            [
                {"at": event.at, "event": event.event, "principal": event.principal, "address": event.address or None}
                | {"about": dict(event.about)}
                for event in found
            ]
        )
    else:
        print_lines([_line(event) for event in found] or ["There are no such events."])


def _events() -> tuple[AuditEvent, ...]:
    from clients.commands.host_settings import existing_store
    from runtimes.failures import HostError
    from runtimes.store.store_factory import open_store
    from runtimes.store.store_service import StoreError
    from svc_proto.store_requests import ListAuditEvents

    try:
        store = open_store(existing_store())
        try:
            found = store.execute(ListAuditEvents(LIMIT))
        finally:
            store.close()
    except (StoreError, HostError) as error:
        raise CliError(str(error)) from None
    assert isinstance(found, tuple)
    return found


def _line(event: AuditEvent) -> str:
    when = datetime.fromtimestamp(event.at, UTC).strftime("%Y-%m-%d %H:%M:%S")
    about = "  ".join(f"{name}={value}" for name, value in event.about.items())
    address = f" from {event.address}" if event.address else ""
    return f"{when}Z  {event.event:<16} by {event.principal}{address}  {about}".rstrip()
