"""Test that commands import no folders of the current directory that are named like our packages."""

import subprocess
import sys
from pathlib import Path

import pytest

from servers.relay_program import GATEWAY

PACKAGES = ("clients", "runtimes", "servers", "svc_proto")
SCRIPTS = Path(sys.executable).parent


@pytest.fixture
def decoys(tmp_path: Path) -> Path:
    """Return a folder with a package of each of our names, which ends a program that imports it."""
    for package in PACKAGES:
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text("raise SystemExit('a decoy was run')\n")
    return tmp_path


@pytest.mark.parametrize(
    "command",
    [GATEWAY, *((str(SCRIPTS / script),) for script in ("svc", "svc-pair", "svc-relay"))],
    ids=lambda command: Path(command[-1]).name,
)
def test_folders_of_the_current_directory_are_not_imported(command: tuple[str, ...], decoys: Path) -> None:
    run = subprocess.run([*command, "--help"], cwd=decoys, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.startswith("Usage: ")
