"""Cost of the core without sockets, in bare h11 cycles, with its fast paths and with the reference implementations."""

from __future__ import annotations

import json
from collections.abc import Callable
from statistics import median
from typing import cast

import h11
from wsproto.frame_protocol import FrameProtocol

from bench.in_memory import CALLER, LOCAL, PEER, PHONE, MemoryRelay, now
from bench.measure import BenchError, Cycles, Progress, Scale, duel, paired_ratio, race
from bench.report import Column, Row, Table
from bench.wire import FrameReader, phone_answer, request
from fuzz.reference_parsers import without_fast_paths
from svc_proto.commands import Send
from svc_proto.facts import Accepted, ChannelId, Closed, Received, Sent
from svc_proto.wire.connection import Role
from svc_proto.wire.events import Headers, RequestHead, ResponseData, ResponseEnd, ResponseHead
from svc_proto.wire.http1 import Http1Connection
from svc_proto.wire.http2 import Http2Connection
from svc_proto.wire.http2_frames import HEADER
from svc_proto.wire.http2_settings import MAX_STREAMS

__all__ = ["TARGET", "core_section"]

TARGET = 1.0  # bare h11 cycles that an in-memory route may cost in total
ADMISSION_RATIO = 1.03  # permitted cost of a request with admission control, relative to one without
BURSTS = 2  # of each of a pair, for each cycle of a round; short bursts exclude most disturbances
BURST = 5  # requests; a round trip takes as long
PAIRS = 8  # of new relays: memory placement alone makes one relay up to 1 % slower
MOST = 0.25, 0.65  # permitted cost of a route and a bridge round trip, relative to the reference implementations
UNAUTHENTICATED = ChannelId(6)
HOST = Headers(((b"host", b"x"),))
ID_LENGTH = 36  # characters of a request id
H11 = "bare h11, GET /health"
ROUTE = "relay core, GET /health"
ROUTE_KNOWN = "relay core, GET /health, by an authenticated client"
ROUTE_REFERENCE = "relay core by h11 alone, GET /health"
STREAMS = "relay core, HTTP/2, a request that is not finished, of 100 at once"
SOCKETS = "relay core, HTTP/2, a WebSocket, of 100 at once"
BRIDGE = "relay core, bridge round trip"
BRIDGE_REFERENCE = "relay core by h11 and wsproto alone, bridge"
PARTS = "bare h11 + wsproto + json, same messages"

COLUMNS = (
    Column("median_us", "median µs"),
    Column("best_us", "best µs"),
    Column("per_second", "cycles/s", 0),
    Column("ratio", "h11 cycles", 2),
)


def core_section(scale: Scale, progress: Progress) -> list[Table]:
    """Return the table of request and response cycles in memory, with notes on whether the targets are met."""
    progress("core: cycles in memory")
    relay, unknown_host = MemoryRelay(), MemoryRelay()
    token = relay.pair()
    health = request("GET", "/health")
    answer = unknown_host.sent(CALLER, health)
    relay.sent(CALLER, request("GET", "/sessions", token=token))  # authenticates the caller's connection
    bridge = _Bridge(relay, token)
    with without_fast_paths():
        lawful = MemoryRelay()
        lawful_token = lawful.pair()
    contestants: dict[str, Cycles] = {
        H11: _H11Cycle(health, answer).run,
        "Http1Connection, GET /health": _Http1Cycle(health, answer).run,
        ROUTE: _Route(unknown_host, health, answer).run,
        ROUTE_KNOWN: _Route(relay, health, answer).run,
        ROUTE_REFERENCE: _Route(lawful, health, answer).run,
        STREAMS: _Streams(websocket=False).run,
        SOCKETS: _Streams(websocket=True).run,
        PARTS: _Parts(bridge).run,
        BRIDGE: bridge.run,
        BRIDGE_REFERENCE: _Bridge(lawful, lawful_token).run,
    }
    samples = race(contestants, cycles=scale.cycles, rounds=scale.rounds)
    rows = []
    for name, seconds in samples.items():
        middle = median(seconds)
        values = {
            "median_us": middle * 1e6,
            "best_us": min(seconds) * 1e6,
            "per_second": 1 / middle,
            "ratio": paired_ratio(seconds, samples[H11]),
        }
        rows.append(Row(name, values))
    cost = paired_ratio(samples[ROUTE], samples[H11])
    verdict = "PASS" if cost < TARGET else "MISS"
    route = paired_ratio(samples[ROUTE], samples[ROUTE_REFERENCE])
    progress("core: what the door costs")
    admission = _admission_cost(lambda relay: _Route(relay, health, answer).run, rounds=BURSTS * scale.cycles)
    bridged = _admission_cost(_round_trips, rounds=BURSTS * scale.cycles, burst=1)
    seen = "PASS" if max(admission, bridged) < ADMISSION_RATIO else "MISS"
    trip = paired_ratio(samples[BRIDGE], samples[BRIDGE_REFERENCE])
    kept = "PASS" if route < MOST[0] and trip < MOST[1] else "MISS"
    notes = [
        f"{verdict}: an in-memory route costs {cost:.2f} bare h11 cycles in all (target: less than {TARGET:g})",
        f"{kept}: by reference a route costs {route:.2f}, a round trip {trip:.2f} (target: {MOST[0]}, {MOST[1]})",
        f"{seen}: with admission a route costs {admission:.3f}, a round trip {bridged:.3f} (target: {ADMISSION_RATIO})",
        "h11 cycles: the median of the ratios within each round, by CPU time of this process",
    ]
    return [Table("core", "The core, no socket", COLUMNS, rows, notes)]


def _admission_cost(serve: Callable[[MemoryRelay], Cycles], *, rounds: int, burst: int = BURST) -> float:
    """Return the cost with admission control relative to that without: the median of the pairs."""
    costs = []
    for pair in range(PAIRS):
        relays = [MemoryRelay(admission=admission) for admission in ((True, False) if pair % 2 else (False, True))]
        asking, unasked = relays if pair % 2 else reversed(relays)
        costs.append(duel(serve(asking), serve(unasked), rounds=rounds, burst=burst))
    return median(costs)


def _round_trips(relay: MemoryRelay) -> Cycles:
    return _Bridge(relay, relay.pair()).run


class _H11Cycle:
    """Cycles of h11 alone: it parses the request and writes the response of the compared route."""

    def __init__(self, asked: bytes, answer: bytes) -> None:
        self._asked = asked
        self._status, self._headers, self._body = _parse(answer)
        self._conn = h11.Connection(h11.SERVER)
        if self.cycle() != answer:
            raise BenchError("h11 does not write the same response")

    def cycle(self) -> bytes:
        conn = self._conn
        conn.receive_data(self._asked)
        while type(conn.next_event()) is not h11.EndOfMessage:
            pass
        head = h11.Response(status_code=self._status, headers=list(self._headers), reason=b"OK")
        out = [conn.send(head), conn.send(h11.Data(data=self._body)), conn.send(h11.EndOfMessage())]
        conn.start_next_cycle()
        return b"".join(out)

    def run(self, cycles: int) -> None:
        for _ in range(cycles):
            self.cycle()


class _Http1Cycle:
    """Cycles of `Http1Connection` alone: h11 with this project's events, checks and limits."""

    def __init__(self, asked: bytes, answer: bytes) -> None:
        self._asked = asked
        self._status, self._headers, self._body = _parse(answer)
        self._conn = Http1Connection(Role.SERVER, entropy=bytes)
        if self.cycle() != answer:
            raise BenchError("Http1Connection does not write the same response")

    def cycle(self) -> bytes:
        conn = self._conn
        conn.receive_data(self._asked)
        head = cast("RequestHead", conn.next_event())
        while conn.next_event() is not None:
            pass
        conn.send(ResponseHead(head.stream, self._status, Headers(self._headers)))
        conn.send(ResponseData(head.stream, self._body))
        conn.send(ResponseEnd(head.stream))
        return conn.data_to_send()

    def run(self, cycles: int) -> None:
        for _ in range(cycles):
            self.cycle()


class _Route:
    """Cycles of a whole route of the relay in memory: from the received request to the sent response."""

    def __init__(self, relay: MemoryRelay, asked: bytes, answer: bytes) -> None:
        self._engine = relay.engine
        self._asked = asked
        self._size = len(answer)

    def run(self, cycles: int) -> None:
        engine, asked, written = self._engine, self._asked, 0
        for _ in range(cycles):
            *_, send = engine.handle(Received(CALLER, asked), now())
            size = len(cast("Send", send).data)
            engine.next_deadline()
            engine.handle(Sent(CALLER, size), now())
            engine.next_deadline()
            written += size
        if written != cycles * self._size:
            raise BenchError("the relay's answer changed")


class _Streams:
    """Cycles of unauthenticated HTTP/2 connections with up to 100 streams each; a cycle is one stream."""

    def __init__(self, *, websocket: bool) -> None:
        self._relay = MemoryRelay(admission=False)
        client, server = (Http2Connection(role, entropy=bytes) for role in (Role.CLIENT, Role.SERVER))
        self._frames = [client.data_to_send()]
        server.receive_data(self._frames[0])
        server.next_event()
        client.receive_data(server.data_to_send())  # the settings allow WebSockets
        client.next_event()
        for _ in range(MAX_STREAMS):
            head = RequestHead(client.next_stream, "GET", "/ws" if websocket else "/health", HOST, websocket)
            client.send(head)
            self._frames.append(client.data_to_send())
        told = self._visit(MAX_STREAMS)
        if len(told) < MAX_STREAMS * websocket * HEADER:
            raise BenchError("the relay opened no WebSockets over HTTP/2")

    def _visit(self, streams: int) -> bytes:
        relay = self._relay
        relay.tell(Accepted(UNAUTHENTICATED, PEER, LOCAL))
        told = relay.sent(UNAUTHENTICATED, b"".join(self._frames[: streams + 1]))
        relay.tell(Closed(UNAUTHENTICATED, ""))
        return told

    def run(self, cycles: int) -> None:
        for done in range(0, cycles, MAX_STREAMS):
            self._visit(min(MAX_STREAMS, cycles - done))


class _Bridge:
    """Cycles of a caller's command to the phone and back, without the phone's own work."""

    def __init__(self, relay: MemoryRelay, token: str) -> None:
        self._engine = relay.engine
        self.asked = request("POST", "/tap", token=token, body=b'{"x":120,"y":640}')
        self.command = relay.sent_to(PHONE, CALLER, self.asked)
        ((_, self.message),) = FrameReader().feed(self.command)
        request_id = json.loads(self.message)["payload"]["request_id"]
        self._at = self.command.index(request_id.encode())
        self.reply = phone_answer(request_id)
        self._reply_parts = self.reply.split(request_id.encode())
        self.answer = relay.sent_to(CALLER, PHONE, self.reply)
        if not self.answer.startswith(b"HTTP/1.1 200"):
            raise BenchError(f"the bridge answered {self.answer[:40]!r}")

    def run(self, cycles: int) -> None:
        engine, asked, at, parts = self._engine, self.asked, self._at, self._reply_parts
        for _ in range(cycles):
            *_, send = engine.handle(Received(CALLER, asked), now())
            command = cast("Send", send).data
            engine.next_deadline()
            engine.handle(Sent(PHONE, len(command)), now())
            engine.next_deadline()
            reply = command[at : at + ID_LENGTH].join(parts)  # the phone
            *_, send = engine.handle(Received(PHONE, reply), now())
            engine.next_deadline()
            engine.handle(Sent(CALLER, len(cast("Send", send).data)), now())
            engine.next_deadline()


class _Parts:
    """Cycles of the libraries alone on the messages of a bridge round trip: a lower bound for `_Bridge`."""

    def __init__(self, bridge: _Bridge) -> None:
        self._asked = bridge.asked
        self._message = bridge.message.decode()
        self._reply = bridge.reply
        self._status, self._headers, self._body = _parse(bridge.answer)
        self._conn = h11.Connection(h11.SERVER)
        self._frames = FrameProtocol(client=False, extensions=[])

    def run(self, cycles: int) -> None:
        conn, frames = self._conn, self._frames
        payload, result = json.loads(self._message), json.loads(self._body)
        for _ in range(cycles):
            conn.receive_data(self._asked)
            while type(event := conn.next_event()) is not h11.EndOfMessage:
                if type(event) is h11.Data:
                    json.loads(bytes(event.data))
            frames.send_data(json.dumps(payload, separators=(",", ":")))
            frames.receive_bytes(self._reply)
            for message in frames.received_frames():
                json.loads(cast("str", message.payload))
            body = json.dumps(result, separators=(",", ":")).encode()
            conn.send(h11.Response(status_code=self._status, headers=list(self._headers), reason=b"OK"))
            conn.send(h11.Data(data=body))
            conn.send(h11.EndOfMessage())
            conn.start_next_cycle()


def _parse(answer: bytes) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
    """Return status, header fields and body of a response."""
    head, _, body = answer.partition(b"\r\n\r\n")
    first, *lines = head.split(b"\r\n")
    fields = [line.split(b": ", 1) for line in lines]
    return int(first.split()[1]), [(name, value) for name, value in fields], body
