"""A bare aiohttp server: `/health`, an echo at `/ws`, a file at `/file`.

`python -m bench.peers_aiohttp asyncio|uvloop [PATH]`.
"""

from __future__ import annotations

import asyncio
import sys

from aiohttp import web

from bench.peers import HEALTH, listen, run_on


async def health(request: web.Request) -> web.Response:
    return web.json_response(HEALTH)


async def file(request: web.Request) -> web.FileResponse:
    return web.FileResponse(sys.argv[2])


async def echo(request: web.Request) -> web.WebSocketResponse:
    socket = web.WebSocketResponse(compress=False)
    await socket.prepare(request)
    async for message in socket:
        await socket.send_str(message.data)
    return socket


async def serve(*routes: web.RouteDef) -> None:
    """Serve `/health` and the given routes until the process ends."""
    app = web.Application()
    app.add_routes([web.get("/health", health), *routes])
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.SockSite(runner, listen()).start()
    await asyncio.Event().wait()


if __name__ == "__main__":
    run_on(sys.argv[1], lambda: serve(web.get("/file", file), web.get("/ws", echo)))
