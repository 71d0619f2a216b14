"""Tests of `scripts/release.py`: its checks of versions and of equal builds, and its search for Python interpreters."""

import re
from pathlib import Path

import pytest

from scripts.release import ROOT, ReleaseError, check_equal, check_versions, find_pythons, top_version


def test_every_version_of_the_changelog_is_a_heading_of_its_own_newest_first() -> None:
    headings = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    versions = [top_version(f"## {heading}\n") for heading in headings]
    numbers = [tuple(map(int, version.split("."))) for version, _ in versions]
    assert numbers == sorted({*numbers}, reverse=True)
    assert all(date for _, date in versions[1:])  # only the first may have none


def project(root: Path, *, project: str = "2.0.0", code: str = 'VERSION = "2.0.0"', changelog: str = "2.0.0") -> Path:
    (root / "svc_proto").mkdir()
    (root / "pyproject.toml").write_text(f'[project]\nversion = "{project}"\n')
    (root / "svc_proto" / "version.py").write_text(f"{code}\n")
    (root / "CHANGELOG.md").write_text(f"## [{changelog}] - 2026-11-22\n" if changelog else "# Changelog\n")
    return root


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"project": "2.0.1"}, "pyproject.toml says 2.0.1, svc_proto/version.py 2.0.0"),
        ({"code": ""}, "pyproject.toml says 2.0.0, svc_proto/version.py nothing"),
        ({"changelog": "1.9.0"}, "pyproject.toml says 2.0.0, and CHANGELOG.md begins with 1.9.0"),
        ({"changelog": ""}, "CHANGELOG.md has no heading"),
    ],
)
def test_mismatched_versions(tmp_path: Path, wrong: dict[str, str], said: str) -> None:
    (tmp_path / "right").mkdir()
    assert check_versions(project(tmp_path / "right")) == ("2.0.0", "2026-11-22")
    with pytest.raises(ReleaseError, match=re.escape(said)):
        check_versions(project(tmp_path, **wrong))


@pytest.mark.parametrize(
    ("again", "differs"), [({"a": b"1"}, ""), ({"a": b"2"}, "a"), ({}, "a"), ({"a": b"1", "b": b""}, "b")]
)
def test_two_builds_are_equal(tmp_path: Path, again: dict[str, bytes], differs: str) -> None:
    folders = tmp_path / "first", tmp_path / "second"
    for folder, files in zip(folders, ({"a": b"1"}, again), strict=True):
        folder.mkdir()
        for name, data in files.items():
            (folder / name).write_bytes(data)
    if not differs:
        check_equal(*folders)
        return
    with pytest.raises(ReleaseError, match=f"two builds differ in {differs}"):
        check_equal(*folders)


def command(path: Path, says: str, code: int = 0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho {says}\nexit {code}\n")
    path.chmod(0o755)
    return path


def test_a_python_that_does_not_start_is_ignored(tmp_path: Path) -> None:
    shims, pyenv = tmp_path / "shims", tmp_path / "pyenv"
    command(shims / "python3.12", "3.12", 127)  # as a version manager leaves on the path
    command(shims / "python3.14", "3.14")
    kept = command(pyenv / "versions" / "3.12.1" / "bin" / "python3.12", "3.12")
    named = command(tmp_path / "mine", "3.14")
    old = command(tmp_path / "old", "3.10")
    found = find_pythons([str(named), str(old), str(tmp_path / "gone")], path=str(shims), pyenv=pyenv)
    assert found == {"3.12": str(kept), "3.14": str(named)}
