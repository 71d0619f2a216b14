"""Harness that runs the commands as processes of their own."""

from __future__ import annotations

import json
import resource
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pexpect
from attrs import define

from tests.servers.program_process import ROOT, TIMEOUT, call, environment
from tests.support import forkserver
from tests.support.tables import read_table

BAD_INPUT = read_table("tests/clients/bad_input.tsv")
PROGRAMS = {
    "svc": "clients.commands.svc",
    "svc-pair": "clients.commands.pair",
    "svc-relay": "clients.commands.svc_relay",
}


@define
class CommandRun:
    """Exit code and output of a command that has ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def problem(self) -> str:
        """Return the text of the only output, an error line on standard error, without `error: `."""
        assert self.out == ""
        assert self.err.startswith("error: "), self.err
        assert self.err.count("\n") == 1, self.err
        return self.err.removeprefix("error: ").rstrip("\n")


def module(program: str) -> list[str]:
    return forkserver.python(PROGRAMS[program])


def bad_input(*programs: str) -> list[tuple[str, int, str]]:
    """Return the rows of `bad_input.tsv` for some programs: command line, exit code, and a part of the error.

    In the command line, `\\n` is the end of a line.
    """
    rows = [(row["line"].replace("\\n", "\n"), int(row["code"]), row["error"]) for row in BAD_INPUT]
    return [row for row in rows if row[0].split(" ", 1)[0] in programs]


def finish(terminal: pexpect.spawn[str]) -> tuple[int | None, str]:
    """Wait for the end of the program on a terminal; return the exit status and the remaining output."""
    terminal.expect(pexpect.EOF)
    shown = str(terminal.before)
    assert "Traceback" not in shown, shown
    terminal.close()
    status: int | None = terminal.exitstatus
    return status, shown


@define
class CommandHome:
    """A user's home folder for commands, and the port of a relay; port 9 stands for no relay."""

    home: Path
    port: int = 9  # a port without a listener
    runtime: str = "anyio"
    more: Mapping[str, str] = {}

    @property
    def env(self) -> dict[str, str]:
        settings = {"RELAY_PORT": str(self.port), "RELAY_HOST": "127.0.0.1", "SVC_RUNTIME": self.runtime}
        return environment(self.home, {**settings, "TERM": "xterm-256color", "SHELL": "/bin/sh", **self.more})

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.port}"

    def run(
        self, program: str, *arguments: str, text: str | None = None, env: Mapping[str, str] | None = None
    ) -> CommandRun:
        """Run a command to its end, without a terminal; assert that it prints no traceback."""
        done = forkserver.run(
            [*module(program), *arguments],
            cwd=ROOT,
            env={**self.env, **(env or {})},
            input=text or "",
            capture_output=True,
            text=True,
            timeout=TIMEOUT * 2,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return CommandRun(done.returncode, done.stdout, done.stderr)

    def run_full(self, program: str, *arguments: str, room: int = 0) -> CommandRun:
        """Run a command with standard output in a file; as on a full disk, no file can exceed `room` bytes."""
        # Coverage data could not be written either, which would add an error.
        unmeasured = {name: value for name, value in self.env.items() if not name.startswith("COVERAGE_")}
        with open(self.home / "full", "w+b") as full:
            done = subprocess.run(
                [*module(program), *arguments],
                cwd=ROOT,
                env={**unmeasured, "PYTHONDONTWRITEBYTECODE": "1"},
                stdin=subprocess.DEVNULL,
                stdout=full,
                stderr=subprocess.PIPE,
                timeout=TIMEOUT * 2,
                check=False,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (room, room)),
            )
            full.seek(0)
            return CommandRun(done.returncode, full.read().decode(), done.stderr.decode())

    def spawn(
        self, program: str, *arguments: str, env: Mapping[str, str] | None = None, size: tuple[int, int] = (24, 100)
    ) -> pexpect.spawn[str]:
        """Start a command on a terminal of its own, with `size` as lines and columns."""
        words = module(program)
        return forkserver.ForkedTerminal(
            words[0],
            [*words[1:], *arguments],
            cwd=str(ROOT),
            env={**self.env, **(env or {})},
            encoding="utf-8",
            codec_errors="replace",  # Ctrl-C discards unread output of the terminal, within a character, too
            timeout=TIMEOUT,
            dimensions=size,
        )


def code_for(linked: CommandHome, code: str = "Q7M2ZK") -> str:
    """Register a pairing code at the relay of a home, and return it."""
    assert call(linked.port, "POST", "/pairing/register", {"code": code}).status == 200
    return code


def paired(linked: CommandHome) -> str:
    """Pair the home's desktop, and return the token of its session."""
    assert linked.run("svc-relay", "pair", code_for(linked), "--remote", linked.url).code == 0
    token: str = linked.run("svc-relay", "status", "--json", "--reveal-tokens").json[linked.url]["token"]
    return token
