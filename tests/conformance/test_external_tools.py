"""Tests of the helpers that run external programs: output, silence and errors."""

import sys

import pytest

from tests.conformance.external_tools import run_steps

STEPS = """
import sys, time
for step in range(4):
    print(step, file=sys.stderr, flush=True)
    time.sleep(%s)
print('{"done": 4}')
"""


def test_program_that_makes_progress_may_take_longer_than_the_silence() -> None:
    assert run_steps([sys.executable, "-c", STEPS % 0.9], silence=3.0) == {"done": 4}


def test_silent_program_is_ended() -> None:
    with pytest.raises(RuntimeError, match=r"failed with -9: 0\n$"):
        run_steps([sys.executable, "-c", STEPS % 60], silence=3.0)


def test_error_of_a_program_is_shown() -> None:
    with pytest.raises(RuntimeError, match=r"failed with 1: .*oh no"):
        run_steps([sys.executable, "-c", "raise SystemExit('oh no')"], silence=60.0)
