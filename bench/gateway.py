"""Benchmark of the API's gateway: a turn beside the same turn as an event stream, an idle socket, and a resume."""

from __future__ import annotations

import json
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

from attrs import evolve

from bench.api_servers import api_contestant
from bench.contestants import Address, Server, placement, running, wait_healthy
from bench.load import PATIENCE, READ
from bench.measure import BenchError, Progress, Scale
from bench.report import Column, Row, Table
from bench.script import Script
from bench.streams import Readers, make_sessions
from bench.wire import FrameReader, frame, upgrade
from runtimes.store.store_factory import open_store
from svc_proto.api.chat.records import ChatSession, Message
from svc_proto.api.chat.store_requests import AddMessages, CreateChat

__all__ = ["gateway_table"]

PATH = b"/api/ws"
CHAT = "long"
ROWS = 2_000  # messages of the resumed session
RESUMES = 20
TURNS = 20  # of each kind in one round
SETTLE = 0.5  # s in which the server finishes work for the last socket
COLUMNS = (
    Column("stream_us", "stream, CPU µs/delta", 1),
    Column("gateway_us", "gateway, CPU µs/delta", 1),
    Column("ratio", "ratio", 2),
    Column("socket_kb", "idle socket, kB", 1),
    Column("resume_ms", f"resume of {ROWS:,} messages, CPU ms", 1),
)


def gateway_table(scale: Scale, progress: Progress, model: Server) -> Table:
    """Return the table of the gateway of an API on asyncio, whose store is a file."""
    with tempfile.TemporaryDirectory(prefix="svc-bench-") as folder:
        path = Path(folder, "svc.db")
        _fill(path)
        one = api_contestant("asyncio", model)
        one = evolve(one, variables=(*one.variables, ("RELAY_SESSIONS_FILE", str(path))))
        with running(one) as server, ExitStack() as stack:
            wait_healthy(server.address)
            phone = stack.enter_context(closing(_Phone(server.address)))
            # First, since memory that earlier work has freed would serve the sockets.
            values = {"socket_kb": _grow(server, scale.held)}
            values["resume_ms"] = _resume(server, phone)
            script, cpu = Script(scale.deltas, 0.0), {"stream": 0.0, "gateway": 0.0}
            readers = Readers(model)
            for turn in range(scale.load_rounds + 1):  # one round to warm up
                progress(f"api: gateway, round {turn} of {scale.load_rounds}")
                begun = server.cpu()
                for session in make_sessions(server.address, TURNS, bare=False):
                    readers.read(server.address, [session], script)
                between = server.cpu()
                for session in make_sessions(server.address, TURNS, bare=False):
                    phone.run_turn(session, str(script))
                if turn:
                    cpu["stream"] += between - begun
                    cpu["gateway"] += server.cpu() - between
            deltas = scale.load_rounds * TURNS * scale.deltas
            values |= {f"{name}_us": spent / deltas * 1e6 for name, spent in cpu.items()}
            values["ratio"] = cpu["gateway"] / cpu["stream"] if cpu["stream"] else 0.0
    notes = [f"{TURNS} turns in sequence, each of a new session with {scale.deltas:,} deltas as fast as they go"]
    notes.append(f"idle: growth of resident memory over {scale.held:,} sockets that have received `gateway.ready`")
    return Table(
        "api_gateway", "The API's gateway on asyncio", COLUMNS, [Row("API, asyncio", values)], [*notes, placement()]
    )


class _Phone:
    """Client of the gateway on a blocking socket."""

    def __init__(self, address: Address) -> None:
        self._sock = socket.create_connection(address, timeout=PATIENCE)
        self._sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._sock.sendall(upgrade(PATH))
        data = b""
        while b"\r\n\r\n" not in data:
            data += self._read()
        head, _, rest = data.partition(b"\r\n\r\n")
        if b" 101 " not in head:
            raise BenchError(f"no WebSocket: {head[:200]!r}")
        self._frames = FrameReader()
        self._ready = list(self._frames.feed(rest))
        self._wait_for(b'"gateway.ready"')

    def call(self, method: str, **params: object) -> bytes:
        """Send a call and return its answer; events are dropped."""
        self._sock.sendall(frame(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()))
        return self._wait_for(b'"id":1')

    def run_turn(self, session: str, text: str) -> None:
        """Run a turn up to its last event, `session.info`."""
        self.call("prompt.submit", session_id=session, text=text)
        self._wait_for(b'"session.info"')

    def close(self) -> None:
        self._sock.close()

    def _wait_for(self, mark: bytes) -> bytes:
        return next(payload for payload in self._messages() if mark in payload[:200])

    def _messages(self) -> Iterator[bytes]:
        while True:
            while self._ready:
                yield self._ready.pop(0)[1]
            self._ready += self._frames.feed(self._read())

    def _read(self) -> bytes:
        data = self._sock.recv(READ)
        if not data:
            raise BenchError("the gateway closed the connection")
        return data


def _fill(path: Path) -> None:
    store, at = open_store(str(path)), time.time()
    store.execute(CreateChat(session=ChatSession(id=CHAT, started_at=at, updated_at=at, last_active=at)))
    rows = [
        Message(
            id=f"m{n}", session_id=CHAT, role=("user", "assistant")[n % 2], content=f"Message {n}. " * 10, timestamp=at
        )
        for n in range(ROWS)
    ]
    store.execute(AddMessages(session_id=CHAT, messages=tuple(rows)))
    store.close()


def _resume(server: Server, phone: _Phone) -> float:
    answer = json.loads(phone.call("session.resume", session_id=CHAT, source="tui"))
    if len(answer["result"]["messages"]) != ROWS:
        raise BenchError(f"a resume returned {len(answer['result']['messages'])} messages")
    begun = server.cpu()
    for _ in range(RESUMES):
        phone.call("session.resume", session_id=CHAT, source="tui")
    return (server.cpu() - begun) / RESUMES * 1e3


def _grow(server: Server, count: int) -> float:
    begun = server.resident()
    with ExitStack() as stack:
        for _ in range(count):
            stack.enter_context(closing(_Phone(server.address)))
        time.sleep(SETTLE)
        return max((server.resident() - begun) / count / 1000, 0.0)
