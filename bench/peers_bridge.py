"""A bare bridge on aiohttp: request, message to the phone's WebSocket, its answer, response. It has no policy.

`python -m bench.peers_bridge asyncio|uvloop`. It implements the part of a relay that the load uses, and accepts any
code and token.
"""

from __future__ import annotations

import asyncio
import json
import sys
from uuid import uuid4

from aiohttp import web

from bench.peers import run_on
from bench.peers_aiohttp import serve

WAITING: dict[str, asyncio.Future[object]] = {}
PHONES: list[web.WebSocketResponse] = []


async def pairing(request: web.Request) -> web.Response:
    return web.json_response({"ok": True, "code": "ABC123"})


async def tap(request: web.Request) -> web.Response:
    asked = str(uuid4())
    answered = WAITING[asked] = asyncio.get_running_loop().create_future()
    payload = {"request_id": asked, "method": "POST", "path": request.path, "body": await request.json()}
    try:
        await PHONES[-1].send_str(json.dumps({"channel": "bridge", "type": "bridge.command", "payload": payload}))
        return web.json_response(await answered)
    finally:
        del WAITING[asked]


async def phone(request: web.Request) -> web.WebSocketResponse:
    socket = web.WebSocketResponse(compress=False)
    await socket.prepare(request)
    PHONES.append(socket)
    async for message in socket:
        said = json.loads(message.data)
        if said["type"] == "auth":
            await socket.send_str(json.dumps({"type": "auth.ok", "payload": {"session_token": "bare"}}))
        elif said["type"] == "bridge.response":
            WAITING[said["payload"]["request_id"]].set_result(said["payload"]["result"])
    return socket


if __name__ == "__main__":
    routes = (web.post("/pairing", pairing), web.post("/tap", tap), web.get("/ws", phone))
    run_on(sys.argv[1], lambda: serve(*routes))
