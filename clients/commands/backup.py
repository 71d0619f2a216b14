"""`svc backup` and `svc restore`: write the home's durable files and an SQLite database into one file; restore them."""

import os
import time
from pathlib import Path

import click

from clients.commands.cli import SETTINGS, json_option, print_json, print_lines
from runtimes.service_home.home import service_home_path
from svc_proto.basics.sanitize import sanitize_line
from svc_proto.cli.errors import CliError

__all__ = ["backup", "restore"]

BACKUP = """
\b
Examples:
  svc backup  # svc-backup-2026-11-22.tar.gz in this folder
  svc backup /mnt/nas/svc.tar.gz --replace
  svc backup "/backups/svc-$(date +%F-%H%M).tar.gz" --json

The servers may run meanwhile: the database is copied as of one instant. Only you can read the file (mode 0600). It
contains the sessions of all devices, every chat, and the API's key.

The file does not contain logs, nor files outside the service home: certificates, a configuration file elsewhere, a
database that is not SQLite.

Exit codes: 0; 1 when the backup fails, and then no file is left; 2 for bad options.
"""
RESTORE = """
\b
Examples:
  svc restore svc-backup-2026-11-22.tar.gz
  svc down && svc restore svc-backup-2026-11-22.tar.gz --replace && svc up
  SVC_HOME=/tmp/look svc restore svc-backup-2026-11-22.tar.gz  # elsewhere

The whole file is read and compared with its digests before anything changes. With --replace, the previous content is
moved to a folder of the service home; its name is printed at the end.

Exit codes: 0; 1 when the restore fails, and then nothing has changed; 2 for bad options.
"""


@click.command("backup", epilog=BACKUP, context_settings=SETTINGS)
@click.argument("file", required=False, type=click.Path(dir_okay=False, path_type=Path))
@click.option("--replace", is_flag=True, help="Replace an existing file.")
@json_option
def backup(*, file: Path | None, replace: bool, as_json: bool) -> None:
    """Back up the service home to FILE: devices, chats, keys, memory, media."""
    from clients.commands.host_settings import store_named_in
    from runtimes.files.backup import BackupError, back_up
    from servers.host_report import record_backup

    home = service_home_path(os.environ)
    target = (file or Path(time.strftime("svc-backup-%Y-%m-%d.tar.gz"))).absolute()
    named, database = store_named_in(home, home)
    foreign = database is None and named != "memory:"
    try:
        done = back_up(home, target, database=database, replace=replace)
    except BackupError as error:
        raise CliError(str(error)) from None
    record_backup(home)
    left_out = [
        *done.links,
        *([f"the database {str(named).partition(':')[0]}: (use its own tools)"] if foreign else []),
    ]
    if as_json:
        print_json({"file": str(target), "files": len(done.files), "bytes": done.size, "left_out": left_out})
        return
    print(f"{target}: {len(done.files)} files, {done.size:,} bytes of {home}.")
    print_lines([f"Not in it: {sanitize_line(each)}" for each in left_out])


@click.command("restore", epilog=RESTORE, context_settings=SETTINGS)
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--replace", is_flag=True, help="Replace an existing service home; the old one is kept.")
@click.option("--outside", is_flag=True, help="Write the database outside of the home, where the backup's .env has it.")
@json_option
def restore(*, file: Path, replace: bool, outside: bool, as_json: bool) -> None:
    """Restore the service home from FILE."""
    from clients.commands.host_settings import store_named_in
    from runtimes.files.backup import BackupError
    from runtimes.files.backup import restore as restored

    home = service_home_path(os.environ)

    def database_of(files: Path) -> Path:
        found = (store_named_in(files, home)[1] or home / "svc.db").expanduser()
        if not outside and not found.resolve().is_relative_to(home.resolve()):
            raise CliError(
                f"the backup's settings have the database at {found}, not in the home; --outside allows that"
            )
        return found

    try:
        done = restored(file, home, database_of=database_of, replace=replace)
    except BackupError as error:
        hint = "; --replace keeps that beside it" if str(error).endswith("already") else ""
        raise CliError(f"{error}{hint}") from None
    _record_restore(store_named_in(home, home)[0], file)
    if as_json:
        made = {"version": done.version, "made": done.made}
        print_json({"home": str(home), "files": len(done.files), "bytes": done.size, "kept": done.kept or None, **made})
        return
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(done.made))
    print(f"{home}: {len(done.files)} files, {done.size:,} bytes, of {when}, version {sanitize_line(done.version)}.")
    if done.kept:
        print(f"What was there before: {done.kept}")


def _record_restore(store: str | Path, file: Path) -> None:
    """Add the restore to the audit log of the restored store; skip this if the store fails."""
    from contextlib import suppress

    from runtimes.failures import HostError
    from runtimes.store.store_factory import open_store
    from runtimes.store.store_service import StoreError
    from svc_proto.basics.audit_event import OPERATOR, AuditEvent
    from svc_proto.store_requests import AppendAuditEvent

    with suppress(StoreError, HostError):
        opened = open_store(store)
        opened.execute(AppendAuditEvent(AuditEvent.of(time.time(), "backup restored", OPERATOR, file=file.name)))
        opened.close()
