"""Tests of `serve` inside a host program: its tasks, children, cancellations and debug mode."""

import asyncio
import logging
import sys
from collections.abc import Awaitable, Callable
from math import inf
from typing import TypeAlias

import anyio
import pytest

from runtimes.host.host import Program
from runtimes.loops.waker import HostHandle
from runtimes.net.listener import bind
from runtimes.run import serve
from svc_proto.basics.moment import Moment
from svc_proto.commands import Command, Exit, Ready
from svc_proto.facts import Fact, Started, Stopping
from tests.runtimes.scripted_core import TIMEOUT, ScriptCore

LIBRARIES = {"asyncio": ("asyncio", {"debug": True}), "uvloop": ("asyncio", {"use_uvloop": True}), "trio": ("trio", {})}
RunHost: TypeAlias = Callable[[Callable[[], Awaitable[None]]], None]
FINISHING = 0.02  # s that `SlowCore` takes to stop


@pytest.fixture(params=LIBRARIES)
def run_host(request: pytest.FixtureRequest) -> RunHost:
    backend, options = LIBRARIES[request.param]

    def run(main: Callable[[], Awaitable[None]]) -> None:
        async def limited() -> None:
            with anyio.fail_after(TIMEOUT):
                await main()

        anyio.run(limited, backend=backend, backend_options=dict(options))

    return run


class SlowCore:
    """Core that needs `finishing` seconds to stop."""

    def __init__(self, finishing: float = FINISHING) -> None:
        self.finishing = finishing
        self.facts: list[Fact] = []
        self.deadline: float | None = None

    def handle(self, fact: Fact | None, now: Moment) -> list[Command]:
        if isinstance(fact, Started):
            return [Ready()]
        if isinstance(fact, Stopping):
            self.deadline = now.mono + self.finishing
            self.facts.append(fact)
        elif fact is None and self.deadline is not None and now.mono >= self.deadline:
            self.deadline = None
            self.facts.append(Started())
            return [Exit(0, "in time")]
        return []

    def next_deadline(self) -> float | None:
        return self.deadline


def test_tasks_and_children_of_the_program_run_beside_the_core(run_host: RunHost) -> None:
    async def main() -> None:
        ready, handle, listener = anyio.Event(), HostHandle(), bind("127.0.0.1", 0)
        core, outcomes = ScriptCore(), list[Exit]()

        async def serve_core() -> None:
            outcomes.extend(await serve(Program(core=core, listeners=[listener], on_ready=ready.set), handle=handle))

        with listener.sock:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(serve_core)
                await ready.wait()
                stream = await anyio.connect_tcp(listener.address.host, listener.address.port)
                child = await anyio.run_process([sys.executable, "-c", "print('child')"])
                await anyio.sleep(0)
                handle.stop(3.0)
            await stream.aclose()
        assert child.stdout == b"child\n"
        assert outcomes == [Exit(0, "stopped")]
        facts = [core.facts.get_nowait() for _ in range(core.facts.qsize())]
        assert [type(fact).__name__ for fact in facts][:2] == ["Started", "Accepted"]

    run_host(main)


def test_a_cancellation_leaves_the_grace(run_host: RunHost) -> None:
    core = SlowCore()

    async def main() -> None:
        ready = anyio.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: serve(Program(core=core, on_ready=ready.set), grace=4.0))
            await ready.wait()
            tasks.cancel_scope.cancel()
        assert tasks.cancel_scope.cancelled_caught

    run_host(main)
    assert core.facts == [Stopping(4.0), Started()]


def test_a_second_cancellation_ends_the_core_at_once() -> None:
    core = SlowCore(finishing=TIMEOUT)

    async def main() -> None:
        ready = asyncio.Event()
        task = asyncio.create_task(serve(Program(core=core, on_ready=ready.set)))
        await ready.wait()
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert core.facts == [Stopping(10.0)]


def test_an_exception_from_a_callback_is_raised(run_host: RunHost) -> None:
    def fail() -> None:
        raise ZeroDivisionError

    async def main() -> None:
        handle = HostHandle()
        with pytest.raises(ZeroDivisionError):
            await serve(Program(core=ScriptCore(), on_ready=lambda: handle.waker.post(fail)), handle=handle)
        assert handle.waker.sock.fileno() == -1

    run_host(main)


@pytest.mark.parametrize("library", ["asyncio", "uvloop"])
def test_exceptions_of_other_callbacks_are_the_programs(library: str) -> None:
    caught: list[object] = []

    async def main() -> None:
        loop, ready, handle = asyncio.get_running_loop(), asyncio.Event(), HostHandle()
        loop.set_exception_handler(lambda loop, context: caught.append(context["exception"]))
        task = asyncio.create_task(serve(Program(core=ScriptCore(), on_ready=ready.set), handle=handle))
        await ready.wait()
        loop.call_soon(lambda: 1 // 0)
        while not caught:
            await asyncio.sleep(0)
        assert not task.done()
        handle.stop()
        assert await task == (Exit(0, "stopped"),)

    anyio.run(main, backend="asyncio", backend_options={"use_uvloop": library == "uvloop"})
    assert [type(each) for each in caught] == [ZeroDivisionError]


def test_debug_mode_reports_a_handler_that_blocks(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        handle = HostHandle()
        asyncio.get_running_loop().slow_callback_duration = 0.0
        await serve(Program(core=ScriptCore(), on_ready=handle.stop), handle=handle)

    with caplog.at_level(logging.WARNING, "asyncio"):
        asyncio.run(main(), debug=True)
    assert any("Executing <Handle AsyncioLoop._run()" in record.getMessage() for record in caplog.records)


def test_a_late_time_to_wake_is_kept(run_host: RunHost) -> None:
    """`serve` calls a core whose deadline has passed, although nothing else happens."""

    async def main() -> None:
        core, handle = ScriptCore(), HostHandle()
        core.deadline = 0.0
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: serve(Program(core=core), handle=handle))
            while core.ticks.empty():
                await anyio.sleep(0.001)
            assert core.ticks.get() < inf
            handle.stop()

    run_host(main)
