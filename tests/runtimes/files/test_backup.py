import gzip
import hashlib
import io
import json
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import tarfile
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtimes.files.backup import BackupError, back_up, restore
from runtimes.service_home.server_registry import lock_home
from runtimes.store.store_factory import open_store
from svc_proto.store_requests import LoadSessions, SaveSession
from tests.servers.program_process import ROOT

RECORD = {"device_name": "Pixel 8"}
RESTORED = ".env dashboard-sessions.json svc-relay-qr-secret memories/a/b.md skill.sh svc.db"


def fill(home: Path, database: Path) -> None:
    for name, text in {
        ".env": "API_SERVER_KEY=k",
        "svc-relay-qr-secret": "s" * 32,
        "memories/a/b.md": "likes tea",
        "media/ü \n.png": "\x00\xff",
        "run/relay.json": "{}",
        "log/relay.log": "said",
        "dashboard-sessions.json": "{}",
        "attachments/a.image": "an image that waits for its prompt",
        "before-restore-2026/old": "old",
    }.items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.write_text(text)
        path.chmod(0o600)
    (home / "skill.sh").write_text("#!/bin/sh")
    (home / "skill.sh").chmod(0o755)
    (home / "config.yaml").symlink_to("/etc/hostname")
    os.mkfifo(home / "pipe")
    store = open_store(database)
    store.execute(SaveSession("h", RECORD))
    store.close()


def tree(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Return mode and content of each file of a folder by name, except those in `run`, `log` and `attachments`."""
    return {
        str(path.relative_to(folder)): (path.stat().st_mode & 0o777, path.read_bytes())
        for path in folder.rglob("*")
        if path.is_file() and path.relative_to(folder).parts[0] not in ("run", "log", "attachments")
    }


def texts(folder: Path) -> dict[str, bytes]:
    return {name: text for name, (_, text) in tree(folder).items()}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def archive(tmp_path: Path, home: Path) -> Path:
    fill(home, home / "svc.db")
    back_up(home, tmp_path / "b.tar.gz", database=home / "svc.db")
    return tmp_path / "b.tar.gz"


def again(archive: Path, home: Path, *, replace: bool = False) -> str:
    return restore(archive, home, database_of=lambda _: home / "svc.db", replace=replace).kept


def sessions(database: Path) -> object:
    with closing(open_store(database)) as store:
        return store.execute(LoadSessions())


def test_restore_onto_an_empty_host(tmp_path: Path, home: Path, archive: Path) -> None:
    assert archive.stat().st_mode & 0o777 == 0o600
    new = tmp_path / "new"
    again(archive, new)
    assert (new / "skill.sh").stat().st_mode & 0o777 == 0o700
    assert (new / "memories/a").stat().st_mode & 0o777 == 0o700
    names = {*RESTORED.split(), "media/ü \n.png"}
    assert tree(new).keys() == names
    assert {**texts(new), "svc.db": b""} == {name: b"" if name == "svc.db" else texts(home)[name] for name in names}
    assert sessions(new / "svc.db") == ({**RECORD, "token_hash": "h"},)


def test_backup_of_an_external_database_in_use(tmp_path: Path, home: Path) -> None:
    other = tmp_path / "data" / "other.db"
    fill(home, other)
    target = tmp_path / "b.tar.gz"
    with closing(sqlite3.connect(other, isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("UPDATE paired_sessions SET record='half'")
        done = back_up(home, target, database=other)
        writer.execute("ROLLBACK")
    assert done.links == (str(home / "config.yaml"), str(home / "pipe"))
    new, place = tmp_path / "new", tmp_path / "there" / "x.db"
    seen = list[bytes]()

    def database_of(files: Path) -> Path:
        seen.append((files / ".env").read_bytes())
        return place

    restore(target, new, database_of=database_of)
    assert seen == [b"API_SERVER_KEY=k"]
    assert sessions(place) == ({**RECORD, "token_hash": "h"},)
    with pytest.raises(BackupError, match=r"x\.db is there already"):
        restore(target, tmp_path / "third", database_of=database_of)
    assert not any((tmp_path / "third").glob("*.db"))
    kept = Path(restore(target, tmp_path / "third", database_of=database_of, replace=True).kept)
    assert sessions(kept / "x.db") == ({**RECORD, "token_hash": "h"},)


def test_side_files_of_the_database_are_not_archived(tmp_path: Path, home: Path) -> None:
    fill(home, home / "svc.db")
    with closing(sqlite3.connect(home / "svc.db", isolation_level=None)) as writer:
        writer.execute("UPDATE paired_sessions SET record=record")
        (home / "svc.db-journal").touch()
        assert {path.name for path in home.glob("svc.db?*")} == {"svc.db-wal", "svc.db-shm", "svc.db-journal"}
        summary = back_up(home, tmp_path / "b.tar.gz", database=home / "svc.db")
    assert [name for name in summary.files if "svc.db" in name] == ["svc.db"]


@pytest.mark.parametrize("end", ["", "-wal", "-shm", "-journal"])
def test_no_file_of_an_earlier_external_database_stays(tmp_path: Path, archive: Path, end: str) -> None:
    """SQLite would replay the earlier log onto the restored database."""
    database = tmp_path / "there" / "x.db"
    database.parent.mkdir()
    earlier = database.with_name(f"x.db{end}")
    earlier.write_text("earlier")

    def restore_to(home: Path, *, replace: bool) -> Path:
        return Path(restore(archive, home, database_of=lambda _: database, replace=replace).kept)

    with pytest.raises(BackupError, match=f"{earlier} is there already"):
        restore_to(tmp_path / "new", replace=False)
    assert texts(database.parent) == {earlier.name: b"earlier"}
    kept = restore_to(tmp_path / "new", replace=True)
    assert texts(kept) == {earlier.name: b"earlier"}
    assert texts(database.parent).keys() == {"x.db"}
    assert sessions(database) == ({**RECORD, "token_hash": "h"},)


def test_a_file_that_becomes_a_link_during_the_backup(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(home, home / "svc.db")
    monkeypatch.setattr(Path, "is_symlink", lambda path: False)  # `config.yaml` was a file a moment ago
    with pytest.raises(BackupError, match="symbolic links"):
        back_up(home, tmp_path / "b.tar.gz", database=home / "svc.db")


def test_nothing_is_written_over(tmp_path: Path, home: Path, archive: Path) -> None:
    before = archive.read_bytes()
    with pytest.raises(BackupError, match="is there already"):
        back_up(home, archive, database=None)
    assert archive.read_bytes() == before
    back_up(home, archive, database=None, replace=True)
    assert archive.read_bytes() != before
    with pytest.raises(BackupError, match="holds something already"):
        again(archive, home)
    (home / "new").write_text("later")
    was = tree(home)
    kept = Path(again(archive, home, replace=True))
    assert tree(kept).keys() == {name for name in was if not name.startswith("before-restore-")}
    assert not (home / "new").exists()
    assert (home / "before-restore-2026/old").read_text() == "old"


def test_not_while_servers_run(tmp_path: Path, archive: Path) -> None:
    running = lock_home(tmp_path / "new", "api", version="1")
    with pytest.raises(BackupError, match=rf"the api of .*new runs \(process {os.getpid()}\): svc down stops it"):
        again(archive, tmp_path / "new")
    running.release()
    again(archive, tmp_path / "new")


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with `b.tar.gz`, a backup of two files, one of which is incompressible."""
    folder = tmp_path_factory.mktemp("small")
    (folder / "home").mkdir()
    (folder / "home" / "a").write_bytes(b"abc" * 100)
    (folder / "home" / "b").write_bytes(os.urandom(2000))
    back_up(folder / "home", folder / "b.tar.gz", database=None)
    return folder


@settings(max_examples=25)  # each example waits for the disk
@given(where=st.floats(0, 1, exclude_max=True), flip=st.integers(0, 255))
def test_cut_or_changed_archives_are_refused(small: Path, where: float, flip: int) -> None:
    text = bytearray((small / "b.tar.gz").read_bytes())
    at = int(where * len(text))
    if flip:
        text[at] ^= flip
    else:
        del text[at:]
    (small / "changed.tar.gz").write_bytes(text)
    new = small / "new"
    try:
        restore(small / "changed.tar.gz", new, database_of=lambda _: new / "svc.db")
    except BackupError:
        assert tree(new) == {}
    else:  # its creation time and trailing data are without meaning
        assert texts(new) == texts(small / "home")
    finally:
        shutil.rmtree(new, ignore_errors=True)


def changed(archive: Path, change: Callable[[dict[str, bytes]], object]) -> Path:
    """Write an archive of the members that `change` has edited, and return its path; the content `->` makes a link."""
    with tarfile.open(archive) as file:
        members = {each.name: file.extractfile(each).read() for each in file}  # type: ignore[union-attr]
    change(members)
    new = archive.with_name("changed.tar.gz")
    with tarfile.open(new, "w:gz") as file:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            if data == b"->":
                info.type, info.linkname, info.size = tarfile.SYMTYPE, "/etc/passwd", 0
            file.addfile(info, io.BytesIO(data))
    return new


def about(members: dict[str, bytes], **new: object) -> None:
    members["backup.json"] = json.dumps({**json.loads(members["backup.json"]), **new}).encode()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda it: it.pop("backup.json"), "its end is missing"),
        (lambda it: it.pop("home/.env"), r"'home/\.env' is not what it was"),
        (lambda it: it.update({"home/.env": b"x"}), r"'home/\.env' is not what it was"),
        (lambda it: it.update({"home/x": b"x"}), "'home/x' has no place in it"),
        (lambda it: it.update({"home/.env": b"->"}), r"'home/\.env' has no place in it"),
        (lambda it: about(it, format=2), "is of a newer version"),
        (lambda it: about(it, files=[]), "does not say what it holds"),
        (lambda it: about(it, more=1), "does not say what it holds"),
        (lambda it: it.update({"backup.json": b"[" * 100_000}), "does not say what it holds"),
        (lambda it: it.clear(), "its end is missing"),
    ],
)
def test_well_formed_archives_with_wrong_members(
    tmp_path: Path, archive: Path, change: Callable[[dict[str, bytes]], object], why: str
) -> None:
    with pytest.raises(BackupError, match=why):
        again(changed(archive, change), tmp_path / "new")
    assert tree(tmp_path / "new") == {}


@pytest.mark.parametrize("name", ["home/../x", "/etc/x", "home", "svc.db/x", "home//x", "home/run/x", "home/./x", "x"])
def test_member_names_outside_of_the_home(tmp_path: Path, archive: Path, name: str) -> None:
    def first(members: dict[str, bytes]) -> None:
        kept = dict(members)
        members.clear()
        members.update({name: b"x", **kept})

    with pytest.raises(BackupError, match="has no place in it"):
        again(changed(archive, first), tmp_path / "new")


def test_an_unsound_database(tmp_path: Path, archive: Path) -> None:
    def unsound(members: dict[str, bytes], at: int) -> None:
        members["svc.db"] = members["svc.db"][:at] + b"\xff" * 100 + members["svc.db"][at + 100 :]
        files = json.loads(members["backup.json"])["files"]
        about(members, files={**files, "svc.db": hashlib.sha256(members["svc.db"]).hexdigest()})

    for at in (0, 4096):  # the head of the file, and that of a page
        with pytest.raises(BackupError, match="its database is not sound"):
            again(changed(archive, partial(unsound, at=at)), tmp_path / "new")


@pytest.mark.parametrize("text", [b"", b"not a backup", gzip.compress(b"no tar", mtime=0)])
def test_files_that_are_no_archives(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "b").write_bytes(text)
    with pytest.raises(BackupError, match=r"is not whole|no such file"):
        again(tmp_path / "b", tmp_path / "new")


def test_impossible_backups_and_restores(
    tmp_path: Path, home: Path, archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(BackupError, match="there is no service home"):
        back_up(tmp_path / "none", tmp_path / "x", database=None)
    with pytest.raises(BackupError, match=f"^{tmp_path}/none/x cannot be written: no such file or directory$"):
        back_up(home, tmp_path / "none" / "x", database=None)
    with pytest.raises(BackupError, match="no such file or directory"):
        again(tmp_path / "none", tmp_path / "new")
    (home / "svc.db").write_bytes(b"no database" * 1000)
    with pytest.raises(BackupError, match="cannot be copied"):
        back_up(home, tmp_path / "x", database=home / "svc.db")
    assert {path.name for path in tmp_path.iterdir()} == {"home", "b.tar.gz", "new"}


def test_a_disk_that_fails_midway_is_put_back(
    tmp_path: Path, home: Path, archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    was, moves, real = tree(home), list[object](), shutil.move

    def move(path: Path, to: Path) -> None:
        moves.append(to)
        if len(moves) == 9:
            raise OSError(5, "Input/output error")
        real(path, to)

    monkeypatch.setattr("runtimes.files.backup.shutil.move", move)
    with pytest.raises(BackupError, match="input/output error"):
        again(archive, home, replace=True)
    assert tree(home) == was


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path, home: Path, archive: Path) -> None:
    was, whole = archive.read_bytes(), tree(home)
    (home / "big").write_bytes(os.urandom(100_000))
    program = (
        "from pathlib import Path; import sys; from runtimes.files.backup import *\n"
        "try: back_up(Path(sys.argv[1]), Path(sys.argv[2]), database=None, replace=True)\n"
        "except BackupError as error: print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, home, archive],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000)),
    )
    assert done.stdout == "file too large\n"
    assert archive.read_bytes() == was
    (home / "big").unlink()
    assert tree(home) == whole
    assert {path.name for path in tmp_path.iterdir()} == {"home", "b.tar.gz"}


def test_a_file_that_shrinks_meanwhile(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home.mkdir()
    (home / "a").write_bytes(b"x" * 10)
    real = os.fstat

    def larger(fd: int) -> os.stat_result:
        found = list(real(fd))
        found[6] += 5
        return os.stat_result(found)

    monkeypatch.setattr("runtimes.files.backup.os.fstat", larger)
    with pytest.raises(BackupError, match="became shorter while it was read: try again"):
        back_up(home, tmp_path / "x", database=None)
    assert [path.name for path in tmp_path.iterdir()] == ["home"]
