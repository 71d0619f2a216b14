"""Harness that types the console blocks of the documentation into terminals, in a fresh clone of the repository.

Uncommitted changes and untracked files are copied onto the clone. With `FRESH_WALK=1` the clone gets no venv: `make up`
has to create it.
"""

import os
import re
import shutil
import site
import subprocess
import sys
import tomllib
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path

import pexpect
from attrs import frozen

from tests.servers.program_process import FOREIGN, ROOT
from tests.support.ports import free_port

FRESH = os.environ.get("FRESH_WALK") == "1"
TIMEOUT = 600.0 if FRESH else 60.0  # s for anything that a user waits for; an installation takes its time
SIZE = (24, 80)  # the usual terminal
PROMPT = re.compile(r"@(\d+)@ ")
PACKAGES = ("svc_proto", "runtimes", "servers", "clients")
# Variables of our own interpreter and make must not reach the clone.
OURS = ("PYTHON", "MAKE", "MFLAGS", "ARGS", "COV", "VIRTUAL_ENV", "OPENAI_", "PYTEST", "HYPOTHESIS", *FOREIGN)
SCRIPT = "#!{python}\nimport sys\nfrom {module} import {name}\nsys.exit({name}())\n"
_ERASED = re.compile(r"[^\r\n]*\r\x1b\[K")  # a line of progress, and the order that erases it
_BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)


@frozen
class Line:
    """A typed line of a console block, and the first words, of two or more characters, of its output lines."""

    typed: str
    shows: list[str]


def lines_of(page: str) -> list[Line]:
    """Return the lines of all console blocks: `$ ` starts a typed line, `> ` continues it, any other line is output."""
    lines = list[Line]()
    for block in _BLOCK.findall(page):
        typed, shows = "", list[str]()
        for text in [*block.splitlines(), "$ "]:
            if text.startswith("$ "):
                lines += [Line(typed, shows)] if typed else []
                typed, shows = text[2:], []
            elif text.startswith("> "):
                typed += f"\n{text[2:]}"
            elif found := re.match(r"[A-Za-z]\w+", text):
                shows.append(found[0])
    return lines


def fresh_clone(into: Path, env: dict[str, str]) -> None:
    """Clone the repository to `into`, with the uncommitted changes and untracked files of the working tree.

    Unless `FRESH` is set, the clone also gets bytecode and a venv with the packages of this one.
    """
    (Path(env["HOME"]) / ".gitconfig").write_text("[safe]\n\tdirectory = *\n")
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(into)], env=env, check=True)
    changed = _files(env, "diff", "--name-only", "--no-renames", "HEAD")
    for file in [*changed, *_files(env, "ls-files", "--others", "--exclude-standard")]:
        (into / file).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / file).exists():
            shutil.copyfile(ROOT / file, into / file)
        else:
            (into / file).unlink(missing_ok=True)  # a file may be staged, and then deleted
    if not FRESH:
        _borrow_bytecode(into, env)
        _borrow_packages(into)


def environment(home: Path) -> dict[str, str]:
    """Create the folder `home` and return the environment of a user with it.

    Variables of the product and of this test run are removed. The XDG folders of configuration and cache stay those of
    the current user; this venv is removed from `PATH`.
    """
    home.mkdir(parents=True)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
    path = ":".join(place for place in kept["PATH"].split(":") if place != f"{sys.prefix}/bin")
    ours = {name: kept.get(f"XDG_{name}_HOME", f"{Path.home()}/{place}") for name, place in _XDG.items()}
    return {
        **kept,
        **{f"XDG_{name}_HOME": place for name, place in ours.items()},
        "HOME": str(home),
        "PATH": path,
        "PS1": "@$?@ ",
        "TERM": "xterm",
        "SHELL": "/bin/sh",
    }


class ShellTerminal:
    """A shell on a terminal of 80 x 24."""

    def __init__(self, folder: Path, env: dict[str, str]) -> None:
        shell = ["--norc", "--noprofile", "--noediting"]
        self.tty: pexpect.spawn[str] = pexpect.spawn(
            "/bin/bash", shell, cwd=str(folder), env=env, encoding="utf-8", timeout=TIMEOUT, dimensions=SIZE, echo=False
        )
        self.tty.expect(PROMPT)

    def type(self, text: str) -> None:
        """Type one line, without waiting for its end."""
        self.tty.sendline(text)

    def until(self, pattern: str) -> re.Match[str]:
        """Wait for output that matches the pattern and return the match."""
        self.tty.expect(pattern)
        found = self.tty.match
        assert isinstance(found, re.Match)
        return found

    def end(self) -> tuple[int, str]:
        """Wait for the next prompt; return the exit code and the output of the command before it.

        Raise AssertionError if the output has a traceback.
        """
        code = int(self.until(PROMPT.pattern)[1])
        shown = _ERASED.sub("", str(self.tty.before).replace("\r\n", "\n"))
        assert "Traceback" not in shown, shown
        return code, shown

    def run(self, text: str) -> str:
        """Run one line to its end and return its output; raise AssertionError if the exit code is not 0."""
        self.type(text)
        code, shown = self.end()
        assert code == 0, f"{text}: {code}\n{shown}"
        return shown

    def interrupt(self) -> int:
        self.tty.sendintr()
        return self.end()[0]

    def close(self) -> None:
        self.tty.close(force=True)


UP = "make up"
DEFAULTS = {"RELAY_PORT": 8767, "API_SERVER_PORT": 8642, "SVC_DASHBOARD_PORT": 9119}


class Walk:
    """A new user with a fresh clone; the methods type lines of documentation pages, and `left` has those still to come.

    Lines that begin with one of `not_here` are left out.
    """

    def __init__(self, folder: Path, pages: Sequence[str], not_here: Sequence[str], env: Mapping[str, str]) -> None:
        self.home, self.clone = folder / "home", folder / "clone"
        self.env = {**environment(self.home), **env}
        fresh_clone(self.clone, self.env)
        self.ports = {name: free_port() for name in DEFAULTS}
        (self.home / ".svc").mkdir(mode=0o700)
        (self.home / ".svc/.env").write_text("".join(f"{name}={port}\n" for name, port in self.ports.items()))
        # Text of the pages, and what replaces it in this walk.
        self.here = {str(DEFAULTS[name]): str(port) for name, port in self.ports.items()}
        self.here |= {"ws://127.0.0.1 ": f"ws://127.0.0.1:{self.ports['RELAY_PORT']} "}
        self.terminals = list[ShellTerminal]()
        self.servers = self.terminal()
        self.shell = self.terminal()
        self.device = self.terminal()
        text = "\n".join((ROOT / page).read_text() for page in pages)
        self.left = [line for line in lines_of(text) if not line.typed.startswith(tuple(not_here))]

    def terminal(self) -> ShellTerminal:
        self.terminals.append(ShellTerminal(self.clone, self.env))
        return self.terminals[-1]

    def activate(self, typed: str = ". .venv/bin/activate") -> None:
        """Run `typed`, which activates the clone's venv, in all terminals but the first, where the servers run."""
        for terminal in self.terminals[1:]:
            terminal.run(f"{typed}; PS1='@$?@ '")

    def next(self, beginning: str) -> Line:
        """Remove and return the next line, with replacements of `here`; fail if it does not begin with `beginning`."""
        line = self.left.pop(0)
        assert line.typed.startswith(beginning), f"the pages have {line.typed!r} where the walk has {beginning!r}"
        typed = line.typed
        for there, here in self.here.items():
            typed = typed.replace(there, here)
        return Line(typed, line.shows)

    def run(self, beginning: str) -> str:
        """Type the next line in the second terminal, check its output by `shown_in`, and return it."""
        line = self.next(beginning)
        return shown_in(self.shell.run(line.typed), line)

    def start(self, typed: str = UP) -> str:
        """Type the start command in the first terminal; return what it shows from the pairing code on.

        Raise AssertionError if the servers end, or the returned text does not fit on the terminal.
        """
        self.servers.type(typed)
        shown = self.servers.until(rf"(?s)^.*(?:Ctrl-C stops\.[^\r\n]*|{PROMPT.pattern})")[0].replace("\r\n", "\n")
        assert "Ctrl-C stops." in shown, shown  # else the servers have ended
        screen = shown[shown.index("Code  ") :]
        assert sum(1 + len(row) // 80 for row in screen.splitlines()) < 24
        return screen

    def close(self) -> None:
        for terminal in self.terminals:
            terminal.close()


def shown_in(printed: str, line: Line) -> str:
    """Return `printed`, after a check that some of its lines begin, in order, with the words of `line.shows`."""
    rows = iter(printed.splitlines())
    for word in line.shows:
        assert any(row.startswith(word) for row in rows), f"{line.typed!r} does not show {word!r}:\n{printed}"
    return printed


_XDG = {"CONFIG": ".config", "CACHE": ".cache"}


def _files(env: dict[str, str], command: str, *options: str) -> list[str]:
    words = ["git", command, "-z", *options]
    done = subprocess.run(words, cwd=ROOT, env=env, capture_output=True, text=True, check=True)
    return [file for file in done.stdout.split("\0") if file]


def _borrow_bytecode(into: Path, env: dict[str, str]) -> None:
    """Copy the bytecode of the packages `PACKAGES` to the clone, and the modification times of their sources."""
    for file in _files(env, "ls-files", "--cached", "--others", "--exclude-standard"):
        if file.endswith(".py") and file.startswith(PACKAGES) and (into / file).exists():
            shutil.copystat(ROOT / file, into / file)  # the modification time decides whether bytecode is up to date
    for package in PACKAGES:
        for cache in (ROOT / package).rglob("__pycache__"):
            shutil.copytree(cache, into / cache.relative_to(ROOT), ignore=shutil.ignore_patterns("*.pyc.*"))


def _borrow_packages(into: Path) -> None:
    """Create a venv in the clone, with scripts for the clone's programs.

    A `.pth` file lets it import the packages of this venv; stamp files make it look up to date to `make`.
    """
    folder = into / ".venv"
    venv.create(folder, symlinks=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "borrowed.pth").write_text("\n".join([str(into), *site.getsitepackages(), ""]))
    scripts = tomllib.loads((into / "pyproject.toml").read_text())["project"]["scripts"]
    for program, place in scripts.items():
        module, _, name = place.partition(":")
        file = folder / "bin" / program
        file.write_text(SCRIPT.format(python=folder / "bin/python", module=module, name=name))
        file.chmod(0o755)
    version = "{}.{}".format(*sys.version_info)
    for stamp in (f"python-{version}", "run"):
        (folder / f".installed-{stamp}").touch()
