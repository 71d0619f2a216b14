"""A relay as one task of your program: in a task group of anyio (on asyncio, uvloop or trio), or in a nursery of trio.

python -m examples.relay_in_task_group anyio            # or: trio
"""

import os
import sys

import anyio
import trio

from runtimes.host.host import Program
from runtimes.net.listener import Listener, bind
from runtimes.run import serve
from svc_proto.engine import Engine
from svc_proto.relay import Relay, RelayConfig


def make_relay() -> Engine:
    """Return a relay whose first pairing code is ABC123."""
    return Engine(Relay(RelayConfig(pairing_code="ABC123")), entropy=os.urandom)


async def in_task_group(listener: Listener) -> bytes:
    """Serve a relay with anyio, stop it by a cancellation, and return its answer to `GET /health`."""
    ready = anyio.Event()
    program = Program(core=make_relay(), listeners=[listener], on_ready=ready.set)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve, program)
        await ready.wait()
        async with await anyio.connect_tcp(listener.address.host, listener.address.port) as stream:
            await stream.send(b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n")
            health = await stream.receive()
        tasks.cancel_scope.cancel()  # the relay closes its connections in its grace
    return health


async def in_nursery(listener: Listener) -> bytes:
    """Serve a relay with trio alone, stop it by a cancellation, and return its answer to `GET /health`."""
    ready = trio.Event()
    program = Program(core=make_relay(), listeners=[listener], on_ready=ready.set)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve, program)
        await ready.wait()
        async with await trio.open_tcp_stream(listener.address.host, listener.address.port) as stream:
            await stream.send_all(b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n")
            health = await stream.receive_some()
        nursery.cancel_scope.cancel()
    return health


def main(library: str) -> bytes:
    """Run one of the programs; return the relay's answer."""
    listener = bind("127.0.0.1", 0)
    with listener.sock:
        return trio.run(in_nursery, listener) if library == "trio" else anyio.run(in_task_group, listener)


if __name__ == "__main__":
    print(main(sys.argv[1]).decode())
