"""Tests of behaviour that commands share: help, unknown options, absent servers, invalid addresses, and a full disk."""

import re
import shlex
import subprocess
import sys

import click
import pytest

from clients.commands import pair, svc, svc_relay
from clients.demo import main as demo
from clients.gateway.__main__ import main as gateway
from clients.phone.__main__ import main as phone
from runtimes.files.installed_version import installed_version
from servers.__main__ import main as servers
from servers.api import main as api
from servers.dashboard import main as dashboard
from servers.relay import main as relay
from tests.clients.commands.command_process import CommandHome, bad_input, paired
from tests.servers.program_process import ROOT
from tests.support.cli_page import commands

DOWN = "ws://127.0.0.1:9"
CALL = ("--remote", DOWN, "--token", "t")  # no relay runs there
COMMANDS: dict[str, tuple[str, ...]] = {  # each with its minimal arguments
    "svc pair": (),
    "svc-pair": (),
    "svc phone": (),
    "svc key rotate": (),
    "svc relay insecure-api-key": (),
    "svc-relay pair": ("Q7M2ZK", "--remote", DOWN),
    "svc-relay status": (),
    "svc-relay devices": CALL,
    "svc-relay devices revoke": ("abcdefgh", *CALL),
    "svc-relay devices extend": ("abcdefgh", *CALL),
    "svc-relay shell": CALL,
    "svc-relay sessions": CALL,
    "svc-relay chat": ("hello", "--api-url", "http://127.0.0.1:9"),
    "svc-relay notifications": CALL,
    "svc-relay media get": ("abcdefgh", *CALL),
    "svc-relay voice transcribe": ("README.md", *CALL),
    "svc-relay voice say": ("hello", *CALL),
    "svc-relay voice config": CALL,
    "svc-relay voice talk": CALL,
    "svc-relay bridge": ("GET", "/ping", *CALL),
    "svc-relay doctor": ("--remote", DOWN),
    "svc-relay insecure-api-key": (),
}
LOCAL = ("svc pair", "svc-pair", "svc key rotate", "svc-relay status")  # work without a relay
REPORTS = ("svc-relay doctor",)  # reports problems on standard output
START = re.compile(r"^ +[A-Z_]+=|(^|[ |])(svc|svc-relay|python -m \S+)\b")
RUNS = [command for command in COMMANDS if command != "svc-relay status"]  # on a loop


def test_each_help_has_an_example() -> None:
    programs = {"svc": svc.main, "svc-relay": svc_relay.main, "demo": demo, "gateway": gateway, "phone": phone}
    programs |= {"relay": relay, "api": api, "dashboard": dashboard}
    found = dict(pair for name, command in programs.items() for pair in commands(command, name))
    assert set(found) >= set(COMMANDS) - {"svc-pair"}  # which is `svc pair`
    assert [name for name, command in found.items() if "\nExample" not in (command.epilog or "")] == []
    for name, command in found.items():
        shown = command.get_help(click.Context(command, info_name=name, terminal_width=80))
        assert [line for line in shown.splitlines() if len(line) > 80] == []
        examples = re.search(r"\n  Examples?:\n((?:    .*\n?)+)", shown)
        assert examples, name
        for line in examples[1].splitlines():  # each can be pasted into a shell
            words = shlex.split(line, comments=True)
            assert not words or START.search(line), f"{name}: {line}"
            assert "  " not in line.strip().partition(" # ")[0], f"explanation without #: {line}"


@pytest.mark.parametrize(
    ("name", "program"),
    [
        *(("svc", svc.main), ("svc-relay", svc_relay.main), ("svc-pair", pair.main)),
        *(("svc-relay", program) for program in (servers, relay, api, dashboard, phone)),
    ],
)
def test_each_program_prints_its_version(name: str, program: click.Command, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        program.main(["--version"], prog_name=name)
    assert left.value.code == 0
    assert capsys.readouterr().out == f"{name} {installed_version()}\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_an_unknown_option(lonely: CommandHome, command: str) -> None:
    done = lonely.run(*command.split(), *COMMANDS[command], "--bogus")
    assert done.code == 2
    assert done.problem.startswith("No such option '--bogus'")
    assert done.problem.endswith(f"(see {command} --help)")


@pytest.mark.parametrize("command", RUNS)
def test_an_unknown_loop(lonely: CommandHome, command: str) -> None:
    done = lonely.run(*command.split(), *COMMANDS[command], "--runtime", "twisted")
    assert done.code == 2
    assert "no runtime 'twisted': choose one of anyio, " in done.problem


@pytest.mark.parametrize("command", [command for command in COMMANDS if command not in (*LOCAL, *REPORTS)])
def test_an_absent_server(lonely: CommandHome, command: str) -> None:
    done = lonely.run(*command.split(), *COMMANDS[command])
    assert done.code == 1
    assert "cannot be reached: connection refused" in done.problem
    assert "; " in done.problem, "what to do about it is missing"


@pytest.mark.parametrize("url", ["127.0.0.1", "ws://", "ws://a b", "ws://h:99999", "ws://u:p@h"])
def test_invalid_addresses(lonely: CommandHome, url: str) -> None:
    done = lonely.run("svc-relay", "devices", "--remote", url, "--token", "t")
    assert done.code == 2
    assert done.problem.startswith("--remote must ")
    assert "p@h" not in done.problem


@pytest.mark.parametrize(("line", "code", "says"), bad_input("svc", "svc-relay"))
def test_bad_input(lonely: CommandHome, line: str, code: int, says: str) -> None:
    done = lonely.run(*shlex.split(line), env={"PATH": "/nowhere"})
    assert done.code == code
    assert says in done.problem


@pytest.mark.parametrize("command", COMMANDS)
def test_a_full_disk(lonely: CommandHome, command: str) -> None:
    done = lonely.run_full(*command.split(), "--help")
    assert (done.code, done.problem) == (1, "the output cannot be written: file too large")


def test_a_file_larger_than_the_disk(linked: CommandHome) -> None:
    paired(linked)
    file = linked.home / "svc" / "workspace" / "a.bin"
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(bytes(50_000))
    target = linked.home / "b.bin"
    done = linked.run_full("svc-relay", "media", "get", str(file), "-o", str(target), room=10_000)
    assert (done.code, done.problem) == (1, f"{target} cannot be written: file too large")
    assert not [path for path in linked.home.iterdir() if "b.bin" in path.name]


DROPPED = """
import signal, threading, weakref, click
from clients.commands.cli import SingleCommand

@click.command(cls=SingleCommand)
def main():
    target = threading.Event()
    reference = weakref.ref(target, lambda _: signal.raise_signal(signal.SIGINT))
    del target
    threading.Event().wait(20)
    print("not interrupted")
main()
"""


def test_ctrl_c_in_a_callback_of_the_garbage_collector_ends_the_command() -> None:
    done = subprocess.run([sys.executable, "-c", DROPPED], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr.strip()) == (130, "", "")
