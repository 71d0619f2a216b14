"""An echo by the `websockets` library, without compression: `python -m bench.peers_websockets asyncio|uvloop`."""

from __future__ import annotations

import sys

from websockets.asyncio.server import ServerConnection
from websockets.asyncio.server import serve as run_server

from bench.peers import listen, run_on


async def echo(connection: ServerConnection) -> None:
    async for message in connection:
        await connection.send(message)


async def serve() -> None:
    async with run_server(echo, sock=listen(), compression=None) as server:
        await server.serve_forever()


if __name__ == "__main__":
    run_on(sys.argv[1], serve)
