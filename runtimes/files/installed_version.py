"""Version of the installation with its commit, such as `1.0.0+g2009ac61abcd`.

A wheel and an archive of the source have the commit in the file `commit.txt` beside this module, which the build hook
`hatch_build.py` adds. A clone has it in its `.git`. The form is that of Semantic Versioning 2.0.0, section 10, and of
PEP 440. Loading this module imports nothing of the project, because the build hook loads it alone.
"""

import re
from functools import cache
from pathlib import Path

__all__ = ["COMMIT_FILE", "find_commit", "installed_version"]

COMMIT_FILE = "runtimes/files/commit.txt"  # below the root of the source or of the installation
LENGTH = 12  # characters of the commit's id that are shown
MAX_LINKS = 3  # symbolic references that are followed
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")  # SHA-1 or SHA-256
_PREFIX = "gitdir: "


@cache
def installed_version() -> str:
    """Return the version of this installation; without a commit if none is recorded."""
    from svc_proto.version import VERSION  # noqa: PLC0415, RUF100 - the build hook has no packages

    commit = find_commit(Path(__file__).parents[2])
    return f"{VERSION}+g{commit}" if commit else VERSION


def find_commit(root: Path, *, length: int | None = LENGTH) -> str:
    """Return the commit of a source tree or installation, or "" if unknown.

    Only the first `length` characters are returned; None means all.
    """
    recorded = _read(root / COMMIT_FILE)
    if recorded:
        return recorded[:length] if _COMMIT.fullmatch(recorded) else ""
    folder = root / ".git"
    link = _read(folder)  # of a worktree, `.git` is a file
    if link.startswith(_PREFIX):
        folder = root / link.removeprefix(_PREFIX)
    found = _read(folder / "HEAD")
    shared = folder / (_read(folder / "commondir") or ".")
    for _ in range(MAX_LINKS):
        if not found.startswith("ref: "):
            break
        name = found.removeprefix("ref: ")
        found = _read(folder / name) or _read(shared / name) or _packed(shared, name)
    return found[:length] if _COMMIT.fullmatch(found) else ""


def _packed(folder: Path, name: str) -> str:
    lines = _read(folder / "packed-refs").splitlines()
    return next((line.partition(" ")[0] for line in lines if line.endswith(f" {name}")), "")


def _read(path: Path) -> str:
    try:
        return path.read_text("ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""
