"""Who has a second try, and what a worker tells, tried on a small suite beside a copy of the conftest."""

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


ENDS = """
import pytest

@pytest.fixture
def left():
    print("while it is made")
    yield
    print("at the end")
    raise RuntimeError("a teardown that fails")

def test_it_passes():
    pass

def test_it_is_left(left):
    pass

@pytest.mark.skip(reason="not here")
def test_it_is_skipped():
    pass
"""


def run(suite: Path, reruns: str, *options: str) -> str:
    """What pytest prints of tests that fail at their first try, in two folders, each on a loop and in the simulator."""
    suite.joinpath("conftest.py").write_text(CONFTEST.read_text())
    suite.joinpath("pytest.ini").write_text("[pytest]\n")
    for folder in ("loops", "wire"):
        suite.joinpath(folder).mkdir()
        suite.joinpath(folder, f"test_{folder}.py").write_text(FAILS_ONCE)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "pytest_rerunfailures", *options]
    env = {**os.environ, "RERUNS": reruns, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(command, cwd=suite, env=env, capture_output=True, text=True, check=False).stdout


def test_only_a_real_loop_has_a_second_try_and_its_first_is_shown(tmp_path: Path) -> None:
    shown = run(tmp_path, "1")
    assert "3 failed, 1 passed, 1 rerun in" in shown
    _, _, tried_again = shown.partition("tried again: loops/test_loops.py::test_it[asyncio]")
    assert "AssertionError: too busy" in tried_again


def test_nobody_has_one_unasked_and_a_worker_tells_all_that_did_not_pass(tmp_path: Path) -> None:
    tmp_path.joinpath("test_ends.py").write_text(ENDS)
    shown = run(tmp_path, "", "-p", "xdist", "-n", "1", "-rs")
    assert "4 failed, 2 passed, 1 skipped" in shown
    assert "1 error in" in shown
    assert "RuntimeError: a teardown that fails" in shown
    assert "while it is made" in shown
    assert "at the end" in shown
    assert "not here" in shown
