import subprocess
import sys
from pathlib import Path

import pytest

from runtimes.cli.serve_extra import require_serve_extra

ROOT = Path(__file__).parents[3]


def test_no_error_with_the_packages_installed() -> None:
    require_serve_extra()


@pytest.mark.parametrize("program", ["clients.commands.svc", "clients.gateway.__main__", "servers.relay"])
def test_error_text_with_the_core_alone(program: str) -> None:
    code = f"import sys; sys.modules['click'] = None; import {program}"
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert run.stderr == ("the core of svc-relay is installed, but not its programs: pip install 'svc-relay[serve]'\n")
