"""Benchmark of speech over `/voice/output`: latency of the first samples, and delays with many listeners."""

from __future__ import annotations

import json
import selectors
import shutil
import socket
import subprocess
import time
from base64 import b64decode
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection
from importlib.util import find_spec
from statistics import median
from typing import Protocol

from attrs import evolve, frozen

from bench.contestants import RELAYS, Address, Contestant, available, missing, pinned, placement, running, wait_healthy
from bench.load import HEAD_END, PATIENCE, READ, Phone, new_code, no_gc
from bench.measure import BenchError, Progress, Scale, percentile
from bench.peers_speech import PIECE, SECONDS
from bench.report import Column, Row, Table
from bench.wire import PING, PONG, TEXT, FrameReader, frame

__all__ = ["voice_section"]

SENTENCE = "Turn off the lights in the living room."
SPEECH = Contestant("vendor of speech", ("bench.peers_speech",))
LOCAL, STUB, HTTP_PROVIDER = "local", "stub", "openai_tts"
FLOOR = "espeak-ng alone"
STRAIGHT = "the vendor, no relay between"
ESPEAK = ("espeak-ng", "--stdin", "--stdout", "-v", "en-us", "-s", "160")
WAV_HEAD = 44  # bytes
FRAME = b"%x\r\n" % PIECE  # head of a chunk
LATE = SECONDS  # s of delay at which a player with a buffer of one piece runs dry
FIRST = [Column("first_ms", "first sound, ms", 2), Column("worst_ms", "slowest, ms", 2)]
STREAMS = [
    Column("sockets", "sockets", 0),
    Column("pieces", "pieces", 0),
    Column("late", "late", 0),
    Column("median_ms", "delay, ms", 2),
    Column("p99_ms", "99 %, ms", 2),
    Column("worst_ms", "slowest, ms", 2),
    Column("cpu_percent", "CPU, %"),
    Column("waited_percent", "kept waiting %"),
]


def voice_section(scale: Scale, progress: Progress, *, relays: tuple[Contestant, ...] = RELAYS) -> list[Table]:
    """Return two tables: latency of the first samples of a text, and delays of many texts at once in real time."""
    with running(SPEECH, beside_load=True) as endpoint:
        url = f"http://127.0.0.1:{endpoint.address[1]}/v1"
        variables = (("OPENAI_API_KEY", "bench"), ("OPENAI_BASE_URL", url))
        firsts: list[Row] = []
        streams: list[Row] = []
        for one in available(relays):
            progress(f"voice: {one.name}")
            with running(evolve(one, variables=(*one.variables, *variables))) as server:
                wait_healthy(server.address)
                phone = Phone(server.address, "bench-phone", new_code(server.address))
                try:
                    firsts += _firsts(one.name, server.address, phone.token, scale)
                    with _clients(server.address, phone.token, scale.listeners) as clients:
                        cpu, waited, begun = server.cpu(), server.waited(), time.monotonic()
                        values = _stream(clients, scale)
                        elapsed = time.monotonic() - begun
                    values["cpu_percent"] = (server.cpu() - cpu) / elapsed * 100
                    values["waited_percent"] = (server.waited() - waited) / elapsed * 100
                    streams.append(Row(one.name, values))
                finally:
                    phone.close()
        with _direct(endpoint.address, scale.listeners) as readers:
            streams.append(Row(STRAIGHT, _stream(readers, scale)))
        if shutil.which(ESPEAK[0]) is not None:
            firsts.append(_row(FLOOR, [_espeak() for _ in range(_tries(scale))]))
    notes = [
        "from `response.create` to the first `voice.audio.delta`, on a socket that is open",
        "`stub` makes a tone at once: what is left is the relay; `local` starts espeak-ng for each text",
        placement(),
        *missing(relays),
    ]
    late = {row.name: round(row.values["late"]) for row in streams if row.values["late"]}
    paced = [
        f"MISS: late pieces: {late}" if late else "PASS: no late piece (target: none)",
        f"a vendor writes {PIECE} bytes every {SECONDS * 1000:.0f} ms on each socket; the delay is from there to here",
        f"late: more than {LATE * 1000:.0f} ms, when a player that holds one piece in store would run dry",
        placement(),
    ]
    return [
        Table("voice_first", "The first sound of a sentence", FIRST, firsts, notes),
        Table("voice_streams", "Speech in real time, many at once", STREAMS, streams, paced),
    ]


def _firsts(relay: str, address: Address, token: str, scale: Scale) -> Iterator[Row]:
    for provider in (STUB, LOCAL):
        if provider == LOCAL and shutil.which(ESPEAK[0]) is None and find_spec("espeakng_loader") is None:
            continue
        with pinned(), no_gc():
            yield _row(f"{relay}, {provider}", [_first(address, token, provider) for _ in range(_tries(scale))])


def _row(name: str, seconds: Sequence[float]) -> Row:
    return Row(name, {"first_ms": median(seconds) * 1000, "worst_ms": max(seconds) * 1000})


def _tries(scale: Scale) -> int:
    return 3 * scale.repeats


def _first(address: Address, token: str, provider: str) -> float:
    """Return the seconds from the request for speech to its first samples, on the open socket of a new session."""
    client = _Client(address, token, provider)
    try:
        client.say(SENTENCE)
        while not client.sound:
            client.on_readable()
        return time.monotonic() - client.said_at
    finally:
        client.sock.close()


def _espeak() -> float:
    begun = time.monotonic()
    with subprocess.Popen(ESPEAK, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None  # opened as a pipe above
        assert child.stdout is not None  # opened as a pipe above
        child.stdin.write(SENTENCE.encode())
        child.stdin.close()
        child.stdout.read(WAV_HEAD + 2)
        elapsed = time.monotonic() - begun
        child.stdout.read()
    return elapsed


def _stream(listeners: Sequence[_Listener], scale: Scale) -> dict[str, float]:
    """Let the provider stream to all listeners, one starting after another; return figures on the delays."""
    pieces = max(2, round(scale.seconds / SECONDS))
    silent = deque(listeners)
    with selectors.DefaultSelector() as selector, pinned(), no_gc():
        begun, left = time.monotonic(), len(listeners)
        while left:
            # The streams start at different times; the started ones are read while the others wait.
            due = begun + (len(listeners) - len(silent)) * SECONDS / len(listeners)
            if silent and time.monotonic() >= due:
                listener = silent.popleft()
                selector.register(listener.sock, selectors.EVENT_READ, listener)
                listener.say(str(pieces))
                continue
            ready = selector.select(max(due - time.monotonic(), 0.0) if silent else PATIENCE)
            if not ready and not silent:
                raise BenchError(f"no sound within {PATIENCE:g} s")
            for key, _ in ready:
                listener = key.data
                listener.on_readable()
                if listener.over:
                    selector.unregister(listener.sock)
                    left -= 1
    delays = sorted(delay for listener in listeners for delay in listener.delays)
    if len(delays) != pieces * len(listeners):
        raise BenchError(f"{len(delays)} pieces of speech came instead of {pieces * len(listeners)}")
    return {
        "sockets": float(len(listeners)),
        "pieces": float(len(delays)),
        "late": float(sum(delay > LATE for delay in delays)),
        "median_ms": percentile(delays, 0.5) * 1000,
        "p99_ms": percentile(delays, 0.99) * 1000,
        "worst_ms": delays[-1] * 1000,
    }


@contextmanager
def _clients(address: Address, token: str, count: int) -> Iterator[list[_Client]]:
    with ExitStack() as stack:
        clients = []
        for _ in range(count):
            client = _Client(address, token, HTTP_PROVIDER)
            stack.callback(client.sock.close)
            clients.append(client)
        yield clients


@contextmanager
def _direct(address: Address, count: int) -> Iterator[list[_Direct]]:
    with ExitStack() as stack:
        readers = []
        for _ in range(count):
            reader = _Direct(address)
            stack.callback(reader.sock.close)
            readers.append(reader)
        yield readers


class _Listener(Protocol):
    sock: socket.socket
    over: bool
    delays: list[float]

    def say(self, text: str) -> None:
        """Request speech for a text."""
        ...

    def on_readable(self) -> None: ...


class _Stamps:
    """Reader of the time stamps in pieces of sound; `delays` are in seconds."""

    def __init__(self) -> None:
        self.delays: list[float] = []
        self._held = b""

    def take(self, sound: bytes) -> None:
        now = time.monotonic_ns()
        self._held += sound
        while len(self._held) >= PIECE:
            self.delays.append((now - int.from_bytes(self._held[:8], "little")) / 1e9)
            self._held = self._held[PIECE:]


class _Direct(_Stamps):
    """Client of the speech provider itself, to measure this machine without a relay."""

    def __init__(self, address: Address) -> None:
        super().__init__()
        self.over = False
        self._head = b""
        self._body = b""
        self.sock = socket.create_connection(address, timeout=PATIENCE)

    def say(self, text: str) -> None:
        body = json.dumps({"input": text}).encode()
        self.sock.sendall(b"POST /v1/audio/speech HTTP/1.1\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))

    def on_readable(self) -> None:
        data = self.sock.recv(READ)
        if not self._head.endswith(HEAD_END):
            head, end, data = (self._head + data).partition(HEAD_END)
            self._head = head + end
        self._body += data
        whole = len(FRAME) + PIECE + 2
        while len(self._body) >= whole:
            self.take(self._body[len(FRAME) : whole - 2])
            self._body = self._body[whole:]
        self.over = self._body.startswith(b"0")


@frozen
class _Session:
    path: str

    @classmethod
    def made(cls, address: Address, token: str, provider: str) -> _Session:
        body = json.dumps({"provider": provider, "sample_rate": 24_000})
        conn = HTTPConnection(*address, timeout=PATIENCE)
        try:
            conn.request("POST", "/voice/output/session", body, {"Authorization": f"Bearer {token}"})
            answer = conn.getresponse()
            data = answer.read()
        finally:
            conn.close()
        if answer.status != 200:
            raise BenchError(f"no voice session: {answer.status} {data[:200]!r}")
        return cls(str(json.loads(data)["websocket_path"]))


class _Client(_Stamps):
    """Client of the relay with an open WebSocket for speech output."""

    def __init__(self, address: Address, token: str, provider: str) -> None:
        super().__init__()
        self.sound = 0  # bytes
        self.over = False
        self.said_at = 0.0
        self._stamped = provider == HTTP_PROVIDER
        path = _Session.made(address, token, provider).path
        self.sock = socket.create_connection(address, timeout=PATIENCE)
        try:
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.sock.sendall(
                f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:8767\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
                f"Authorization: Bearer {token}\r\n\r\n".encode("ascii")
            )
            data = b""
            while HEAD_END not in data:
                data += self._recv()
            head, _, rest = data.partition(HEAD_END)
            if not head.startswith(b"HTTP/1.1 101"):
                raise BenchError(f"the relay refused a voice socket: {head[:60]!r}")
            self._frames = FrameReader(rest)
            while b'"voice.session.ready"' not in rest:
                rest = self._recv()
                list(self._frames.feed(rest))
        except BaseException:
            self.sock.close()
            raise

    def say(self, text: str) -> None:
        self.said_at = time.monotonic()
        self.sock.sendall(frame(json.dumps({"type": "response.create", "text": text}).encode()))

    def on_readable(self) -> None:
        for opcode, payload in self._frames.feed(self._recv()):
            if opcode == PING:
                self.sock.sendall(frame(payload, PONG))
            elif opcode == TEXT:
                self._take(json.loads(payload))

    def _take(self, event: dict[str, object]) -> None:
        kind = event["type"]
        if kind == "voice.audio.delta":
            self.sound += int(str(event["byte_count"]))
            if self._stamped:
                self.take(b64decode(str(event["audio_base64"])))
        elif kind == "voice.response.done":
            self.over = True
        elif kind == "voice.error":
            raise BenchError(f"no speech: {event.get('message')}")

    def _recv(self) -> bytes:
        data = self.sock.recv(READ)
        if not data:
            raise BenchError("the relay closed a voice socket")
        return data
