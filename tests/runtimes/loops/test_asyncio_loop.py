"""Test that callbacks, readers, threads' calls and tasks of asyncio run on the loop that runs a core."""

from __future__ import annotations

import asyncio
import socket
import threading

from runtimes.host.host import Program
from runtimes.loops.waker import HostHandle
from runtimes.run import run
from tests.runtimes.scripted_core import ScriptCore


def test_asyncio_callbacks_run() -> None:
    ours, theirs = socket.socketpair()
    told: list[str] = []
    handle = HostHandle()
    names = {"soon", "later", "readable", "from a thread", "a task"}

    def note(name: str) -> None:
        told.append(name)
        if set(told) == names:
            handle.stop(0.0)

    async def work() -> None:
        await rung.wait()
        note("a task")

    def read() -> None:
        ours.recv(1)
        note("readable")

    def ring() -> None:
        note("later")
        rung.set()

    def ready() -> None:
        loop = asyncio.get_running_loop()
        loop.call_soon(note, "soon")
        loop.call_later(0.001, ring)
        loop.add_reader(ours, read)
        theirs.send(b"!")
        tasks.append(loop.create_task(work()))
        threading.Thread(target=loop.call_soon_threadsafe, args=(note, "from a thread")).start()

    rung = asyncio.Event()
    tasks: list[asyncio.Task[None]] = []
    with ours, theirs:
        assert run(Program(core=ScriptCore(), on_ready=ready), "asyncio", handle=handle, signals=False) == 0
    assert set(told) == names
