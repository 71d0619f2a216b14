"""Test of the helper that runs the steps of a client: a program that writes nothing is ended."""

import sys

import pytest

from tests.conformance.external_tools import run_steps

SILENT = "import sys, time; print(0, file=sys.stderr, flush=True); time.sleep(60)"


def test_silent_program_is_ended() -> None:
    with pytest.raises(RuntimeError, match=r"failed with -9: 0\n$"):
        run_steps([sys.executable, "-c", SILENT], silence=3.0)
