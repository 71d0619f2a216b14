"""Backups of a service home: an archive of files and the database, which may be in use, and its restore.

An archive is a gzipped tar. It holds regular files of the home under `home/`, the database, if any, as `svc.db`, and
last `backup.json` with the SHA-256 of each. Locks, logs, attachments and files that a restore replaced are not in it.
Before a restore places the files, it moves the present ones and the present database, if any, to a folder of the home.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
import sqlite3
import stat
import tarfile
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from io import BytesIO
from pathlib import Path
from typing import IO, Any, cast

from attrs import asdict, field, frozen

from runtimes.files.installed_version import installed_version
from runtimes.files.private_files import (
    create_synced_file,
    ensure_private_folder,
    make_private_folder,
    sync_folder,
    temporary_name,
)
from runtimes.service_home.log_file import LOG_FOLDER
from runtimes.service_home.server_registry import FOLDER, ROLES, HomeInUseError, lock_home
from svc_proto.api.gateway.attachment_files import SPOOL as ATTACHMENTS
from svc_proto.schema.json_object import JsonObject

__all__ = ["BackupError", "BackupSummary", "back_up", "restore"]

FORMAT = 1
MANIFEST_NAME = "backup.json"
DATABASE = "svc.db"
HOME = "home/"
KEPT = "before-restore-"  # a folder of a home with the files that a restore has replaced
STAGED = ".restore-"
SIDE_FILES = ("-wal", "-shm", "-journal")
LARGEST_ABOUT = 64 * 1024 * 1024  # bytes
CHUNK_SIZE = 1024 * 1024
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class BackupError(Exception):
    """Failure of a backup or restore; the text is the reason, in one line."""


@frozen
class BackupSummary:
    """Contents of an archive; after a restore, `kept` is the folder with the replaced files, or empty without any."""

    version: str
    made: float  # epoch seconds
    files: dict[str, str] = field(factory=dict)  # SHA-256 by name
    size: int = 0  # total bytes of the files
    links: tuple[str, ...] = ()  # skipped paths: links, sockets and the like
    kept: str = ""


def back_up(home: Path, target: Path, *, database: Path | None, replace: bool = False) -> BackupSummary:
    """Write the archive `target`, mode 0600. `database` is an SQLite file at any path, or None for no database.

    Raise `BackupError` if it fails, or if `target` exists and `replace` is not set.
    """
    if target.exists() and not replace:
        raise BackupError(f"{target} is there already")
    if not home.is_dir():
        raise BackupError(f"there is no service home {home}")
    with _explained(target), temporary_name(target) as temporary, temporary_name(target) as snapshot:
        with create_synced_file(temporary) as file, tarfile.open(fileobj=file, mode="w:gz") as archive:
            summary = _fill(archive, home, database, snapshot, passed={temporary, snapshot, target})
        os.replace(temporary, target)
        sync_folder(target.parent)
    return summary


def restore(archive: Path, home: Path, *, database_of: Callable[[Path], Path], replace: bool = False) -> BackupSummary:
    """Restore `home`, and the SQLite file that `database_of` returns for the restored home. Raises `BackupError`.

    A restore is refused while servers run on the home. Without `replace` it is also refused where the home has an
    entry other than locks, logs, attachments and folders of restores, or a database outside of it would be replaced.
    """
    with _explained(archive), ExitStack() as undo:
        ensure_private_folder(home)
        for role in ROLES:
            try:
                undo.callback(lock_home(home, role, version=installed_version()).release)
            except HomeInUseError as error:
                raise BackupError(f"the {role} of {home} runs (process {error.pid}): svc down stops it") from None
        here = [entry for entry in home.iterdir() if _lasts(entry)]
        if here and not replace:
            raise BackupError(f"{home} holds something already")
        staged = ensure_private_folder(home / f"{STAGED}{secrets.token_hex(8)}")
        undo.callback(shutil.rmtree, staged, ignore_errors=True)
        summary = _unpack(archive, staged)
        database = database_of(staged / HOME)
        outside = [path for path in _with_side_files(database) if not path.is_relative_to(home) and path.exists()]
        if outside and not replace:
            raise BackupError(f"{outside[0]} is there already")
        stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime()) + f"-{secrets.token_hex(2)}"
        kept = ensure_private_folder(home / f"{KEPT}{stamp}") if here or outside else None
        new = staged / HOME
        moves = [] if kept is None else [(path, kept / path.name) for path in [*here, *outside]]
        moves += [(path, home / path.name) for path in (new.iterdir() if new.is_dir() else [])]
        if (staged / DATABASE).exists():
            make_private_folder(database.parent)
            moves.append((staged / DATABASE, database))
        _move_all(moves)
        sync_folder(database.parent)
        sync_folder(home)
    return BackupSummary(**{**asdict(summary), "kept": "" if kept is None else str(kept)})


# --- writing ------------------------------------------------------------------------------------------------------


def _fill(
    archive: tarfile.TarFile, home: Path, database: Path | None, snapshot: Path, *, passed: set[Path]
) -> BackupSummary:
    digests, links, size = dict[str, str](), list[str](), 0
    if database is not None and database.exists():
        _copy_database(database, snapshot)
        digests[DATABASE] = _add(archive, DATABASE, snapshot)
        size += snapshot.stat().st_size
    passed |= set() if database is None else set(_with_side_files(database))
    for path in _files_of(home, passed):
        name = f"{HOME}{path.relative_to(home)}"
        try:
            digests[name] = _add(archive, name, path)
        except FileNotFoundError:
            continue  # deleted meanwhile
        except _NoFileError:
            links.append(str(path))
            continue
        size += archive.getmember(name).size
    summary = BackupSummary(installed_version(), time.time(), digests, size, tuple(links))
    about = {"format": FORMAT, **asdict(summary)}
    del about["kept"]
    data = json.dumps(about, indent=1).encode()
    archive.addfile(_member(MANIFEST_NAME, len(data), 0o600, summary.made), BytesIO(data))
    return summary


class _NoFileError(Exception):
    """The path is not a regular file (a link, a socket or a device), or does not exist any more."""


def _add(archive: tarfile.TarFile, name: str, path: Path) -> str:
    """Add a file as it is now to an archive; return the SHA-256 of its contents.

    Raise `_NoFileError` for anything but a regular file, and `BackupError` if the file becomes shorter meanwhile.
    """
    if path.is_symlink() or not path.is_file():
        raise _NoFileError
    fd = os.open(path, _OPEN)
    with open(fd, "rb") as file:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise _NoFileError
        reader = _Hashing(file, hashlib.sha256())
        try:
            archive.addfile(_member(name, status.st_size, status.st_mode & 0o700, status.st_mtime), reader)
        except OSError as error:
            if error.args == ("unexpected end of data",):
                raise BackupError(f"{path} became shorter while it was read: try again") from None
            raise
        return reader.digest()


def _member(name: str, size: int, mode: int, changed: float) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size, member.mode, member.mtime = size, mode, int(changed)
    return member


class _Hashing:
    """A file whose bytes are digested as they are read."""

    def __init__(self, file: IO[bytes], digest: hashlib._Hash) -> None:
        self._file = file
        self._digest = digest

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        self._digest.update(data)
        return data

    def digest(self) -> str:
        return self._digest.hexdigest()


def _copy_database(path: Path, to: Path) -> None:
    """Copy an SQLite database, as of one instant, into the new file `to`, even while other processes write."""
    to.touch(0o600, exist_ok=False)
    uri = f"{path.absolute().as_uri()}?mode=ro"
    with closing(sqlite3.connect(uri, uri=True)) as source, closing(sqlite3.connect(to)) as target:
        source.backup(target)
        target.execute("PRAGMA journal_mode=DELETE")  # one file, without a journal beside it


def _files_of(home: Path, passed: set[Path]) -> Iterator[Path]:
    for folder, folders, files in os.walk(home):
        here = Path(folder)
        if here == home:
            folders[:] = [name for name in folders if _lasts(here / name)]
        folders.sort()
        for name in sorted(files + [name for name in folders if (here / name).is_symlink()]):
            if here / name not in passed:
                yield here / name


def _lasts(entry: Path) -> bool:
    """Report whether an entry of a home is other than the folders of locks, logs, attachments and restores."""
    return entry.name not in (FOLDER, LOG_FOLDER, ATTACHMENTS) and not entry.name.startswith((KEPT, STAGED))


def _with_side_files(database: Path) -> list[Path]:
    return [database, *(database.with_name(database.name + end) for end in SIDE_FILES)]


# --- reading ------------------------------------------------------------------------------------------------------


def _unpack(archive: Path, staged: Path) -> BackupSummary:
    """Extract all files of an archive into a folder and return the archive's summary.

    Raise `BackupError` without a manifest or if the files differ from it, a name has no place, or the database is
    not sound.
    """
    digests, about = dict[str, str](), None
    with tarfile.open(archive, "r:gz") as members:
        for member in members:
            file = members.extractfile(member) if member.isreg() else None
            if file is None or about is not None or member.name in digests:
                raise BackupError(f"{archive} is no backup: {member.name!r} has no place in it")
            if member.name == MANIFEST_NAME:
                about = _summary(file.read(LARGEST_ABOUT), archive)
                continue
            digests[member.name] = _extract(file, _place(staged, member.name, archive), member.mode)
    if about is None:
        raise BackupError(f"{archive} is not whole: its end is missing")
    if digests != about.files:
        wrong = min(dict(digests.items() ^ about.files.items()))
        raise BackupError(f"{archive} is damaged: {wrong!r} is not what it was")
    if DATABASE in digests and not _is_sound(staged / DATABASE):
        raise BackupError(f"{archive} is damaged: its database is not sound")
    return about


def _is_sound(path: Path) -> bool:
    try:
        with closing(sqlite3.connect(path)) as database:
            return bool(database.execute("PRAGMA integrity_check").fetchone() == ("ok",))
    except sqlite3.Error:
        return False


def _move_all(moves: list[tuple[Path, Path]]) -> None:
    """Move each path to its target; if one move fails, undo the earlier ones."""
    with ExitStack() as undo:
        for path, to in moves:
            shutil.move(path, to)
            undo.callback(shutil.move, to, path)
        undo.pop_all()


def _place(staged: Path, name: str, archive: Path) -> Path:
    parts = name.split("/")
    ours = name == DATABASE or (parts[0] == "home" and len(parts) > 1 and _lasts(Path(parts[1])))
    if not ours or {"", ".", ".."} & set(parts):
        raise BackupError(f"{archive} is no backup: {name!r} has no place in it")
    return staged.joinpath(*parts)


def _extract(file: IO[bytes], to: Path, mode: int) -> str:
    ensure_private_folder(to.parent)
    digest = hashlib.sha256()
    with create_synced_file(to, mode=0o600 | mode & 0o100) as new:
        while piece := file.read(CHUNK_SIZE):
            digest.update(piece)
            new.write(piece)
    return digest.hexdigest()


def _summary(data: bytes, archive: Path) -> BackupSummary:
    try:
        about = JsonObject.load(data, ours=True)
        if about.pop("format") != FORMAT:
            raise BackupError(f"{archive} is of a newer version: restore it with that one")
        found = BackupSummary(**cast("dict[str, Any]", about))
        if about.object_or_none("files") is None:
            raise TypeError
    except (ValueError, TypeError, KeyError):
        raise BackupError(f"{archive} is no backup: it does not say what it holds") from None
    return found


@contextmanager
def _explained(archive: Path) -> Iterator[None]:
    try:
        yield
    except (EOFError, zlib.error, tarfile.TarError) as error:
        raise BackupError(f"{archive} is not whole, or no backup: {str(error).lower()}") from None
    except sqlite3.Error as error:
        raise BackupError(f"the database cannot be copied: {error}") from None
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        if error.filename is not None and Path(error.filename).name.startswith(f".{archive.name}."):
            # the temporary name, which the archive has until it is complete
            raise BackupError(f"{archive} cannot be written: {why}") from None
        raise BackupError(why if error.filename is None else f"{why} ({error.filename})") from None
