"""The compared servers, each in a process of its own on a free port of 127.0.0.1."""

from __future__ import annotations

import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPException
from importlib.util import find_spec
from pathlib import Path
from typing import IO

from attrs import frozen

from bench.measure import BenchError

__all__ = [
    "BRIDGES",
    "NULL",
    "PEERS",
    "RELAYS",
    "ROOT",
    "Contestant",
    "Server",
    "available",
    "child",
    "load_cpu",
    "missing",
    "pinned",
    "placement",
    "room_for",
    "running",
    "wait_healthy",
]

START_WITHIN = 30.0  # s
STOP_WITHIN = 10.0  # s
TICKS = os.sysconf("SC_CLK_TCK")  # of /proc/PID/stat, per second
SPARE = 100  # descriptors for other purposes, in this process and in a server
PAGE = os.sysconf("SC_PAGE_SIZE")  # bytes
ROOT = Path(__file__).resolve().parent.parent
ADDRESS = re.compile(r"http://127\.0\.0\.1:(\d+)")

Address = tuple[str, int]
CPUS = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []


@frozen
class Contestant:
    """A server: name in tables, module and arguments, required packages, environment variables."""

    name: str
    arguments: tuple[str, ...]
    needs: tuple[str, ...] = ()
    variables: tuple[tuple[str, str], ...] = ()


def _relay(runtime: str, *needs: str) -> Contestant:
    arguments = ("servers.relay", "--host", "127.0.0.1", "--port", "0", "--log-level", "ERROR", "--runtime", runtime)
    return Contestant(f"relay, {runtime}", arguments, needs)


def _peer(name: str, loop: str, *needs: str) -> Contestant:
    return Contestant(f"bare {name}, {loop}", (f"bench.peers_{needs[0]}", loop), needs)


RELAYS = (_relay("asyncio"), _relay("uvloop", "uvloop"), _relay("trio", "trio"), _relay("curio", "curio"))
PEERS = (
    _peer("aiohttp", "asyncio", "aiohttp"),
    _peer("aiohttp", "uvloop", "aiohttp", "uvloop"),
    _peer("uvicorn h11", "asyncio", "uvicorn"),
    _peer("uvicorn h11", "uvloop", "uvicorn", "uvloop"),
)
BRIDGES = (
    Contestant("bare aiohttp bridge, asyncio", ("bench.peers_bridge", "asyncio"), ("aiohttp",)),
    Contestant("bare aiohttp bridge, uvloop", ("bench.peers_bridge", "uvloop"), ("aiohttp", "uvloop")),
)
NULL = Contestant("null core, asyncio", ("bench.peers_null", "asyncio"))


def available(contestants: tuple[Contestant, ...]) -> list[Contestant]:
    """Return the contestants whose required packages are installed."""
    return [one for one in contestants if all(find_spec(package) is not None for package in one.needs)]


def missing(contestants: tuple[Contestant, ...]) -> list[str]:
    """Return a line for each contestant that lacks a required package."""
    return [f"left out, not installed: {one.name}" for one in contestants if not available((one,))]


def placement() -> str:
    """Return a line on the CPUs of the servers and of the load: their numbers, if there are several CPUs."""
    if len(CPUS) > 1:
        return f"servers run on CPU {CPUS[0]}, the load on CPU {CPUS[-1]}"
    return "servers and load share a CPU, or go where the system puts them"


@frozen
class Server:
    """A running server, its process and its address."""

    contestant: Contestant
    pid: int
    address: Address

    def cpu(self) -> float:
        """Return the server's CPU seconds so far, in user and kernel mode, all threads."""
        fields = Path(f"/proc/{self.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS  # utime and stime, proc_pid_stat(5)

    def waited(self) -> float:
        """Return the seconds for which the server's first thread was ready without a CPU.

        0.0 where the system does not count them.
        """
        try:
            return int(Path(f"/proc/{self.pid}/schedstat").read_text(encoding="ascii").split()[1]) / 1e9
        except OSError:
            return 0.0

    def others(self) -> float:
        """Return the CPU seconds of other processes on the servers' CPU so far; monotonic time with a single CPU.

        The difference of two values limits how long a server has waited for others in between.
        """
        if len(CPUS) < 2:
            return time.monotonic()
        name = f"cpu{CPUS[0]} "
        lines = Path("/proc/stat").read_text(encoding="ascii").splitlines()
        user, nice, system = next(line.split() for line in lines if line.startswith(name))[1:4]  # proc_stat(5)
        return (int(user) + int(nice) + int(system)) / TICKS - self.cpu()

    def resident(self) -> int:
        """Return the bytes of the server's resident memory."""
        return int(Path(f"/proc/{self.pid}/statm").read_text(encoding="ascii").split()[1]) * PAGE


@contextmanager
def running(one: Contestant, *, beside_load: bool = False) -> Iterator[Server]:
    """Start a server, yield it, and end it. Raises `BenchError` if it does not start.

    A server that is part of the load runs `beside_load`, on the load's CPU.
    """
    with tempfile.TemporaryDirectory(prefix="svc-bench-") as folder:
        home = os.path.join(folder, "svc")  # voice creates another folder beside it
        os.mkdir(home)
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("RELAY_", "SVC_"))}
        environment |= {"SVC_HOME": home, "RELAY_SESSIONS_FILE": "", "PYTHONPATH": str(ROOT), **dict(one.variables)}
        with child(
            [sys.executable, "-m", *one.arguments], cwd=home, env=environment, stderr=subprocess.PIPE
        ) as process:
            assert process.stderr is not None  # opened as a pipe above
            if beside_load:
                _pin(process.pid, CPUS[-1:])
            said: deque[str] = deque(maxlen=20)
            yield Server(one, process.pid, _address(process, process.stderr, said, one.name))


@contextmanager
def child(
    argv: Sequence[str],
    *,
    cwd: str | Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: int | None = None,
    stdout: int | None = None,
    stderr: int | None = None,
) -> Iterator[subprocess.Popen[str]]:
    """Start a program on the servers' CPU, and end it."""
    process = subprocess.Popen(argv, cwd=cwd, env=env, stdin=stdin, stdout=stdout, stderr=stderr, text=True)
    try:
        _pin(process.pid, CPUS[:1])
        yield process
    finally:
        _end(process)
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()


@contextmanager
def pinned() -> Iterator[None]:
    """Keep this process on the load's CPU during the context, if there are several CPUs."""
    _pin(0, CPUS[-1:])
    try:
        yield
    finally:
        _pin(0, CPUS)


def load_cpu() -> int:
    """Return the CPU of the load; -1 if there is only one CPU."""
    return CPUS[-1] if len(CPUS) > 1 else -1


@contextmanager
def room_for(descriptors: int) -> Iterator[int]:
    """Raise this process's limit on open descriptors, which servers inherit; yield how many of `descriptors` fit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = descriptors + SPARE
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    else:
        most = wanted
    try:
        yield most - SPARE
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def wait_healthy(address: Address, within: float = START_WITHIN) -> None:
    """Wait until `/health` is answered with 200. Raises `BenchError` after `within` seconds."""
    deadline = time.monotonic() + within
    while True:
        conn = HTTPConnection(*address, timeout=within)
        try:
            conn.request("GET", "/health")
            if conn.getresponse().status == 200:
                return
        except (OSError, HTTPException) as error:
            if time.monotonic() > deadline:
                raise BenchError(f"no /health at port {address[1]}: {error}") from error
        finally:
            conn.close()
        if time.monotonic() > deadline:
            raise BenchError(f"/health at port {address[1]} is not answered with 200")
        time.sleep(0.001)


def _pin(pid: int, cpus: list[int]) -> None:
    """Pin a process to CPUs, if there are several; ignore a process that has ended."""
    if len(CPUS) > 1:
        with suppress(ProcessLookupError):  # ended already, which its starter will detect
            os.sched_setaffinity(pid, cpus)


def _address(process: subprocess.Popen[str], stderr: IO[str], said: deque[str], name: str) -> Address:
    alarm = threading.Timer(START_WITHIN, process.kill)
    alarm.start()
    try:
        for line in stderr:
            said.append(line)
            found = ADDRESS.search(line)
            if found is not None:
                _drain(stderr, said.append)
                return "127.0.0.1", int(found.group(1))
    finally:
        alarm.cancel()
    stderr.close()
    raise BenchError(f"{name} did not start: {''.join(said).strip() or 'it said nothing'}")


def _drain(stderr: IO[str], keep: Callable[[str], None]) -> None:
    """Read the rest of a server's error output in a thread, so that the server never blocks on a full pipe."""

    def drain() -> None:
        with stderr:
            for line in stderr:
                keep(line)

    threading.Thread(target=drain, daemon=True).start()


def _end(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(STOP_WITHIN)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
