"""Who has a second try, tried on a small suite beside a copy of the conftest."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

CONFTEST = Path(__file__).with_name("conftest.py")
FAILS_ONCE = """
from pathlib import Path

import pytest

@pytest.mark.parametrize("loop", ["asyncio", "sim"])
def test_it(loop):
    seen = Path(__file__).with_name(f"seen-{loop}")
    first = not seen.exists()
    seen.touch()
    assert not first, "too busy"
"""


def run(suite: Path, reruns: str) -> str:
    """What pytest prints of tests that fail at their first try, in two folders, each on a loop and in the simulator."""
    suite.joinpath("conftest.py").write_text(CONFTEST.read_text())
    suite.joinpath("pytest.ini").write_text("[pytest]\n")
    for folder in ("loops", "wire"):
        suite.joinpath(folder).mkdir()
        suite.joinpath(folder, f"test_{folder}.py").write_text(FAILS_ONCE)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "pytest_rerunfailures"]
    env = {**os.environ, "RERUNS": reruns, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(command, cwd=suite, env=env, capture_output=True, text=True, check=False).stdout


def test_only_a_real_loop_has_a_second_try_and_its_first_is_shown(tmp_path: Path) -> None:
    shown = run(tmp_path, "1")
    assert "3 failed, 1 passed, 1 rerun in" in shown
    _, _, tried_again = shown.partition("tried again: loops/test_loops.py::test_it[asyncio]")
    assert "AssertionError: too busy" in tried_again


def test_nobody_has_one_unasked(tmp_path: Path) -> None:
    assert "4 failed in" in run(tmp_path, "")
