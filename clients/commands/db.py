"""`svc db`: upgrade the schema of this host's database, or copy the database into another."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clients.commands.cli import SETTINGS, LazyGroup, json_option, print_json
from svc_proto.cli.errors import USAGE_ERROR, CliError

if TYPE_CHECKING:
    from rich.progress import TaskID

__all__ = ["copy", "main", "upgrade"]

UPGRADE = """
\b
Examples:
  svc db upgrade --dry-run  # with the new version, before it starts
  svc db upgrade

Servers upgrade the schema themselves when they start. The upgrade is one transaction: if it fails, nothing changes. A
dry run makes all changes and rolls them back; running servers wait meanwhile.

Exit codes: 0; 1 when the upgrade fails; 2 for bad options.
"""

COPY = """
\b
Examples:
  svc db copy ~/.svc/svc.db postgresql://svc@db.lan/svc
  svc db copy postgresql://svc@db.lan/svc backup.db

FROM and TO are SQLite files or URLs as in SVC_DATABASE_URL; PGPASSFILE may supply a password. TO is created, or must be
empty; it receives everything or nothing. FROM does not change.

What servers write to FROM during the copy is not in TO. So stop them first (svc down), then set SVC_DATABASE_URL to TO,
and start them.

Exit codes: 0; 1 when the copy fails; 2 for bad options.
"""


@click.group(
    "db",
    cls=LazyGroup,
    modules={
        "copy": ("clients.commands.db:copy", "Copy the database into another one."),
        "upgrade": ("clients.commands.db:upgrade", "Upgrade the schema of the database."),
    },
    epilog="\b\nExamples:\n  svc db upgrade --dry-run\n  svc db copy ~/.svc/svc.db postgresql://svc@db.lan/svc",
    context_settings=SETTINGS,
)
def main() -> None:
    """Manage the database of this host's servers."""


@click.command("upgrade", epilog=UPGRADE, context_settings=SETTINGS)
@click.option("--dry-run", is_flag=True, help="Roll all changes back at the end.")
@json_option
def upgrade(*, dry_run: bool, as_json: bool) -> None:
    """Upgrade the schema of the database."""
    from clients.commands.host_settings import existing_store
    from runtimes.store.sql_store import upgrade as upgraded
    from runtimes.store.store_service import StoreError

    try:
        before, after = upgraded(existing_store(), keep=not dry_run)
    except StoreError as error:
        raise CliError(str(error)) from None
    if as_json:
        print_json({"from": before, "to": after, "changed": before != after and not dry_run})
    elif before == after:
        print(f"The schema has version {after}, the newest known.")
    else:
        print(f"The schema {'would go' if dry_run else 'went'} from version {before} to {after}.")


@click.command("copy", epilog=COPY, context_settings=SETTINGS)
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@json_option
def copy(*, source: str, target: str, as_json: bool) -> None:
    """Copy all sessions, chats and messages of one database into another."""
    from rich.console import Console
    from rich.progress import Progress

    from runtimes.store.store_copy import copy_store
    from runtimes.store.store_service import StoreError

    found = _named(source)
    if isinstance(found, Path) and not found.exists():
        raise CliError(f"there is no database {found}")
    with Progress(console=Console(stderr=True), disable=not sys.stderr.isatty(), transient=True) as progress:
        bars: dict[str, TaskID] = {}

        def report(table: str, done: int, count: int) -> None:
            if table not in bars:
                bars[table] = progress.add_task(table, total=count)
            progress.update(bars[table], completed=done)

        try:
            counts = copy_store(found, _named(target), report)
        except StoreError as error:
            raise CliError(str(error)) from None
    if as_json:
        print_json({"copied": dict(counts)})
    else:
        print(f"Copied {', '.join(f'{count:,} of {table}' for table, count in counts.items())}.")


def _named(where: str) -> str | Path:
    if where.strip() in ("", "memory:"):
        raise CliError("a database has to be a file or a URL", code=USAGE_ERROR)
    return where if "://" in where else Path(where).expanduser().absolute()
