"""Starlette under `uvicorn --http h11` with the stream of a session: `python -m bench.peers_starlette`.

Arguments: `asyncio|uvloop`, and the address of a model's server. With an address it reads that server with httpx,
decodes each chunk and encodes it again, which is the API's work on the wire; without one it generates the deltas. In
both cases there is no store, no session, no run that outlives its reader, and no deadline or limit but those of the
libraries.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator
from uuid import uuid4

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, StreamingResponse
from starlette.routing import Route

from bench.peers import HEALTH, listen, run_on
from bench.script import Script, stamp

MODEL = sys.argv[2] if len(sys.argv) > 2 else ""
DONE = "[DONE]"


async def health(request: Request) -> JSONResponse:
    return JSONResponse(HEALTH)


async def stream(request: Request) -> StreamingResponse:
    asked_at = time.monotonic_ns()
    message = (await request.json())["message"]
    texts = _asked(message) if MODEL else _made_up(Script.parse(message), asked_at)
    return StreamingResponse(_told(request.path_params["id"], texts), media_type="text/event-stream")


async def _told(session_id: str, texts: AsyncIterator[str]) -> AsyncIterator[str]:
    """Yield the frames of a session's stream, of the same size as the API's."""
    head = f'data: {{"session_id":"{session_id}","run_id":"run_{uuid4().hex}","seq":'
    tail = f',"message_id":"{uuid4()}","delta":'
    number = 0
    async for text in texts:
        number += 1
        yield f'event: assistant.delta\n{head}{number},"ts":{time.time():.3f}{tail}{json.dumps(text)}}}\n\n'
    yield f'event: done\n{head}{number + 1},"ts":{time.time():.3f},"state":"final"}}\n\n'


async def _made_up(script: Script, asked_at: int) -> AsyncIterator[str]:
    for number in range(script.deltas):
        if script.pause:
            yield stamp(asked_at)
            await asyncio.sleep(script.pause)
        else:
            yield f"word{number} "


async def _asked(message: str) -> AsyncIterator[str]:
    asked = {"model": "bench", "stream": True, "messages": [{"role": "user", "content": message}]}
    async with CLIENT.stream("POST", f"{MODEL}/chat/completions", json=asked) as answer:
        async for line in answer.aiter_lines():
            data = line.removeprefix("data: ")
            if data and data != DONE:
                choices = json.loads(data)["choices"]
                if choices and (text := choices[0]["delta"].get("content")):
                    yield text


async def serve() -> None:
    routes = [Route("/health", health), Route("/api/sessions/{id}/chat/stream", stream, methods=["POST"])]
    config = uvicorn.Config(Starlette(routes=routes), http="h11", ws="none", lifespan="off", log_level="error")
    config.access_log = False
    await uvicorn.Server(config).serve(sockets=[listen()])


CLIENT = httpx.AsyncClient(timeout=None, limits=httpx.Limits(max_connections=None))

if __name__ == "__main__":
    run_on(sys.argv[1], serve)
