"""`svc backup` and `svc restore`: all that lasts of the service home, as one file."""

from __future__ import annotations

import os
import time
from pathlib import Path

import click

from clients.commands.cli import SETTINGS, json_option, print_json, print_lines
from runtimes.service_home import find_home
from svc_proto.basics.visible import plain
from svc_proto.client.problem import Problem

__all__ = ["backup", "restore"]

BACKUP = """
\b
Examples:
  svc backup                           svc-backup-2026-11-22.tar.gz in this folder
  svc backup /mnt/nas/svc.tar.gz --replace
  svc backup "/backups/svc-$(date +%F-%H%M).tar.gz" --json

\b
Servers may run meanwhile: the database is copied as it was at one instant. The file is for you alone (0600): it holds
the sessions of all devices, every chat, and the API's key. Logs are not in it, nor what stands outside the service
home: certificates, a configuration file that is elsewhere, a database that is no SQLite file.
Exit codes: 0; 1 when it cannot be made, and then there is no half of it; 2 for bad options.
"""
RESTORE = """
\b
Examples:
  svc restore svc-backup-2026-11-22.tar.gz
  svc down && svc restore FILE --replace && svc up
  SVC_HOME=/tmp/look svc restore FILE  look at it elsewhere

\b
The file is read to its end and compared with its own digests before anything changes. With --replace, what was there
before is put into a folder of the service home that is named at the end.
Exit codes: 0; 1 when it cannot be restored, and then nothing has changed; 2 for bad options.
"""


@click.command("backup", epilog=BACKUP, context_settings=SETTINGS)
@click.argument("file", required=False, type=click.Path(dir_okay=False, path_type=Path))
@click.option("--replace", is_flag=True, help="Put it in the place of a file of that name.")
@json_option
def backup(*, file: Path | None, replace: bool, as_json: bool) -> None:
    """Write all that lasts of the service home to FILE: devices, chats, keys, memory, media."""
    from clients.commands.host import store_named_in
    from runtimes.backup import BackupError, back_up

    home = find_home(os.environ)
    target = (file or Path(time.strftime("svc-backup-%Y-%m-%d.tar.gz"))).absolute()
    named, database = store_named_in(home, home)
    foreign = database is None and named != "memory:"
    try:
        done = back_up(home, target, database=database, replace=replace)
    except BackupError as error:
        raise Problem(str(error)) from None
    left_out = [
        *done.links,
        *([f"the database {str(named).partition(':')[0]}: (use its own tools)"] if foreign else []),
    ]
    if as_json:
        print_json({"file": str(target), "files": len(done.files), "bytes": done.size, "left_out": left_out})
        return
    print(f"{target}: {len(done.files)} files, {done.size:,} bytes of {home}.")
    print_lines([f"Not in it: {plain(each)}" for each in left_out])


@click.command("restore", epilog=RESTORE, context_settings=SETTINGS)
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--replace", is_flag=True, help="Also where there is something already; it is kept beside.")
@json_option
def restore(*, file: Path, replace: bool, as_json: bool) -> None:
    """Make the service home what it was when FILE was written."""
    from clients.commands.host import store_named_in
    from runtimes.backup import BackupError
    from runtimes.backup import restore as restored

    home = find_home(os.environ)

    def database_of(files: Path) -> Path:
        return store_named_in(files, home)[1] or home / "svc.db"

    try:
        done = restored(file, home, database_of=database_of, replace=replace)
    except BackupError as error:
        hint = "; --replace keeps that beside it" if str(error).endswith("already") else ""
        raise Problem(f"{error}{hint}") from None
    if as_json:
        made = {"version": done.version, "made": done.made}
        print_json({"home": str(home), "files": len(done.files), "bytes": done.size, "kept": done.kept or None, **made})
        return
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(done.made))
    print(f"{home}: {len(done.files)} files, {done.size:,} bytes, of {when}, version {plain(done.version)}.")
    if done.kept:
        print(f"What was there before: {done.kept}")
