"""Tests of the commit in the version: of a clone, a worktree, a wheel, and without one."""

from pathlib import Path

import pytest

from runtimes.files.installed_version import COMMIT_FILE, find_commit, installed_version
from svc_proto.version import VERSION

COMMIT = "2009ac61abcd" + 28 * "0"
OTHER = 40 * "b"


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.mark.parametrize(
    "files",
    [
        {COMMIT_FILE: f"{COMMIT}\n", ".git/HEAD": OTHER},
        {".git/HEAD": f"{COMMIT}\n"},
        {".git/HEAD": "ref: refs/heads/main\n", ".git/refs/heads/main": f"{COMMIT}\n", ".git/packed-refs": OTHER},
        {".git/HEAD": "ref: refs/heads/main", ".git/packed-refs": f"#\n{OTHER} refs/x\n{COMMIT} refs/heads/main\n"},
        {
            ".git": "gitdir: there/worktrees/mine\n",
            "there/worktrees/mine/HEAD": "ref: refs/heads/mine\n",
            "there/worktrees/mine/commondir": "../..\n",
            "there/refs/heads/mine": f"{COMMIT}\n",
        },
        {".git/HEAD": 64 * "a"},
    ],
)
def test_the_commit_is_found(tmp_path: Path, files: dict[str, str]) -> None:
    full = 64 * "a" if files.get(".git/HEAD", "").startswith("a") else COMMIT
    write(tmp_path, files)
    assert find_commit(tmp_path) == full[:12]
    assert find_commit(tmp_path, length=None) == full


UNKNOWN = [{".git/HEAD": head} for head in ("ref: refs/heads/main", "ref: HEAD", "main é")]


@pytest.mark.parametrize("files", [{}, {COMMIT_FILE: "unknown"}, {".git": "gitdir: nowhere"}, *UNKNOWN])
def test_an_unknown_commit(tmp_path: Path, files: dict[str, str]) -> None:
    assert find_commit(write(tmp_path, files)) == ""


def test_the_version_of_this_installation() -> None:
    assert installed_version().partition("+g")[0] == VERSION
