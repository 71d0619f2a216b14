"""Tests of two cores in one process: in Python, and in WebAssembly if `make conformance` has fetched Pyodide."""

import shutil

import pytest

from examples.in_memory import InMemory, main
from tests.conformance.external_tools import FOLDER
from tests.conformance.pyodide_suite import PYODIDE, pyodide


def test_a_phone_is_driven(capsys: pytest.CaptureFixture[str]) -> None:
    main()
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["/ping", "/current_app", "/screen"]


def test_refusals_of_the_relay() -> None:
    memory = InMemory()
    assert memory.call("GET", "/nothing").startswith("404 ")
    assert memory.call("GET", "/ping").startswith("200 ")
    with pytest.raises(TimeoutError):
        memory.run_until(lambda: False)


@pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed")
@pytest.mark.skipif(not (FOLDER / "npm" / PYODIDE.replace("@", "-")).is_dir(), reason="Pyodide was not fetched")
def test_in_webassembly() -> None:
    assert pyodide().failed == {}
