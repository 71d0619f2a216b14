"""Programs as child processes forked from a process that has imported them, which saves the start of Python.

`Popen`, `run` and `ForkedTerminal` have the interfaces of `subprocess` and `pexpect.spawn`. Where a fork would differ
from a new interpreter, for other commands than `python(...)`, with `FORKSERVER=0` and outside Linux, they start the
command as those do.
"""

import atexit
import ctypes
import gc
import importlib
import json
import os
import pkgutil
import pty
import runpy
import signal
import socket
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from fcntl import ioctl
from io import BufferedReader, BufferedWriter, FileIO, TextIOWrapper
from pathlib import Path
from typing import Any, BinaryIO, cast

import pexpect
from ptyprocess import PtyProcess  # type: ignore[import-untyped]  # it has no stubs

ROOT = Path(__file__).parents[2]
OPTIONS = ["-W", "error", "-m"]
OURS = ("svc_proto", "runtimes", "servers", "clients")
THEIRS = (  # modules that are imported late, on first use
    "anyio._backends._asyncio",
    "anyio._backends._trio",
    "encodings.idna",
    "sqlalchemy.dialects.sqlite.pysqlite",
    "sqlite3",
)
READ_AT_START = ("PYTHON", "LC_", "LANG", "COVERAGE", "COV_")
AS_USUAL = (None, None, None, -1, False, -1)  # groups, user, umask, session and process group of subprocess.Popen
UNBUFFERED = "PYTHONUNBUFFERED"  # handled here
SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER, linux/prctl.h: orphaned descendants become children of this process
MESSAGE = 1 << 18  # bytes; a request is one packet


def python(*words: str) -> list[str]:
    """Return the command that runs a module: `words` are the module's name and its arguments."""
    return [sys.executable, *OPTIONS, *words]


class Popen(subprocess.Popen[Any]):
    """`subprocess.Popen` that forks the server process where the result is the same, and else works as usual."""

    def _execute_child(
        self, args: Sequence[str], executable: object, preexec_fn: object, close_fds: object, *rest: Any
    ) -> None:
        pass_fds, cwd, env, *_, p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite = rest[:12]
        special = executable or preexec_fn or pass_fds or rest[13:] != AS_USUAL
        if special or list(args[:4]) != python() or not server.can(env):
            super()._execute_child(args, executable, preexec_fn, close_fds, *rest)  # type: ignore[misc]  # not declared
            return
        streams = [p2cread, c2pwrite, errwrite]
        self.pid = server.fork(args[4:], env, cwd, [own if own >= 0 else at for at, own in enumerate(streams)])
        self._child_created = True
        self._close_pipe_fds(  # type: ignore[attr-defined]  # not declared
            p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite
        )


def run(
    args: Sequence[str],
    *,
    input: str | bytes | None = None,  # noqa: A002  # as in subprocess.run
    timeout: float | None = None,
    **options: Any,
) -> subprocess.CompletedProcess[Any]:
    """Run a program like `subprocess.run` without `check`."""
    if options.pop("capture_output", False):
        options |= {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    if input is not None:
        options["stdin"] = subprocess.PIPE
    with Popen(args, **options) as process:
        try:
            out, err = process.communicate(input, timeout)
        except BaseException:
            process.kill()
            raise
        return subprocess.CompletedProcess(args, process.returncode, out, err)


class ForkedTerminal(pexpect.spawn):  # type: ignore[type-arg]  # no generic class when it runs
    """`pexpect.spawn` that forks the server process where the result is the same, and else works as usual."""

    def _spawnpty(self, args: Sequence[bytes], **options: Any) -> PtyProcess:
        env, cwd = options.get("env"), options.get("cwd")
        words = [word.decode() for word in args]
        if words[:4] != python() or options.get("preexec_fn") or not server.can(env):
            return super()._spawnpty(args, **options)  # type: ignore[misc]  # not declared
        ours, theirs = pty.openpty()
        rows, columns = options.get("dimensions") or (24, 80)
        termios.tcsetwinsize(theirs, (rows, columns))
        pid = server.fork(words[4:], env, cwd, [theirs] * 3, terminal=True)
        os.close(theirs)
        return PtyProcess(pid, ours)


class Server:
    """The server process with all imports: it starts on the first use, and ends with this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asked: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._able = sys.platform == "linux" and os.environ.get("FORKSERVER") != "0"

    def can(self, env: Mapping[str, str] | None) -> bool:
        """Report whether a fork can replace a new interpreter that starts with this environment."""
        return self._able and (env is None or read_at_start(env) == read_at_start(os.environ))

    def fork(
        self,
        words: Sequence[str],
        env: Mapping[str, str] | None,
        cwd: str | Path | None,
        streams: list[int],
        *,
        terminal: bool = False,
    ) -> int:
        """Start `python -m words` as a child of this process, and return its process id."""
        request = {
            "words": list(words),
            "env": dict(os.environ if env is None else env),
            "cwd": os.fspath(cwd or os.getcwd()),
            "terminal": terminal,
        }
        with self._lock:
            asked = self._asked or self._start()
            adopt(True)
            try:
                socket.send_fds(asked, [json.dumps(request).encode()], streams)
                return int(asked.recv(64))
            finally:
                adopt(False)

    def _start(self) -> socket.socket:
        self._asked, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            number = theirs.fileno()
            self._process = subprocess.Popen(
                python("tests.support.forkserver", str(number)), cwd=ROOT, pass_fds=[number]
            )
        atexit.register(self._stop)
        return self._asked

    def _stop(self) -> None:
        if self._asked is not None and self._process is not None:
            self._asked.close()
            self._process.wait()


def read_at_start(env: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that act before a program runs: of Python, locale and coverage; not PYTHONUNBUFFERED."""
    return {name: value for name, value in env.items() if name.startswith(READ_AT_START) and name != UNBUFFERED}


def adopt(wanted: bool) -> None:
    """Set whether orphaned descendants become children of this process. Raise OSError if the system refuses."""
    if ctypes.CDLL(None, use_errno=True).prctl(SUBREAPER, int(wanted), 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")


def serve(asked: socket.socket) -> str | None:
    """Fork for each request on the socket; return the program's module name in each fork, None at the socket's end."""
    for module in (*modules(), *THEIRS):
        importlib.import_module(module)
    gc.collect()
    gc.freeze()
    while True:
        message, streams, _, _ = socket.recv_fds(asked, MESSAGE, 3)
        if not message:
            return None
        ours, theirs = socket.socketpair()
        if between := os.fork():
            os.waitpid(between, 0)  # only then its child is a child of the requesting process
            asked.send(ours.recv(64))
            ours.send(b"!")
            for used in (ours.detach(), theirs.detach(), *streams):
                os.close(used)
            continue
        if pid := os.fork():
            theirs.send(b"%d" % pid)
            os._exit(0)
        ours.close()
        with theirs:
            theirs.recv(1)
        return become(json.loads(message), streams)


def modules() -> Iterator[str]:
    for name in OURS:
        for found in pkgutil.walk_packages(importlib.import_module(name).__path__, f"{name}."):
            yield found.name


def become(request: dict[str, Any], streams: list[int]) -> str:
    """Set up terminal, streams, folder, environment and arguments of a fork; return the name of the module to run."""
    if request["terminal"]:
        os.setsid()
        ioctl(streams[0], termios.TIOCSCTTY, 0)
    for number, received in enumerate(streams):
        os.dup2(received, number)
    for received in streams:
        os.close(received)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    time.tzset()
    raw = bool(request["env"].get(UNBUFFERED))
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        setattr(sys, name, stream(number, getattr(sys, name).errors, raw=raw))
    sys.argv = request["words"]
    return str(sys.argv[0])


def stream(number: int, errors: str, *, raw: bool) -> TextIOWrapper:
    """Open standard stream `number` as Python does at its start: `create_stdio` of its pylifecycle.c."""
    file = FileIO(number, "w" if number else "r", closefd=False)
    binary = BufferedReader(file) if not number else file if raw else BufferedWriter(file)
    lines = not raw and (number == 2 or file.isatty())
    return TextIOWrapper(cast(BinaryIO, binary), "utf-8", errors, line_buffering=lines, write_through=raw)


def main() -> None:
    """Serve on the socket whose descriptor is the first argument; a fork runs the requested program."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process ends with its socket
    with socket.socket(fileno=int(sys.argv[1])) as asked:
        program = serve(asked)
    if program is None:
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for module in (program, f"{program}.__main__"):
        sys.modules.pop(module, None)
    status = 0

    def hasten() -> None:
        """Flush the streams and exit without the cleanup of all imported modules, which would cost ten times the fork.

        If the flush fails, return instead: the interpreter reports the error.
        """
        with suppress(OSError, ValueError):  # the interpreter reports the error
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)

    atexit.register(hasten)  # registered first, so it runs last
    try:
        runpy.run_module(program, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
        raise
    except BaseException:
        atexit.unregister(hasten)
        raise


server = Server()

if __name__ == "__main__":
    main()
