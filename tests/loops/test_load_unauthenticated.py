"""Test of a relay's memory and processor time under costly input of unauthenticated connections."""

import logging
import os
import socket
import subprocess
import time
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from statistics import median

import psutil
import pytest

from svc_proto.wire.connection import Role
from svc_proto.wire.events import Headers, RequestData, RequestHead
from svc_proto.wire.http2 import Http2Connection
from tests.loops.clients import PATIENCE, HttpClient, WebSocketTestClient
from tests.loops.environment import bearer
from tests.loops.raw_http import CONTINUATION, TEXT, frame
from tests.loops.test_load_descriptors import Scarce

FIGURES = logging.getLogger(__name__)  # shown with `--log-cli-level INFO`
UNAUTHENTICATED, FEWER = 1000, 100
GROWTH, LEFT, AGAIN = 96, 28, 8  # MiB: with the connections, after them, and of that by a second crowd
GONE = 10.0  # s after the disconnection, at which LEFT applies
ARRIVALS = 2  # connections of the crowd for each command of the household
PAUSE = 0.1  # s between commands after the disconnection
ROUND_TRIP = 0.25  # s of processor time of the relay, from a request to its answer
UNUSUAL = 100  # of this many round trips, one may take longer, for example during a garbage collection
MIB = 1024 * 1024
UPGRADE = (
    b"GET /ws HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: c2l4dGVlbiBieXRlcyBvaw==\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n"
)
LARGEST = b"A" * 65_000  # the most that is permitted before `system/auth`


def deflated(size: int) -> bytes:
    """Return a compressed WebSocket frame: the beginning of a JSON message with a text of `size` letters."""
    deflater = zlib.compressobj(wbits=-15)
    packed = deflater.compress(b'{"a":"' + b"A" * size) + deflater.flush(zlib.Z_SYNC_FLUSH)
    return frame(TEXT, packed, fin=False, rsv=4)


def fragments() -> bytes:
    return frame(TEXT, b"A", fin=False) + b"".join(frame(CONTINUATION, bytes(1000), fin=False) for _ in range(64))


def over_http2(streams: int, *, websocket: bool, said: bytes) -> bytes:
    """Return a client's bytes of an HTTP/2 connection with this number of requests or WebSockets.

    Each of them sends `said`.
    """
    client = Http2Connection(Role.CLIENT, entropy=os.urandom)
    server = Http2Connection(Role.SERVER, entropy=os.urandom)
    out = client.data_to_send()
    server.receive_data(out)
    while server.next_event() is not None:
        pass
    client.receive_data(server.data_to_send())  # has the setting that allows WebSockets
    while client.next_event() is not None:
        pass
    for _ in range(streams):
        stream = client.next_stream
        fields = [(b"host", b"x")] if websocket else [(b"host", b"x"), (b"content-length", b"60000")]
        client.send(RequestHead(stream, "GET", "/ws" if websocket else "/health", Headers(fields), websocket))
        if not websocket:
            client.send(RequestData(stream, said))
        out += client.data_to_send()
        for at in range(0, len(said), 16_000) if websocket else ():  # DATA, RFC 9113 section 6.1
            piece = said[at : at + 16_000]
            out += len(piece).to_bytes(3, "big") + bytes(2) + stream.to_bytes(4, "big") + piece
    return out


WORST = {
    "heads": b"GET /health HTTP/1.1\r\nHost: x\r\n" + b"x: " + b"A" * 31_000,
    "bodies": b"GET /health HTTP/1.1\r\nHost: x\r\nContent-Length: 65000\r\nx: " + b"A" * 31_000 + b"\r\n\r\nA",
    "chunks": b"GET /health HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1\r\nA\r\n" * 1000,
    "refused bodies": b"POST /pairing/register HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n" + LARGEST,
    "messages too large": UPGRADE + deflated(8_388_000),
    "messages": UPGRADE + frame(TEXT, LARGEST, fin=False),
    "deflated messages": UPGRADE + deflated(65_000),
    "fragments": UPGRADE + fragments(),
    "HTTP/2 bodies": over_http2(100, websocket=False, said=bytes(600)),
    "HTTP/2 sockets": over_http2(100, websocket=True, said=b""),
    "HTTP/2 messages": over_http2(2, websocket=True, said=frame(TEXT, LARGEST[:60_000], fin=False)),
}

TOLD = ("messages", "deflated messages", "HTTP/2 messages")  # tested without --full, which tests all of them


def memory(relay: Scarce) -> int:
    """Return the resident memory of the relay in bytes."""
    return psutil.Process(relay.process.pid).memory_info().rss


def processor_time(process: int) -> float:
    """Return the processor time of a process's first thread in seconds."""
    return int(Path(f"/proc/{process}/schedstat").read_text().split()[0]) / 1e9


class Household:
    """A paired phone, and a caller that sends commands to it."""

    def __init__(self, relay: Scarce, stack: ExitStack) -> None:
        wires = [stack.enter_context(closing(relay.connect())) for _ in range(2)]
        self._caller, client = (HttpClient(wire, "127.0.0.1", os.urandom, deflate=False) for wire in wires)
        self._phone = WebSocketTestClient(client)
        self._phone.sign_in(pairing_code=self._caller.request("POST", "/pairing").json["code"], device_name="raw")
        self._phone.send_envelope("bridge", "bridge.status", {"accessibility_enabled": True})
        self._phone.pong()  # the phone is connected before the first command
        self._relay = relay.process.pid
        self.times: list[float] = []  # of round trips, s by the clock
        self.costs: list[float] = []  # of round trips, s of processor time of the relay

    def act(self) -> None:
        """Send one command, answer it as the phone and receive the answer as the caller; record the times it took."""
        before = processor_time(self._relay)
        began = time.monotonic()
        asked = self._caller.begin("GET", "/ping", headers=bearer(self._phone.token))
        self._phone.respond(self._phone.command()["request_id"], {})
        assert asked.finish().status == 200
        self.times.append(time.monotonic() - began)
        self.costs.append(processor_time(self._relay) - before)


def crowd(relay: Scarce, said: bytes, size: int) -> Iterator[socket.socket]:
    """Connect `size` clients that send `said`, at most 200 from each address (127.1.0.1, …); yield their sockets."""
    for number in range(size):
        source = f"127.1.{number // 200}.1"
        unknown_host = socket.create_connection(("127.0.0.1", relay.port), PATIENCE, (source, 0))
        unknown_host.setblocking(False)
        with suppress(BlockingIOError, ConnectionError):
            unknown_host.send(said)
        yield unknown_host


def visited(relay: Scarce, household: Household, said: bytes, size: int) -> int:
    """Connect a crowd while the household goes on, and disconnect it; return the greatest memory in use, in bytes."""
    peak = 0
    with ExitStack() as stack:
        for number, unknown_host in enumerate(crowd(relay, said, size)):
            stack.callback(unknown_host.close)
            if not number % ARRIVALS:
                household.act()
            peak = max(peak, memory(relay))
        household.act()
        return max(peak, memory(relay))


def left(relay: Scarce, household: Household, before: int, *, full: bool) -> float:
    """Send commands for a while; return how many MiB more than `before` are in use then.

    With `full` this takes `GONE` seconds; otherwise it ends as soon as fewer than `LEFT` MiB are left, or after
    `PATIENCE` seconds.
    """
    gone = time.monotonic()
    within = GONE if full else PATIENCE
    while time.monotonic() - gone < within and (full or memory(relay) - before >= LEFT * MIB):
        household.act()
        with suppress(subprocess.TimeoutExpired):
            relay.process.wait(PAUSE)
    return (memory(relay) - before) / MIB


@pytest.mark.skipif(not Path("/proc/self/schedstat").is_file(), reason="reads the time of a process from /proc")
@pytest.mark.parametrize(
    "worst", [pytest.param(kind, marks=() if kind in TOLD else pytest.mark.full) for kind in WORST]
)
def test_costly_input_of_unauthenticated_connections(runtime: str, tmp_path: Path, full: bool, worst: str) -> None:
    relay = Scarce(runtime, tmp_path, few=False)
    size = UNAUTHENTICATED if full else FEWER
    try:
        with ExitStack() as stack:
            household = Household(relay, stack)
            for _ in range(20):
                household.act()
            household.times.clear()
            household.costs.clear()
            before = memory(relay)
            grown = (visited(relay, household, WORST[worst], size) - before) / MIB
            behind = left(relay, household, before, full=full)
            trips = [seconds * 1e3 for seconds in (median(household.times), max(household.times), max(household.costs))]
            told = "%s: %.0f MiB, %.0f left; round trip %.0f ms, worst %.0f, processor time at most %.0f"
            FIGURES.info(told, worst, grown, behind, *trips)
            assert grown < GROWTH
            assert behind < LEFT
            assert sorted(household.costs)[-1 - len(household.costs) // UNUSUAL] < ROUND_TRIP
            if full and worst.startswith("HTTP/2"):
                visited(relay, household, WORST[worst], size)
                again = left(relay, household, before, full=full)
                FIGURES.info("%s: %.0f MiB left by a second crowd", worst, again)
                assert again < min(LEFT, behind + AGAIN)
    finally:
        relay.process.kill()
        relay.process.wait()
