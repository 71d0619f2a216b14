"""The Makefile's reaction to a failed installation of the voice engines: only a missing wheel is tolerated.

And the completeness of the lock files, the versions that are excluded, and what the container file installs.
"""

import re
import subprocess
import tomllib
from importlib.metadata import distributions
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
PIP = """#!/bin/sh
case "$*" in *voice.lock*) if [ -n "$SAYS" ]; then echo "$SAYS" >&2; exit 1; fi ;; esac
"""


def test_only_a_missing_wheel_of_the_voice_engines_is_tolerated(tmp_path: Path) -> None:
    says = (
        "",
        "ERROR: No matching distribution found for pocketsphinx==5.0.4",
        "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES",
        "ERROR: Could not install packages due to an OSError",
    )
    pip = tmp_path / "pip"
    pip.write_text(PIP)
    pip.chmod(0o755)
    rules = tmp_path / "rules.mk"
    tries = (f"try{n}: export SAYS := {text}\ntry{n}:\n\t$(call install,run,it)\n" for n, text in enumerate(says))
    rules.write_text("include Makefile\n" + "".join(tries))
    make = ["make", "--keep-going", "-f", str(rules), *(f"try{n}" for n in range(len(says))), f"PIP={pip}"]
    made = subprocess.run(make, cwd=ROOT, capture_output=True, text=True, check=False)
    assert re.findall(r"(try\d)\] Error", made.stderr) == ["try2", "try3"]
    for told in ("no wheels of the voice engines", "DO NOT MATCH THE HASHES", "OSError"):
        assert made.stderr.count(told) == 1


def test_folders_that_are_not_measured_exist() -> None:
    made = subprocess.run(["make", "-n", "COVERAGE=1", "test"], cwd=ROOT, capture_output=True, text=True, check=True)
    folders = re.findall(r"--unmeasured=(\S+)", made.stdout)
    assert folders
    assert all((ROOT / folder).is_dir() for folder in folders)


def test_the_locks_keep_required_extras() -> None:
    asked = [Requirement(each) for one in distributions() for each in one.requires or []]
    asked = [one for one in asked if one.extras and (one.marker is None or one.marker.evaluate({"extra": ""}))]
    assert {one.name for one in asked} >= {"coverage", "pyjwt"}
    for one in asked:
        for lock in (ROOT / "requirements").glob("*.lock"):
            locked = re.search(rf"(?im)^{re.escape(one.name)}(?:\[(.*)\])?==", lock.read_text())
            assert locked is None or one.extras <= set((locked[1] or "").split(",")), (lock.name, str(one))


def test_a_version_of_h2_with_a_known_flaw_is_excluded() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (h2,) = [found for found in map(Requirement, project["dependencies"]) if found.name == "h2"]
    assert not h2.specifier.contains("4.4.0")  # CVE-2026-71554, repaired in 4.4.1
    assert h2.specifier.contains("4.4.1")


def test_the_container_has_locked_packages_and_a_base_that_can_be_pinned() -> None:
    text = (ROOT / "Containerfile").read_text()
    assert set(re.findall(r"(?m)^FROM (\S+)", text)) == {"${BASE}"}
    installs = re.findall(r"pip install (.*)", text)
    assert len(installs) == 4
    assert all("--require-hashes" in each or "--no-deps" in each for each in installs)
