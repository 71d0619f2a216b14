"""Benchmark of terminals: a program in a shell of the relay writes, a WebSocket reads."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack

from attrs import evolve

from bench.contestants import (
    RELAYS,
    ROOT,
    Contestant,
    Server,
    available,
    child,
    load_cpu,
    missing,
    pinned,
    placement,
    running,
    wait_healthy,
)
from bench.load import READ, Phone, new_code
from bench.measure import BenchError, Progress, Scale, rotated
from bench.pty_loop import TALKER
from bench.report import Table
from bench.rounds import BYTES, Rounds, Stretch, byte_rows, notes_on, take_round
from bench.talker import MARK
from bench.wire import frame

__all__ = ["terminal_section"]

FLOOR = "bare pty read loop"
MARKED = json.dumps({"": {"": MARK.decode()}}).encode()[-9:]  # end of a message after which nothing follows
ERROR, SHORT = b'"terminal.error"', 4096  # largest read, in bytes, that is searched for an error
PLAIN = (("RELAY_TERMINAL_TMUX", "0"),)  # tmux sends a screen, not the output of a program

UNDISTURBED = 0.1  # share of the time: a kernel worker on the reader's CPU passes a terminal's bytes on

Stream = Callable[[], Stretch]


def terminal_section(scale: Scale, progress: Progress, *, relays: tuple[Contestant, ...] = RELAYS) -> list[Table]:
    """Return the table of bytes a second that a program in a terminal can write. Ratios refer to the first relay."""
    size = scale.terminal_bytes
    with ExitStack() as stack:
        contestants: dict[str, tuple[Server, Stream]] = {}
        for one in available(relays):
            progress(f"terminal: starting {one.name}")
            server = stack.enter_context(running(evolve(one, variables=(*one.variables, *PLAIN))))
            wait_healthy(server.address)
            client = _TerminalClient(server, size)
            stack.callback(client.close)
            contestants[one.name] = server, client.stream
        loop = _PtyLoop(size, stack)
        contestants[FLOOR] = loop.server, loop.stream
        runs = {name: Rounds() for name in contestants}
        for turn in range(scale.load_rounds):
            for name in rotated(list(contestants), turn):
                progress(f"terminal: round {turn + 1} of {scale.load_rounds}, {name}")
                server, stream = contestants[name]
                with pinned():
                    take_round(runs[name], server, stream)
    notes = [
        *notes_on(runs, "bytes", undisturbed=UNDISTURBED),
        f"{size / 1e6:g} MB a round, in lines of 80 characters; the program that writes shares the CPU of the load",
        placement(),
        *missing(relays),
    ]
    title = "A terminal without tmux, over a WebSocket on loopback"
    return [Table("terminal", title, BYTES, byte_rows(runs), notes)]


class _TerminalClient(Phone):
    """A client with one terminal, in which the talker runs."""

    def __init__(self, server: Server, size: int) -> None:
        super().__init__(server.address, "bench-desk", new_code(server.address))
        self._size = size
        self._room = memoryview(bytearray(READ))
        try:
            self._say("terminal.attach", session_name="bench", shell="/bin/sh", cols=80, rows=24)
            self._say("terminal.input", data=f"exec {sys.executable} -I {TALKER} {size} {load_cpu()}\r")
            self._until_mark()
        except BaseException:
            self.close()
            raise

    def stream(self) -> Stretch:
        """Let the talker write, and read until its mark; return the bytes and times."""
        cpu, begun = time.process_time(), time.perf_counter()
        self._say("terminal.input", data="\r")
        came = self._until_mark()
        elapsed = time.perf_counter() - begun
        if came < self._size:
            raise BenchError(f"a terminal gave {came} of {self._size} bytes")
        return Stretch(self._size, elapsed, time.process_time() - cpu)

    def _say(self, kind: str, **payload: object) -> None:
        message = {"channel": "terminal", "type": kind, "id": kind, "payload": payload}
        self.sock.sendall(frame(json.dumps(message).encode()))

    def _until_mark(self) -> int:
        """Read up to the mark; return the number of bytes received, frame heads included."""
        came, room, last = 0, self._room, b""
        while True:
            n = self.sock.recv_into(room)
            if not n:
                raise BenchError("the relay closed the terminal's socket")
            came += n
            last = (last + bytes(room[max(n - len(MARKED), 0) : n]))[-len(MARKED) :]
            if last == MARKED:
                return came
            if n < SHORT and ERROR in bytes(room[:n]):
                raise BenchError(f"no terminal: {bytes(room[:n])!r}")


class _PtyLoop:
    """`bench.pty_loop` in a process on the servers' CPU, as a contestant."""

    def __init__(self, size: int, stack: ExitStack) -> None:
        self._size = size
        argv = [sys.executable, "-m", "bench.pty_loop", str(size), str(load_cpu())]
        process = stack.enter_context(child(argv, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE))
        assert process.stdin is not None  # opened as pipes above
        assert process.stdout is not None
        self._stdin, self._stdout = process.stdin, process.stdout
        self.server = Server(Contestant(FLOOR, ()), process.pid, ("", 0))
        if self._stdout.readline() != "ready\n":
            raise BenchError("the bare pty loop did not start")

    def stream(self) -> Stretch:
        """Let the talker write, and wait until all is read; return the bytes and times."""
        begun = time.perf_counter()
        self._stdin.write("\n")
        self._stdin.flush()
        came = int(self._stdout.readline() or 0)
        elapsed = time.perf_counter() - begun
        if came < self._size:
            raise BenchError(f"a bare pty gave {came} of {self._size} bytes")
        return Stretch(self._size, elapsed, 0.0)
