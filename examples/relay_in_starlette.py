"""A relay inside a Starlette or FastAPI app: the app's lifespan starts it, in the app's own loop, and stops it.

  pip install '.[anyio]' starlette uvicorn && uvicorn examples.relay_in_starlette:app --port 8080
  curl http://127.0.0.1:8080/relay  # {"relay": "http://127.0.0.1:8767"}

Under FastAPI, pass the same lifespan: `FastAPI(lifespan=lifespan)`.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from runtimes.host.host import Program
from runtimes.loops.waker import HostHandle
from runtimes.net.listener import bind
from runtimes.run import serve
from svc_proto.engine import Engine
from svc_proto.relay import Relay, RelayConfig

PORT = int(os.environ.get("RELAY_PORT", "8767"))


@asynccontextmanager
async def lifespan(app: Starlette) -> AsyncIterator[dict[str, str]]:
    """Serve the relay while the app runs; sessions are in memory."""
    ready, handle, listener = asyncio.Event(), HostHandle(), bind("127.0.0.1", PORT)
    relay = Engine(Relay(RelayConfig(pairing_code="ABC123")), entropy=os.urandom)
    with listener.sock:
        async with asyncio.TaskGroup() as tasks:
            program = Program(core=relay, listeners=[listener], on_ready=ready.set)
            tasks.create_task(serve(program, handle=handle))
            await ready.wait()
            yield {"relay": f"http://{listener.address.host}:{listener.address.port}"}
            handle.stop(5.0)


async def show_relay(request: Request) -> Response:
    """Return the address of the relay."""
    return JSONResponse({"relay": request.state.relay})


app = Starlette(routes=[Route("/relay", show_relay)], lifespan=lifespan)
