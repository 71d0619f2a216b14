"""What a command costs before it does anything: processor time of the whole process, the best of several runs.

Wall time depends on the neighbours; `python -m bench --only starts` measures that.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.clients.commands.support import Shelf, module
from tests.servers.support import ROOT

RUNS = 5


def cost(words: list[str], env: dict[str, str]) -> float:
    """Seconds of processor time, user and system, of the best run."""
    best = float("inf")
    for _ in range(RUNS):
        process = subprocess.Popen(words, cwd=ROOT, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0
        best = min(best, usage.ru_utime + usage.ru_stime)
    return best


@pytest.mark.parametrize("program", ["svc", "svc-pair", "svc-relay"])
def test_help(lonely: Shelf, program: str) -> None:
    assert cost([sys.executable, "-m", module(program)[-1], "--help"], lonely.env) < 0.2


def test_completion(lonely: Shelf) -> None:
    env = {**lonely.env, "_SVC_RELAY_COMPLETE": "bash_complete", "COMP_WORDS": "svc-relay dev", "COMP_CWORD": "1"}
    assert cost([sys.executable, "-m", module("svc-relay")[-1]], env) < 0.2


def test_pair(desk: Shelf) -> None:
    assert cost([sys.executable, "-m", module("svc")[-1], "pair"], desk.env) < 0.5


def test_status(lonely: Shelf) -> None:
    assert cost([sys.executable, "-m", module("svc-relay")[-1], "status"], lonely.env) < 0.5
