"""`svc db`: the schema of the database of this host, and its upgrade."""

from __future__ import annotations

import os

import click

from clients.commands.cli import SETTINGS, Lazy, Single, json_option, print_json
from runtimes.service_home import find_home
from svc_proto.client.problem import Problem

__all__ = ["main", "upgrade"]

UPGRADE = """
\b
Examples:
  svc db upgrade --dry-run             by the new version, before it starts
  svc db upgrade

\b
Servers bring it up to date by themselves when they start. All of it is one transaction: what cannot be done changes
nothing. A dry run does all of it, and takes it back; servers that run wait meanwhile.
Exit codes: 0; 1 when it cannot be done; 2 for bad options.
"""


@click.group(
    "db",
    cls=Lazy,
    modules={"upgrade": ("clients.commands.db:upgrade", "Bring its schema up to date, or only try.")},
    epilog="\b\nExample:\n  svc db upgrade --dry-run",
    context_settings=SETTINGS,
)
def main() -> None:
    """The database of this host's servers."""


@click.command("upgrade", cls=Single, epilog=UPGRADE, context_settings=SETTINGS)
@click.option("--dry-run", is_flag=True, help="Only see whether it goes well.")
@json_option
def upgrade(*, dry_run: bool, as_json: bool) -> None:
    """Bring the schema of the database up to date."""
    from clients.commands.host import store_named_in
    from runtimes.schema import upgrade as upgraded
    from runtimes.store_service import StoreError

    home = find_home(os.environ)
    named, file = store_named_in(home, home)
    if named == "memory:":
        raise Problem("these servers keep nothing on a disk (RELAY_SESSIONS_FILE is empty)")
    if file is not None and not file.exists():
        raise Problem(f"there is no database {file}: servers make it when they first start")
    try:
        before, after = upgraded(named if file is None else file, keep=not dry_run)
    except StoreError as error:
        raise Problem(str(error)) from None
    if as_json:
        print_json({"from": before, "to": after, "changed": before != after and not dry_run})
    elif before == after:
        print(f"The schema has version {after}, the newest known.")
    else:
        print(f"The schema {'would go' if dry_run else 'went'} from version {before} to {after}.")
