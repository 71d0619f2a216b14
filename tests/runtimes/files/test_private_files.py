"""Tests of the publication of a new file: under a free name only, with and without hard links, and failures."""

import errno
import os
from pathlib import Path

import pytest

from runtimes.files.private_files import publish_new_file


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
