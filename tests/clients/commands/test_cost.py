"""What a command costs before it does anything: processor time of the whole process, the best of several runs.

On a machine whose processors are shared that is more than the limit at times, so Python's own imports are measured
beside it: a command may take its limit, or what its limit is in those imports on a machine that nobody disturbs. Wall
time is measured by `python -m bench --only starts`.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.clients.commands.support import Shelf, module
from tests.servers.support import ROOT

RUNS = 4
IMPORTS = "import asyncio, http.client, sqlite3, ssl, unittest.mock, xml.dom.minidom"
THEIR_COST = 0.085  # s on a machine that nobody disturbs
HELP = 0.12  # s of a command's own, to show its help
PYTHON = 0.025  # s that an interpreter takes to start and end
DEAR = ["asyncio", "attr", "encodings.idna", "http.client", "logging", "rich", "socket", "ssl", "subprocess"]
DEAR += ["svc_proto.engine"]
EVERY_HELP = """
import contextlib, importlib, io, sys, click
def show(main, *names):
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
        main([*names, "--help"], prog_name="it")  # its groups' callbacks and options are carried out, too
    dear = [name for name in sys.argv[1:] if name in sys.modules]
    if dear:
        sys.exit(f"{main.name} {names} loads {dear}")
    command, context = main, click.Context(main)
    for name in names:
        command = command.get_command(context, name)
    subs = command.list_commands(context) if isinstance(command, click.Group) else []
    return 1 + sum(show(main, *names, sub) for sub in subs)
commands = ("svc", "svc_relay", "pair")
servers = ("__main__", "relay", "api", "dashboard")
people = ("phone.__main__", "gateway.__main__", "demo")
modules = [f"clients.commands.{name}" for name in commands] + [f"servers.{name}" for name in servers]
modules += [f"clients.{name}" for name in people]
print(sum(show(importlib.import_module(name).main) for name in modules))
"""
SLOW = 1.0  # s of theirs; nothing is as slow as that


def measured(words: list[str], env: dict[str, str], limit: float) -> tuple[float, float]:
    """The processor time of a command, and what it may be, in seconds."""
    ours, theirs = float("inf"), float("inf")
    for _ in range(RUNS):
        ours = min(ours, cost(words, env))
        if ours < limit:  # on a machine as fast as that nobody needs to be asked how fast it is
            break
        theirs = min(theirs, cost([sys.executable, "-c", IMPORTS], env))
    return ours, limit * max(min(theirs, SLOW) / THEIR_COST, 1.0)


def cost(words: list[str], env: dict[str, str]) -> float:
    """Seconds of processor time, user and system."""
    process = subprocess.Popen(words, cwd=ROOT, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return usage.ru_utime + usage.ru_stime


@pytest.mark.parametrize("program", ["clients.commands.svc", "clients.commands.svc_relay", "servers"])
def test_help(lonely: Shelf, program: str) -> None:
    ours, allowed = measured([sys.executable, "-m", program, "--help"], lonely.env, HELP + PYTHON)
    assert ours < allowed


def test_no_help_loads_what_runs(lonely: Shelf) -> None:
    """So that the help of every command costs as little as that of those above."""
    run = [sys.executable, "-c", EVERY_HELP, *DEAR, "servers.launch", "runtimes.host"]
    done = subprocess.run(run, cwd=ROOT, env=lonely.env, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert int(done.stdout) > 45


LOADED = """
import sys, click
from importlib import import_module
before = {*sys.modules}
try:
    import_module(sys.argv[1]).main(sys.argv[2:], prog_name="it")
except SystemExit:
    loaded = {*sys.modules} - before
    ours = [name for name in loaded if name.split(".")[0] in ("clients", "runtimes", "servers", "svc_proto")]
    print(len(ours), [name for name in DEAR if name in loaded])
"""


@pytest.mark.parametrize(
    ("words", "most"),
    [
        ("clients.commands.svc --help", 13),
        ("clients.commands.svc logs --help", 17),
        ("clients.commands.svc status", 25),
        ("clients.commands.svc_relay --help", 13),
        ("clients.commands.svc_relay voice talk --help", 20),
    ],
)
def test_how_much_is_loaded(desk: Shelf, words: str, most: int) -> None:
    """Of our modules, and nothing dear: it says on any machine what the time says on a quiet one."""
    dear = [name for name in DEAR if name != "socket" or "--help" in words]
    run = [sys.executable, "-c", f"DEAR = {dear}\n{LOADED}", *words.split()]
    done = subprocess.run(run, cwd=ROOT, env=desk.env, capture_output=True, text=True, check=True)
    count, loaded = done.stdout.splitlines()[-1].split(" ", 1)
    assert loaded == "[]"
    assert int(count) <= most


def test_completion(lonely: Shelf) -> None:
    env = {**lonely.env, "_SVC_RELAY_COMPLETE": "bash_complete", "COMP_WORDS": "svc-relay dev", "COMP_CWORD": "1"}
    ours, allowed = measured([sys.executable, "-m", module("svc-relay")[-1]], env, 0.2)
    assert ours < allowed


@pytest.mark.parametrize(
    ("program", "command", "limit"),
    [("svc", "pair", 0.5), ("svc", "status", 0.15), ("svc-relay", "status", 0.5)],
)
def test_a_command(desk: Shelf, program: str, command: str, limit: float) -> None:
    ours, allowed = measured([sys.executable, "-m", module(program)[-1], command], desk.env, limit)
    assert ours < allowed
