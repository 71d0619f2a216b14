"""Hosts of the `doctor` suite: network and mount namespaces with a service home, servers and a model server."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from attrs import field, frozen

from tests.conformance.external_tools import Unavailable
from tests.servers.program_process import ROOT, SYSTEM_PATH, environment

__all__ = ["MODEL", "NAME", "DoctorHost", "DoctorReport", "HostSetup", "hosts", "settings_with"]

WITHIN = 90.0  # s for a command or a start on a busy machine
MODEL = "http://127.0.0.1:11434/{}/v1"  # of `doctor_model`
NAME = "home.example"  # of the host, for its public addresses
SETTINGS = {
    "API_SERVER_KEY": "sk-0123456789abcdefghijklmnop",
    "SVC_MODEL_BASE_URL": MODEL.format("well"),
    "SVC_MODEL": "llama3.2",
}
READY = {  # usual: the last line of a start
    "servers.api": "\napi: ",
    "servers.relay": "\nrelay: ",
    "tests.conformance.doctor_model": "ready",
}


@frozen(kw_only=True)
class HostSetup:
    """Set-up of a host: interfaces with addresses, settings of its `.env`, servers, and shell commands before these."""

    interfaces: tuple[tuple[str, str], ...] = (("wlan0", "192.168.1.20/24"),)
    gateway: str = "192.168.1.1"  # empty: no default route
    settings: Mapping[str, str] = field(factory=lambda: dict(SETTINGS))
    servers: tuple[str, ...] = ("servers",)
    commands: tuple[str, ...] = ()
    env: Mapping[str, str] = field(factory=dict)


@frozen
class DoctorReport:
    """Result of `svc doctor --json`: the codes of its errors and warnings, their texts, and the exit code.

    If it printed no JSON, `codes` is empty and `output` is the end of what it printed.
    """

    codes: frozenset[str]
    status: int
    output: str


def settings_with(**changes: str | None) -> dict[str, str]:
    """Return the usual settings of a host with changes; None removes a setting."""
    return {name: value for name, value in {**SETTINGS, **changes}.items() if value is not None}


class DoctorHost:
    """A host in namespaces of its own while it runs; `close` ends all processes in its network namespace."""

    def __init__(self, folder: Path, setup: HostSetup) -> None:
        self.setup = setup
        self.folder = folder
        self._programs: list[subprocess.Popen[bytes]] = []
        spaces = ["unshare", *(["-n"] if os.geteuid() == 0 else ["-rn"]), "-m", "sh", "-c", "echo; exec sleep 3600"]
        self._holder = subprocess.Popen(spaces, stdout=subprocess.PIPE)
        _stream(self._holder).readline()
        self._enter = ["nsenter", "-t", str(self._holder.pid), "-n", "-m", *([] if os.geteuid() == 0 else ["-U"]), "--"]
        (folder / "svc").mkdir(0o700, parents=True)
        self.home = Path(f"/proc/{self._holder.pid}/root") / f"{folder}".lstrip("/") / "svc"  # with its mounts

    def boot(self) -> None:
        """Configure the network, run the shell commands, write the settings, and start model server and servers."""
        setup = self.setup
        self.shell("ip link set lo up")
        for name, address in setup.interfaces:
            self.shell(f"ip link add {name} type veth peer name {name}p; ip link set {name}p up; ip link set {name} up")
            self.shell(f"ip addr add {address} dev {name} {'nodad' if ':' in address else ''}")
        if setup.gateway and setup.interfaces:
            self.shell(f"ip route add default via {setup.gateway}")
        for command in setup.commands:
            self.shell(command)
        self.write_settings(setup.settings)
        self.start("tests.conformance.doctor_model")
        for module in setup.servers:
            self.start(module)

    def write_settings(self, settings: Mapping[str, str], more: str = "") -> None:
        """Write the settings, and the text `more` behind them, to the `.env` of the home."""
        lines = [f"{name}={value}\n" for name, value in settings.items()]
        (self.home / ".env").write_text("".join(lines) + more)
        (self.home / ".env").chmod(0o600)

    def shell(self, command: str) -> None:
        """Run a shell command on this host. Raise RuntimeError if it fails."""
        done = self._run("sh", "-ec", command)
        if done.returncode != 0:
            raise RuntimeError(f"{command}: {done.stderr.decode('utf-8', 'replace')[-300:]}")

    def python(self, *words: str) -> list[str]:
        """Return the command line that runs a module with `words` on this host."""
        return [*self._enter, sys.executable, "-m", *words]

    def start(self, *words: str, until: str = "", env: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
        """Start a module with `words` on this host, and wait for the text `until` in its output.

        Raise RuntimeError if it ends or takes too long.
        """
        path = self.folder / f"{words[0]}.{len(self._programs)}.log"
        until = until or READY.get(words[0], "To pair a phone")
        with path.open("wb") as log:
            given = {**self._env(), **(env or {})}
            program = subprocess.Popen(
                self.python(*words), cwd=ROOT, env=given, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        self._programs.append(program)
        end = time.monotonic() + WITHIN
        while until not in "\n" + path.read_text("utf-8", "replace"):
            if program.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"{words[0]} does not start: {path.read_text('utf-8', 'replace')[-600:]}")
            time.sleep(0.05)
        return program

    def end_last(self, signum: signal.Signals = signal.SIGKILL) -> None:
        """Send a signal to the program that was started last; after SIGKILL, wait for its end."""
        self._programs[-1].send_signal(signum)
        if signum == signal.SIGKILL:
            self._programs.pop().wait()

    def svc(self, *words: str) -> subprocess.CompletedProcess[bytes]:
        """Run `svc` with `words` on this host, and return its result."""
        return self._run(*self.python("clients.commands.svc", *words)[len(self._enter) :])

    def doctor(self, *options: str) -> DoctorReport:
        """Run `svc doctor --json` with `options`, and return its report."""
        done = self.svc("doctor", "--json", *options)
        output = (done.stdout + done.stderr).decode("utf-8", "replace")
        try:
            checks = json.loads(done.stdout)["checks"]
        except ValueError:
            return DoctorReport(frozenset(), done.returncode, output[-600:])
        codes = frozenset(check["code"] for check in checks if not check["ok"])
        return DoctorReport(codes, done.returncode, "; ".join(str(c["found"]) for c in checks if not c["ok"]))

    def close(self) -> None:
        """End all processes of this host, and delete its folder."""
        own = os.readlink(f"/proc/{self._holder.pid}/ns/net")
        for pid in (int(name) for name in os.listdir("/proc") if name.isdecimal()):
            with suppress(OSError):
                if os.readlink(f"/proc/{pid}/ns/net") == own:
                    os.kill(pid, signal.SIGKILL)
        for program in (*self._programs, self._holder):
            program.wait()
        with suppress(OSError):
            shutil.rmtree(self.folder)

    def _run(self, *words: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [*self._enter, *words], cwd=ROOT, env=self._env(), capture_output=True, timeout=WITHIN, check=False
        )

    def _env(self) -> dict[str, str]:
        env = environment(self.folder, {name: text.format(folder=self.folder) for name, text in self.setup.env.items()})
        trusted = {"SSL_CERT_FILE": str(self.folder / "cert.pem")}  # of a proxy on this host
        return {**env, "PATH": f"{env['PATH']}:{SYSTEM_PATH}", "FOLDER": str(self.folder), **trusted}


@contextmanager
def hosts(base: Path) -> Iterator[HostFactory]:
    """Yield a factory of hosts, and close its last host at the end.

    Raise Unavailable if a program is missing or namespaces are forbidden.
    """
    for program in ("unshare", "nsenter", "ip"):
        if shutil.which(program, path=f"{os.environ.get('PATH', '')}:{SYSTEM_PATH}") is None:
            raise Unavailable(f"{program} is not installed")
    factory = HostFactory(base)
    try:
        namespace = "-n" if os.geteuid() == 0 else "-rn"
        probe = ["unshare", namespace, "-m", "ip", "link", "add", "name", "wlan0", "type", "veth"]
        if subprocess.run(probe, capture_output=True, check=False).returncode != 0:
            raise Unavailable("this host permits no network namespaces")
        yield factory
    finally:
        factory.close()


class HostFactory:
    """Factory of hosts, of which one runs at a time; for the same set-up object, the running host is returned."""

    def __init__(self, base: Path) -> None:
        self._base = base
        self._count = 0
        self._host: DoctorHost | None = None

    def host(self, setup: HostSetup) -> DoctorHost:
        """Return a host with this set-up: the running one with its settings written anew, or a new one."""
        if self._host is not None and self._host.setup is setup:
            self._host.write_settings(setup.settings)
            return self._host
        self.close()
        self._count += 1
        self._host = DoctorHost(self._base / f"host-{self._count}", setup)
        self._host.boot()
        return self._host

    def close(self) -> None:
        if self._host is not None:
            self._host.close()
            self._host = None


def _stream(program: subprocess.Popen[bytes]) -> IO[bytes]:
    assert program.stdout is not None
    return program.stdout
