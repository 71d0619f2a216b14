"""Build the release and test it: sdist, wheel, their metadata, and the wheel under one Python of each version.

Both are built twice and compared. A CycloneDX bill of materials lists what the programs need. Each Python gets an empty
environment. Nothing is uploaded.

usage: python scripts/release.py [--check] [PYTHON ...]
  --check     only compare the versions in pyproject.toml, svc_proto/version.py and the changelog
  PYTHON      interpreters of 3.11 to 3.14 to test, in place of those on the path or of pyenv with the same version
Exit codes: 0; 1 when something is wrong with the release, and when no Python was found to test it.
"""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
import zipfile
from collections.abc import Sequence
from pathlib import Path

__all__ = ["ReleaseError", "check_equal", "check_versions", "find_pythons", "main", "top_version"]

ROOT = Path(__file__).resolve().parent.parent
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
HEADING = re.compile(r"^## \[(?P<version>[^]]+)\](?: - (?P<date>\S+))?$", re.MULTILINE)
ASK = ("-c", "import sys; print('%d.%d' % sys.version_info[:2])")
WITHIN = 300.0  # s for each step
OURS = ("PYTHON", "SVC_", "RELAY_", "API_")  # environment variables that steps do not inherit
ANSWER_WITHIN = 20.0  # s for an interpreter to print its version


class ReleaseError(Exception):
    """The release has a fault; the text describes it."""


def main(words: Sequence[str]) -> int:
    """Build and test the release, or with `--check` only compare the versions; return the exit code."""
    try:
        version, date = check_versions(ROOT)
        print(f"version    {version}, as in CHANGELOG.md" + ("" if date else ", which has no date for it yet"))
        if "--check" in words:
            return 0
        pythons = find_pythons([word for word in words if not word.startswith("-")])
        with tempfile.TemporaryDirectory(prefix="svc-release-") as scratch:
            wheel = _build(ROOT / "dist", Path(scratch))
            tried = [_try(python, wheel, version, Path(scratch) / name) for name, python in pythons.items()]
    except ReleaseError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    for name in VERSIONS:
        if name not in pythons:
            print(f"{name:<10} not tried: there is no python{name} here")
    print(f"in dist    {', '.join(sorted(path.name for path in (ROOT / 'dist').iterdir()))}; nothing was uploaded")
    return 0 if tried and all(tried) else 1


def check_versions(root: Path) -> tuple[str, str | None]:
    """Return the common version of pyproject.toml, svc_proto/version.py and CHANGELOG.md, and the changelog's date.

    Raises `ReleaseError` where the versions differ.
    """
    version = tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"]
    code = re.search(r'^VERSION = "(.*)"$', (root / "svc_proto/version.py").read_text(), re.MULTILINE)
    if code is None or code[1] != version:
        raise ReleaseError(f"pyproject.toml says {version}, svc_proto/version.py {code[1] if code else 'nothing'}")
    top, date = top_version((root / "CHANGELOG.md").read_text())
    if top != version:
        raise ReleaseError(f"pyproject.toml says {version}, and CHANGELOG.md begins with {top}")
    return version, date


def top_version(changelog: str) -> tuple[str, str | None]:
    """Return the first version of a changelog and its date (None if unreleased). Raises `ReleaseError`."""
    found = HEADING.search(changelog)
    if found is None:
        raise ReleaseError("CHANGELOG.md has no heading '## [VERSION] - DATE'")
    date = found["date"]
    return found["version"], date if date and re.fullmatch(r"\d{4}-\d\d-\d\d", date) else None


def find_pythons(named: Sequence[str] = (), *, path: str | None = None, pyenv: Path | None = None) -> dict[str, str]:
    """Return an interpreter for each of `VERSIONS` that is installed here, preferably a named one.

    Each candidate is run, because a version manager leaves commands on the path that do not start.
    """
    pyenv = pyenv or Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    candidates = [
        *named,
        *filter(None, (shutil.which(f"python{version}", path=path) for version in VERSIONS)),
        *(str(each) for version in VERSIONS for each in sorted(pyenv.glob(f"versions/{version}*/bin/python{version}"))),
    ]
    found: dict[str, str] = {}
    for candidate in candidates:
        version = _version_of(candidate)
        if version in VERSIONS:
            found.setdefault(version, candidate)
    return {version: found[version] for version in VERSIONS if version in found}


def _version_of(python: str) -> str:
    try:
        said = subprocess.run([python, *ASK], capture_output=True, text=True, timeout=ANSWER_WITHIN, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return said.stdout.strip() if said.returncode == 0 else ""


def _build(folder: Path, scratch: Path) -> Path:
    """Build sdist and wheel into `folder`, with the bill of materials; return the wheel.

    Raises `ReleaseError` unless a second build gives the same files, and the unpacked sdist a wheel with the same
    contents.
    """
    shutil.rmtree(folder, ignore_errors=True)
    for place in (folder, scratch / "again"):
        _run("the build", sys.executable, "-m", "hatchling", "build", "--directory", str(place))
    (sdist,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    check_equal(folder, scratch / "again")
    shutil.rmtree(scratch / "again")
    _write_bill(folder / f"{sdist.name.removesuffix('.tar.gz')}.cdx.json")
    _run("twine check", sys.executable, "-m", "twine", "check", "--strict", str(sdist), str(wheel))
    with tarfile.open(sdist) as packed:
        packed.extractall(scratch, filter="data")
    (source,) = (each for each in scratch.iterdir() if each.is_dir())
    _run("the sdist", sys.executable, "-m", "hatchling", "build", "--target", "wheel", where=source)
    (again,) = (source / "dist").glob("*.whl")
    if _content(again) != _content(wheel):
        raise ReleaseError("the wheel that the sdist makes holds something else than the wheel")
    print(f"built      {sdist.name} ({_size(sdist)}), {wheel.name} ({_size(wheel)}); twine finds no fault")
    return wheel


def check_equal(folder: Path, again: Path) -> None:
    """Raise `ReleaseError` unless both folders hold the same files, byte by byte."""
    first, second = ({each.name: each.read_bytes() for each in where.iterdir()} for where in (folder, again))
    for name in sorted({*first, *second}):
        if first.get(name) != second.get(name):
            raise ReleaseError(f"two builds differ in {name}")


def _write_bill(path: Path) -> None:
    """Write the bill of materials (CycloneDX) of what the programs need, from their lock file."""
    options = ("--pyproject", "pyproject.toml", "--output-reproducible", "--of", "JSON", "-o", str(path))
    _run(
        "the bill of materials", sys.executable, "-m", "cyclonedx_py", "requirements", *options, "requirements/run.lock"
    )


def _content(wheel: Path) -> dict[str, int]:
    with zipfile.ZipFile(wheel) as packed:
        return {each.filename: each.CRC for each in packed.infolist() if not each.filename.endswith("/RECORD")}


def _size(path: Path) -> str:
    return f"{path.stat().st_size / 1024:.0f} KiB"


def _try(python: str, wheel: Path, version: str, home: Path) -> bool:
    began = time.monotonic()
    try:
        _run("venv", python, "-m", "venv", str(home))
        pip = [str(home / "bin/python"), "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
        _run("pip install", *pip, f"{wheel}[serve]")
        said = _run("the smoke", str(home / "bin/python"), "-I", str(ROOT / "scripts/smoke.py"), version, where=home)
    except ReleaseError as error:
        print(f"{home.name:<10} FAILED: {error}")
        return False
    print(f"{home.name:<10} {said.strip()} ({time.monotonic() - began:.0f} s)")
    return True


def _run(what: str, *words: str, where: Path = ROOT) -> str:
    env = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "SVC_", "RELAY_", "API_"))
    }
    try:
        done = subprocess.run(words, cwd=where, env=env, capture_output=True, text=True, timeout=WITHIN, check=False)
    except subprocess.TimeoutExpired:
        raise ReleaseError(f"{what} took more than {WITHIN:.0f} s") from None
    if done.returncode:
        raise ReleaseError(f"{what}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
