"""Tests of `run`: selection of a loop by its name, built-in or external, its arguments and cleanup."""

from collections.abc import Sequence
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete

from runtimes.cli.runtime_option import runtime_option
from runtimes.host.host import Program
from runtimes.loops import threads_loop
from runtimes.loops.waker import HostHandle
from runtimes.run import RUNTIMES, Runtime, RuntimeMissingError, find_runtime, run
from svc_proto.commands import Exit
from tests.runtimes.scripted_core import ScriptCore

HERE = __name__
CHOICES = "choose one of anyio, asyncio, uvloop, trio, curio, threads, or name a function as package.module:function"
NOT_CALLABLE = 7

given: list[tuple[Sequence[Program], HostHandle, float, bool]] = []


def recording(programs: Sequence[Program], *, handle: HostHandle, grace: float, signals: bool) -> tuple[Exit, ...]:
    """Runtime that records its arguments, runs nothing, and returns three exits."""
    assert handle.waker.sock.fileno() >= 0
    given.append((programs, handle, grace, signals))
    return Exit(0), Exit(4), Exit(3)


def failing(programs: Sequence[Program], *, handle: HostHandle, grace: float, signals: bool) -> tuple[Exit, ...]:
    raise ZeroDivisionError


def test_external_loops_are_found() -> None:
    found: Runtime = find_runtime("runtimes.loops.threads_loop:run")
    assert found is threads_loop.run is find_runtime("threads")


@pytest.mark.parametrize("name", RUNTIMES)
def test_built_in_loops_are_found_by_name(name: str) -> None:
    pytest.importorskip(RUNTIMES[name].package)
    assert callable(find_runtime(name))


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("twisted", "no runtime 'twisted': "),
        ("", "no runtime '': "),
        ("runtimes.loops.threads_loop", "no runtime 'runtimes.loops.threads_loop': "),
        ("nope.loop:run", "cannot load the runtime 'nope.loop:run' (ModuleNotFoundError: No module named 'nope'): "),
        (f"{HERE}:nope", f"cannot load the runtime '{HERE}:nope' (AttributeError: module '{HERE}' has no attribute "),
        (f"{HERE}:NOT_CALLABLE", f"the runtime '{HERE}:NOT_CALLABLE' is no function: "),
        (":run", "cannot load the runtime ':run' (ValueError: Empty module name): "),
        (".loop:run", "cannot load the runtime '.loop:run' (TypeError: "),
        ("broken:run", "cannot load the runtime 'broken:run' (RuntimeError: two lines): "),
    ],
)
def test_unknown_loops_give_one_line_with_the_choices(
    name: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken.py").write_text("raise RuntimeError('two\\nlines')\n")
    monkeypatch.syspath_prepend(tmp_path)
    handle = HostHandle()
    with pytest.raises(RuntimeMissingError) as caught:
        run([], name, handle=handle)
    assert handle.waker.sock.fileno() == -1  # closed, as after each run
    said = str(caught.value)
    assert said.startswith(why)
    assert said.endswith(CHOICES)
    assert "\n" not in said


@pytest.mark.parametrize(("name", "extra"), [("trio", "trio"), ("anyio", "anyio"), ("asyncio", "anyio")])
def test_a_loop_that_is_not_installed(name: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runtimes.run.find_spec", lambda name: None)
    with pytest.raises(RuntimeMissingError, match=rf"pip install 'svc-relay\[{extra}\]'"):
        run([], name)


def test_arguments_of_a_loop() -> None:
    one, two, handle = Program(core=ScriptCore()), Program(core=ScriptCore()), HostHandle()
    assert run([one, two], f"{HERE}:recording", handle=handle, grace=3.0, signals=False) == 4
    assert run(one, f"{HERE}:recording") == 4
    first, second = given
    assert first == ([one, two], handle, 3.0, False)
    assert second[0] == [one]
    assert second[2:] == (10.0, True)  # this is the main thread
    for _, each, _, _ in given:
        assert each.waker.sock.fileno() == each.waker.poke_sock.fileno() == -1
    handle.stop()  # the loop has ended
    given.clear()


def test_exceptions_escape_and_the_handle_is_closed() -> None:
    handle = HostHandle()
    with pytest.raises(ZeroDivisionError):
        run([], f"{HERE}:failing", handle=handle, signals=False)
    assert handle.waker.sock.fileno() == -1


def test_completion_lists_built_in_loops_without_loading_them(monkeypatch: pytest.MonkeyPatch) -> None:
    @click.command
    @runtime_option
    def program(runtime: str) -> None: ...

    monkeypatch.setattr("runtimes.cli.runtime_option.find_runtime", lambda name: pytest.fail("loaded"))
    shell = ShellComplete(program, {}, "program", "_PROGRAM_COMPLETE")
    assert [item.value for item in shell.get_completions(["--runtime"], "a")] == ["anyio", "asyncio"]
    assert [item.value for item in shell.get_completions(["--runtime", "trio"], "--")] == ["--help"]
