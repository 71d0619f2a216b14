"""Child processes of tests: one spawned by a core with its output, and checks for leftover ones."""

import os
import re
import select
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from svc_proto.commands import Send, Spawn, Spawned, TerminalSize
from svc_proto.facts import ChannelId, Closed, Fact, OperationId, Received
from tests.runtimes.scripted_core import TIMEOUT, RunningCore, running

SIZE = TerminalSize(80, 24)
CH, ERR = ChannelId(101), ChannelId(103)
OP = OperationId(1)


def children() -> list[str]:
    """Return the children of this process as `pid name`, with ` zombie` behind those that have exited."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            pid, name, state, parent = re.match(r"(\d+) \((.*)\) (\S) (\d+)", path.read_text()).groups()  # type: ignore[union-attr]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(parent) == os.getpid():
            found.append(f"{pid} {name}{' zombie' if state == 'Z' else ''}")
    return found


def wait_gone(pid: int) -> None:
    """Wait until a process has exited, which need not be our child. Raise AssertionError after `TIMEOUT` seconds."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        ready, _, _ = select.select([fd], [], [], TIMEOUT)
        assert ready, f"process {pid} still runs"
    finally:
        os.close(fd)


class SpawnedChild:
    """A child that a running core has spawned, and its output."""

    def __init__(
        self, live: RunningCore, *argv: str, shell: str | None = None, terminal: bool = False, **more: object
    ) -> None:
        self.live = live
        self.data = b""
        self.errors = b""
        self.facts: list[Fact] = []
        command = ("/bin/sh", "-c", shell) if shell is not None else argv
        spawn = Spawn(OP, CH, command, terminal=SIZE if terminal else None, **more)  # type: ignore[arg-type]
        spawned = live.done(spawn)
        assert isinstance(spawned, Spawned)
        self.pid = spawned.pid

    def step(self) -> Fact:
        fact = self.live.fact()
        self.facts.append(fact)
        if isinstance(fact, Received) and fact.ch == CH:
            self.data += fact.data
        elif isinstance(fact, Received) and fact.ch == ERR:
            self.errors += fact.data
        return fact

    def until(self, wanted: bytes) -> None:
        while wanted not in self.data:
            self.step()

    def closed(self, ch: ChannelId = CH) -> Closed:
        while True:
            fact = self.step()
            if isinstance(fact, Closed) and fact.ch == ch:
                return fact

    def send(self, data: bytes) -> None:
        self.live.order(Send(CH, data))


@contextmanager
def spawned(runtime: str, *argv: str, **options: Any) -> Iterator[tuple[RunningCore, SpawnedChild]]:
    """Run a scripted core that has spawned one child."""
    with running(runtime) as live:
        yield live, SpawnedChild(live, *argv, **options)
