"""Tests of the startup cost of commands, by the modules that they import.

Times are measured by `python -m bench --section starts`.
"""

import subprocess
import sys

import pytest

from tests.clients.commands.command_process import CommandHome
from tests.servers.program_process import ROOT

DEAR = ["asyncio", "attr", "encodings.idna", "http.client", "logging", "rich", "socket", "ssl", "subprocess"]
DEAR += ["svc_proto.engine"]
CHECKED = ("attr", "socket")  # by the health checks of `svc status`
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


def test_help_does_not_load_the_runtime(lonely: CommandHome) -> None:
    """Printing the help of all subcommands imports none of the expensive modules of the runtime."""
    run = [sys.executable, "-c", EVERY_HELP, *DEAR, "servers.launch", "runtimes.host.host"]
    done = subprocess.run(run, cwd=ROOT, env=lonely.env, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert int(done.stdout) > 45


COMPLETION = {"_IT_COMPLETE": "bash_complete", "COMP_WORDS": "svc-relay dev", "COMP_CWORD": "1"}
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
        ("clients.commands.svc --help", 16),
        ("clients.commands.svc logs --help", 20),
        ("clients.commands.svc status", 40),
        ("clients.commands.svc_relay --help", 16),
        ("clients.commands.svc_relay voice talk --help", 24),
        ("clients.commands.svc_relay", 20),  # completes `svc-relay dev`
        ("servers.__main__ --help", 12),
    ],
)
def test_number_of_loaded_modules(linked: CommandHome, words: str, most: int) -> None:
    """A command imports at most `most` of this project's modules and none of `DEAR`; `status` may import `CHECKED`."""
    dear = [name for name in DEAR if name not in CHECKED or "status" not in words]
    completion = {} if " " in words else COMPLETION
    run = [sys.executable, "-c", f"DEAR = {dear}\n{LOADED}", *words.split()]
    done = subprocess.run(run, cwd=ROOT, env={**linked.env, **completion}, capture_output=True, text=True, check=True)
    count, loaded = done.stdout.splitlines()[-1].split(" ", 1)
    assert loaded == "[]"
    assert int(count) <= most
