"""Tests that trio's callbacks and tasks run on the loop that runs a core, and that a core stops beside a busy task."""

from __future__ import annotations

import socket
import threading

import trio

from runtimes.host.host import Program
from runtimes.loops.waker import HostHandle
from runtimes.run import run
from tests.runtimes.scripted_core import ScriptCore


def test_trio_callbacks_run() -> None:
    ours, theirs = socket.socketpair()
    told: list[str] = []
    handle = HostHandle()
    names = {"soon", "later", "readable", "from a thread", "a task"}

    def note(name: str) -> None:
        told.append(name)
        if set(told) == names:
            handle.stop(0.0)

    async def wait() -> None:
        await rung.wait()
        note("a task")

    async def read() -> None:
        await trio.lowlevel.wait_readable(ours)
        note("readable")

    async def sleep() -> None:
        await trio.sleep(0.001)
        note("later")
        rung.set()

    def ready() -> None:
        token = trio.lowlevel.current_trio_token()
        token.run_sync_soon(note, "soon")
        for task in (wait, read, sleep):
            trio.lowlevel.spawn_system_task(task)
        theirs.send(b"!")
        threading.Thread(target=token.run_sync_soon, args=(note, "from a thread")).start()

    rung = trio.Event()
    with ours, theirs:
        assert run(Program(core=ScriptCore(), on_ready=ready), "trio", handle=handle, signals=False) == 0
    assert set(told) == names


def test_sockets_are_served_while_trio_is_busy() -> None:
    handle = HostHandle()
    turns: list[int] = []

    async def busy() -> None:
        while True:
            await trio.lowlevel.checkpoint()
            turns.append(len(turns))
            if len(turns) == 50:
                handle.stop(0.0)

    def ready() -> None:
        trio.lowlevel.spawn_system_task(busy)

    assert run(Program(core=ScriptCore(), on_ready=ready), "trio", handle=handle, signals=False) == 0
    assert len(turns) >= 50
