"""A program that is forked from a prepared process behaves like one in a new interpreter."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pexpect
import pytest

from tests.support.forkserver import ForkedTerminal, Popen, python, run

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="everything starts anew elsewhere")
ROOT = Path(__file__).parents[1]


def program(status: str) -> list[str]:
    return python("tests.support.environment_reporter", status)


@pytest.mark.parametrize("status", ["0", "3", "a word", "raise"])
@pytest.mark.parametrize("more", [{}, {"PYTHONUNBUFFERED": "1", "TZ": "Asia/Tokyo", "HOME": "/nowhere"}])
def test_through_pipes(status: str, more: dict[str, str]) -> None:
    options: dict[str, Any] = {"cwd": ROOT, "env": os.environ | more, "capture_output": True, "text": True}
    forked = run(program(status), input="hi\n", timeout=60, **options)
    begun = subprocess.run(program(status), input="hi\n", timeout=60, check=False, **options)
    assert forked.returncode == begun.returncode
    one, other = json.loads(forked.stdout), json.loads(begun.stdout)
    assert (one.pop("forked"), other.pop("forked")) == (True, False)
    assert one == other
    assert forked.stderr.splitlines()[-1:] == begun.stderr.splitlines()[-1:]


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_on_a_terminal(unbuffered: str) -> None:
    forked, begun = (
        shown(spawn, os.environ | {"PYTHONUNBUFFERED": unbuffered}) for spawn in (ForkedTerminal, pexpect.spawn)
    )
    assert (forked.pop("forked"), begun.pop("forked")) == (True, False)
    assert forked == begun
    assert (begun["leads a session"], begun["foreground"], begun["size"]) == (True, True, [77, 33])


def test_the_end_of_a_program_is_reported() -> None:
    with Popen(program("0"), cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
        process.kill()
        assert process.wait(60) == -signal.SIGKILL


def test_interpreter_variables_need_a_new_interpreter() -> None:
    env = os.environ | {"PYTHONIOENCODING": "iso8859-1"}
    done = run(program("0"), input="", cwd=ROOT, env=env, capture_output=True, text=True, timeout=60)
    assert json.loads(done.stdout)["streams"][0][0] == "iso8859-1"


def shown(spawn: Callable[..., pexpect.spawn[str]], env: dict[str, str]) -> Any:
    """Run the program on a terminal, check that it exits with 7, and return what it prints of its environment."""
    words = program("7")
    terminal = spawn(words[0], words[1:], cwd=str(ROOT), env=env, encoding="utf-8", dimensions=(33, 77), timeout=60)
    terminal.sendline("hi")
    terminal.expect(r'(\{"arguments.*\})\r\n')
    assert isinstance(terminal.match, re.Match)
    found = json.loads(terminal.match[1])
    terminal.expect(pexpect.EOF)
    terminal.close()
    assert terminal.exitstatus == 7
    return found
