"""Common parts of the bare servers: the answer, a listening socket announced on stderr, the choice of loop."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Callable, Coroutine
from typing import Any

from svc_proto.version import VERSION

__all__ = ["HEALTH", "listen", "run_on"]

HEALTH = {"status": "ok", "version": VERSION, "clients": 0, "sessions": 0}  # answer of an idle relay


def listen() -> socket.socket:
    """Return a socket that listens on a free port of 127.0.0.1, and print its URL on standard error.

    The socket names its protocol, because asyncio sets TCP_NODELAY only on sockets that do.
    """
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind(("127.0.0.1", 0))
    sock.listen(1024)
    sock.setblocking(False)
    print(f"http://127.0.0.1:{sock.getsockname()[1]}", file=sys.stderr, flush=True)
    return sock


def run_on(loop: str, serve: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run `serve` on uvloop or asyncio until the process is ended."""
    if loop == "uvloop":
        import uvloop  # loaded only when selected

        uvloop.run(serve())
    else:
        asyncio.run(serve())
