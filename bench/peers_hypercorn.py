"""A bare ASGI application like that of `bench.peers_uvicorn`: `python -m bench.peers_hypercorn asyncio|uvloop`.

It runs under hypercorn, which detects the HTTP version from the first bytes of a connection, as the relay does.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from hypercorn.asyncio import serve as run_server
from hypercorn.config import Config

from bench.peers import HEALTH, listen, run_on


async def app(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] == "lifespan":
        raise NotImplementedError("there is nothing to start")  # hypercorn continues without
    if scope["path"] != "/health":
        await send({"type": "http.response.start", "status": 404, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body"})
        return
    body = json.dumps(HEALTH, separators=(",", ":")).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def serve() -> None:
    config = Config()
    config.bind = [f"fd://{listen().detach()}"]
    config.loglevel = "ERROR"
    config.keep_alive_max_requests = 1_000_000_000  # limit of a connection, which would be closed after that
    await run_server(app, config)


if __name__ == "__main__":
    run_on(sys.argv[1], serve)
