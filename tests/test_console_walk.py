"""The fresh clone of a console walk has the uncommitted changes of the working tree."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.support import console_walk
from tests.support.console_walk import fresh_clone


def test_clone_has_staged_unstaged_and_untracked_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree, home = tmp_path / "tree", tmp_path / "home"
    home.mkdir()
    tree.mkdir()

    def git(*words: str) -> None:
        identity = ("-c", "user.name=A", "-c", "user.email=a@example.org")
        subprocess.run(["git", *identity, *words], cwd=tree, check=True, capture_output=True)

    git("init")
    for name in ("staged", "unstaged", "removed", "deleted"):
        (tree / name).write_text("old")
    git("add", ".")
    git("commit", "--message", "Old")
    for name in ("staged", "new", "gone"):
        (tree / name).write_text("new")
    git("add", ".")
    git("rm", "removed")
    for name in ("unstaged", "untracked"):
        (tree / name).write_text("new")
    for name in ("deleted", "gone"):
        (tree / name).unlink()
    monkeypatch.setattr(console_walk, "ROOT", tree)
    monkeypatch.setattr(console_walk, "FRESH", True)
    fresh_clone(tmp_path / "clone", {**os.environ, "HOME": str(home)})
    found = {path.name: path.read_text() for path in (tmp_path / "clone").iterdir() if path.is_file()}
    assert found == dict.fromkeys(("staged", "new", "unstaged", "untracked"), "new")
