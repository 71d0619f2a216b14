"""A bare ASGI application under `uvicorn --http h11`: `python -m bench.peers_uvicorn asyncio|uvloop`."""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import uvicorn

from bench.peers import HEALTH, listen, run_on

Message = MutableMapping[str, Any]


async def app(
    scope: Message, receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]
) -> None:
    if scope["path"] != "/health":
        await send({"type": "http.response.start", "status": 404, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body"})
        return
    body = json.dumps(HEALTH, separators=(",", ":")).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def serve() -> None:
    config = uvicorn.Config(app, http="h11", ws="none", lifespan="off", log_level="error", access_log=False)
    await uvicorn.Server(config).serve(sockets=[listen()])


if __name__ == "__main__":
    run_on(sys.argv[1], serve)
