"""Reports of a worker to the main process, tested on a small suite beside a copy of the conftest."""

import os
import subprocess
import sys
from pathlib import Path

CONFTEST = Path(__file__).with_name("conftest.py")
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


def test_a_worker_reports_all_that_did_not_pass(tmp_path: Path) -> None:
    tmp_path.joinpath("conftest.py").write_text(CONFTEST.read_text())
    tmp_path.joinpath("pytest.ini").write_text("[pytest]\n")
    tmp_path.joinpath("test_ends.py").write_text(ENDS)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "xdist", "-n", "1", "-rs"]
    env = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_DEBUG_TEMPROOT": str(tmp_path)}
    shown = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False).stdout
    assert "2 passed, 1 skipped" in shown
    assert "1 error in" in shown
    assert "RuntimeError: a teardown that fails" in shown
    assert "while it is made" in shown
    assert "at the end" in shown
    assert "not here" in shown
