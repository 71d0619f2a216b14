"""A model endpoint with scripted answers: `python -m bench.peers_model`, compatible with OpenAI.

The last message of a request is its script, `DELTAS PAUSE`. Without a pause all chunks are written at once. With a
pause the deltas are written one by one, so many seconds apart; the text of such a delta is two times in nanoseconds:
arrival of the request, and write of the chunk.
"""

from __future__ import annotations

import asyncio
import json
import time

from bench.peers import listen
from bench.script import Script, stamp

__all__ = ["Model"]

HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n"
    b"Cache-Control: no-cache\r\n\r\n"
)
MEMBERS = '"id":"chatcmpl-bench","object":"chat.completion.chunk","created":1700000000,"model":"bench"'
END = b"0\r\n\r\n"


def _framed(members: str) -> bytes:
    event = f"data: {members}\n\n".encode("ascii")
    return b"%x\r\n%s\r\n" % (len(event), event)


def _chunk(delta: str, finish: str = "null") -> bytes:
    return _framed(f'{{{MEMBERS},"choices":[{{"index":0,"delta":{delta},"finish_reason":{finish}}}]}}')


def _said(text: str) -> bytes:
    return _chunk(f'{{"content":"{text}"}}')


FIRST = HEAD + _chunk('{"role":"assistant","content":""}')
USAGE = '"usage":{"prompt_tokens":10,"completion_tokens":20,"total_tokens":30}'
LAST = _chunk("{}", '"stop"') + _framed(f'{{{MEMBERS},"choices":[],{USAGE}}}') + _framed("[DONE]") + END


class Model(asyncio.Protocol):
    """Server side of one connection, which answers a request with a body by its script, and a GET with an empty 200."""

    def __init__(self) -> None:
        self._held = b""
        self._script = Script(0, 0.0)
        self._said = 0
        self._asked_at = 0
        self._gone = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)  # for a stream socket
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        self._gone = True

    def data_received(self, data: bytes) -> None:
        self._held += data
        head, end, body = self._held.partition(b"\r\n\r\n")
        if not end:
            return
        if head.startswith(b"GET "):
            self._transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            self._transport.close()
            return
        length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
        if len(body) >= length:
            self._asked_at = time.monotonic_ns()
            self._script = Script.parse(json.loads(body)["messages"][-1]["content"])
            self._begin()

    def _begin(self) -> None:
        if self._script.pause:
            self._transport.write(FIRST)
            self._next()
            return
        self._transport.write(FIRST + b"".join(_said(f"word{n} ") for n in range(self._script.deltas)) + LAST)
        self._transport.close()

    def _next(self) -> None:
        if self._gone:
            return
        if self._said == self._script.deltas:
            self._transport.write(LAST)
            self._transport.close()
            return
        self._said += 1
        self._transport.write(_said(stamp(self._asked_at)))
        asyncio.get_running_loop().call_later(self._script.pause, self._next)


async def _serve() -> None:
    server = await asyncio.get_running_loop().create_server(Model, sock=listen())
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_serve())
