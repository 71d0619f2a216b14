"""Tests of new files under a free name only, and of a secret that two processes create at the same time."""

import errno
import fcntl
import os
import threading
from pathlib import Path

import pytest

from runtimes.files.private_files import publish_new_file
from runtimes.files.state_folder import StateFolder

TIMEOUT = 30.0  # s


@pytest.mark.parametrize("code", [None, errno.EPERM, errno.ENOTSUP, errno.ENOSYS])
def test_a_new_file_gets_a_free_name_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int | None) -> None:
    def no_links(source: Path, target: Path) -> None:
        raise OSError(code, "no hard links")

    if code is not None:
        monkeypatch.setattr(os, "link", no_links)
    temporary, path = tmp_path / "t", tmp_path / "name"
    temporary.write_bytes(b"first")
    publish_new_file(temporary, path)
    assert path.read_bytes() == b"first"
    temporary.unlink(missing_ok=True)  # a link shares its content
    temporary.write_bytes(b"second")
    with pytest.raises(FileExistsError):
        publish_new_file(temporary, path)
    assert path.read_bytes() == b"first"


def test_other_errors_are_passed_on(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        publish_new_file(tmp_path / "missing", tmp_path / "name")
    assert not (tmp_path / "name").exists()


@pytest.mark.parametrize("before", [None, b"", b"short"])
def test_two_writers_return_the_same_secret_without_hard_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: bytes | None
) -> None:
    def no_links(source: Path, target: Path) -> None:
        raise OSError(errno.EPERM, "no hard links")

    results: list[bytes] = []
    has_met = threading.Event()  # the other writer waits for the lock, or has returned

    def other_writer() -> None:
        results.append(StateFolder(tmp_path).ensure_secret("secret", b"b" * 32))
        has_met.set()

    def replace_slowly(source: Path, target: Path) -> None:
        if not others:
            others.append(threading.Thread(target=other_writer, daemon=True))
            others[0].start()
            assert has_met.wait(TIMEOUT)
        replace(source, target)

    def lock(fd: int, operation: int) -> None:
        if others:
            has_met.set()
        flock(fd, operation)

    others: list[threading.Thread] = []
    replace, flock = os.replace, fcntl.flock
    monkeypatch.setattr(os, "link", no_links)
    monkeypatch.setattr(os, "replace", replace_slowly)
    monkeypatch.setattr(fcntl, "flock", lock)
    if before is not None:
        (tmp_path / "secret").write_bytes(before)
    results.append(StateFolder(tmp_path).ensure_secret("secret", b"a" * 32))
    others[0].join(TIMEOUT)
    assert results == [(tmp_path / "secret").read_bytes()] * 2
    assert [path.name for path in tmp_path.iterdir()] == ["secret"]


def test_secret_on_a_file_system_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(fd: int, operation: int) -> None:
        raise OSError(errno.EBADF, "no lock of a folder")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    for fresh in (b"a" * 32, b"b" * 32):
        assert StateFolder(tmp_path).ensure_secret("secret", fresh) == b"a" * 32
