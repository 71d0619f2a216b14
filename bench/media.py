"""Benchmark of sending a large file: `/media/{token}` of the relay, aiohttp's FileResponse and nginx."""

from __future__ import annotations

import json
import os
import socket
import tempfile
import time
from contextlib import ExitStack
from functools import partial
from http.client import HTTPConnection
from pathlib import Path

from bench.contestants import (
    RELAYS,
    Address,
    Contestant,
    Server,
    available,
    missing,
    pinned,
    placement,
    running,
    wait_healthy,
)
from bench.load import HEAD_END, PATIENCE, Phone, new_code
from bench.measure import BenchError, Progress, Scale, rotated
from bench.peers_nginx import find_nginx, running_nginx
from bench.report import Table
from bench.rounds import BYTES, Rounds, Stretch, byte_rows, notes_on, take_round
from bench.wire import request

__all__ = ["media_section"]

READ = 1_048_576  # bytes
PIECE = 65_536  # bytes of the file that are compared
UNDISTURBED = 0.1  # share of the time: the threads of a server that send a file share a CPU with its loop
LOOPS = ("asyncio", "uvloop")


def media_section(
    scale: Scale,
    progress: Progress,
    *,
    relays: tuple[Contestant, ...] = RELAYS,
    peers: tuple[str, ...] = LOOPS,
    nginx: str | None = None,
) -> list[Table]:
    """Return the table of bytes a second of one file over one kept connection. The ratios refer to the first relay.

    `peers` are the loops for aiohttp; `nginx` is its path, None searches for it.
    """
    nginx = find_nginx() if nginx is None else nginx
    with ExitStack() as stack:
        path = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="svc-bench-")), "file.bin")
        _write(path, scale.file_bytes)
        bare = tuple(_aiohttp(loop, path) for loop in peers)
        fetchers: dict[str, _Fetcher] = {}
        for one in [*available(relays), *available(bare)]:
            progress(f"media: starting {one.name}")
            server = stack.enter_context(running(one))
            wait_healthy(server.address)
            asked = _register(server.address, path) if one in relays else request("GET", "/file")
            fetchers[one.name] = _Fetcher(server, asked, path, stack)
        if nginx:
            server = stack.enter_context(running_nginx(nginx, path))
            fetchers[server.contestant.name] = _Fetcher(server, request("GET", "/file"), path, stack)
        runs = {name: Rounds() for name in fetchers}
        for turn in range(scale.load_rounds):
            for name in rotated(list(fetchers), turn):
                progress(f"media: round {turn + 1} of {scale.load_rounds}, {name}")
                fetcher = fetchers[name]
                with pinned():
                    take_round(runs[name], fetcher.server, partial(fetcher.fetch, scale.seconds / scale.load_rounds))
    notes = [
        *notes_on(runs, "bytes", undisturbed=UNDISTURBED),
        "the kernel counts and discards received bytes, so that the load is no bottleneck; the file is in its cache",
        placement(),
        *missing((*relays, *bare)),
    ]
    if not nginx:
        notes.append("left out, not installed: nginx")
    title = f"A file of {scale.file_bytes / 1e6:g} MB over loopback, one kept connection"
    return [Table("media", title, BYTES, byte_rows(runs), notes)]


class _Fetcher:
    """A kept connection to a server, over which the file is fetched repeatedly."""

    def __init__(self, server: Server, asked: bytes, path: Path, stack: ExitStack) -> None:
        self.server = server
        self._asked = asked
        self._size = path.stat().st_size
        self._sock = socket.create_connection(server.address, timeout=PATIENCE)
        stack.callback(self._sock.close)
        self._sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._room = bytearray(READ)
        with path.open("rb") as file:
            self._once(file.read(PIECE))

    def fetch(self, seconds: float) -> Stretch:
        """Fetch the whole file until the time is over, at least once; return the bytes and times."""
        came, cpu, begun = 0, time.process_time(), time.perf_counter()
        while not came or time.perf_counter() - begun < seconds:
            self._once(b"")
            came += self._size
        return Stretch(came, time.perf_counter() - begun, time.process_time() - cpu)

    def _once(self, start: bytes) -> None:
        """Fetch the file once and compare its beginning with `start`."""
        self._sock.sendall(self._asked)
        head, _, body = self._head()
        if not head.startswith(b"HTTP/1.1 200") or b"content-length: %d" % self._size not in head.lower():
            raise BenchError(f"{self.server.contestant.name} answered {head[:80]!r}")
        while len(body) < len(start):
            if not (piece := self._sock.recv(PIECE)):
                raise BenchError(f"{self.server.contestant.name} closed within a file")
            body += piece
        if not body.startswith(start):
            raise BenchError(f"{self.server.contestant.name} sent another file")
        left = self._size - len(body)
        while left:
            n = self._sock.recv_into(self._room, min(left, READ), socket.MSG_TRUNC)
            if not n:
                raise BenchError(f"{self.server.contestant.name} closed within a file")
            left -= n

    def _head(self) -> tuple[bytes, bytes, bytes]:
        data = b""
        while HEAD_END not in data:
            got = self._sock.recv(4096)
            if not got:
                raise BenchError(f"{self.server.contestant.name} closed the connection")
            data += got
        return data.partition(HEAD_END)


def _aiohttp(loop: str, path: Path) -> Contestant:
    needs = ("aiohttp", "uvloop") if loop == "uvloop" else ("aiohttp",)
    return Contestant(f"aiohttp FileResponse, {loop}", ("bench.peers_aiohttp", loop, str(path)), needs)


def _write(path: Path, size: int) -> None:
    with path.open("wb") as file:
        while size:
            size -= file.write(os.urandom(min(size, READ)))


def _register(address: Address, path: Path) -> bytes:
    """Register the file as a program on the host does; return a paired phone's request for it."""
    conn = HTTPConnection(*address, timeout=PATIENCE)
    try:
        body = json.dumps({"path": str(path), "content_type": "application/octet-stream"})
        conn.request("POST", "/media/register", body, {"Content-Type": "application/json"})
        answer = json.loads(conn.getresponse().read())
    finally:
        conn.close()
    if not answer.get("token"):
        raise BenchError(f"the relay registered no file: {answer.get('error')}")
    phone = Phone(address, "bench-viewer", new_code(address))
    phone.close()  # its session continues
    return request("GET", f"/media/{answer['token']}", token=phone.token)
