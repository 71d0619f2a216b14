"""Fuzz target of HTTP/1.1 servers: the fast path against h11 on equal bytes (`fuzz.targets.differential`)."""

from __future__ import annotations

import re
from contextlib import suppress
from functools import cache
from random import Random
from typing import TypeAlias
from zlib import crc32

from fuzz.mutation import split_randomly
from fuzz.targets.differential import DifferentialPair, LocalMisuseError, send_events
from svc_proto.wire import events
from svc_proto.wire.connection import Role
from svc_proto.wire.http1 import BODILESS, Http1Connection
from svc_proto.wire.http1_fast_path_server import FastPathServerConnection
from svc_proto.wire.limits import Limits

Fields: TypeAlias = tuple[tuple[bytes, bytes], ...]

LIMITS = Limits(max_head=600, max_fields=8)
DATE = b"Sun, 06 Nov 1994 08:49:37 GMT"
_BEGINNING = re.compile(rb"(?=\b(?:GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS) /)")
STATUSES = (200, 200, 200, 404, 500, 299, 999, 204, 204, 304, 205)
JSON = (b"content-type", b"application/json")
PLAIN: tuple[Fields, ...] = (
    (), (JSON,), (JSON, (b"x-a", b"1 2")), (JSON, (b"vary", b"origin"), JSON), ((b"X-Upper", b"1"),)
)  # fmt: skip
ODD: tuple[Fields, ...] = (
    ((b"Connection", b"close"),), ((b"Content-Length", b"3"),), ((b"HOST", b"b"), JSON),
    ((b"Transfer-Encoding", b"chunked"),), ((b"Date", b"x"), (b"X", b"1"), (b"x", b"2")), ((b"x", b""),),
    ((b"x", b"a\tb"),), ((b"x", b"\xff"),), ((b"x", b" a"),), ((b"x", b"a\r\nb: c"),), ((b"x y", b"a"),),
    ((b"x: y", b"a"),), ((b"connection", b"close"),), ((b"connection", b"keep-alive"),), ((b"content-length", b"3"),),
    ((b"content-length", b"x"),), ((b"host", b"b"), JSON), ((b"transfer-encoding", b"chunked"),),
    ((b"upgrade", b"h2c"),), ((b"long", b"l" * 2048),)
)  # fmt: skip
ODD_HEADS = ((204, DATE), (200, b"a\r\nb: c"), (200, b""), (205, DATE), (999, DATE), (1000, DATE), (199, DATE))
BODIES = (b"", b"", b"ok", b'{"ok":true}', b"x" * 300)


def http1_server_fast_path(data: bytes) -> None:
    """Compare fast path and h11 for the bytes of a client, which also determine their splitting and the responses."""
    compare(data, Random(crc32(data)))


def compare(data: bytes, rng: Random) -> int:
    """Compare both implementations on one connection that receives `data`.

    Return the number of responses that the fast path sent alone.
    """
    both = ServerPair()
    with suppress(LocalMisuseError):
        _play(both, data, rng)
    return both.alone


def _play(both: ServerPair, data: bytes, rng: Random) -> None:
    for piece in _pieces(data, rng):
        at_once, begin_only = rng.random() < 0.7, rng.random() < 0.2
        if at_once:
            both.hear_request(piece, begin_only=begin_only)
        else:
            both.feed(piece)
        if rng.random() < 0.6:
            both.next_events(4)
            both.answer(events.StreamId(both.stream), 200, rng.choice(PLAIN), rng.choice(BODIES))
        else:
            for _ in range(rng.choice((0, 1, 1, 2, 3, 6))):
                _step(both, rng)
    if rng.random() < 0.3:
        both.end()
        both.next_events(4)
    for _ in range(rng.choice((0, 0, 3))):
        _step(both, rng)
    both.flush()


def _pieces(data: bytes, rng: Random) -> list[bytes]:
    kind = rng.random()
    if kind < 0.7:
        return [piece for piece in _BEGINNING.split(data) if piece]
    return split_randomly(data, rng) if kind < 0.9 else [data]


def _step(both: ServerPair, rng: Random) -> None:
    stream = events.StreamId(both.stream)
    kind = rng.random()
    if kind < 0.4:
        both.next_events(rng.choice((1, 1, 2, 9)))
    elif kind < 0.75:
        fields = rng.choice(PLAIN) if rng.random() < 0.85 else rng.choice(ODD)
        other = events.StreamId(stream + rng.choice((0,) * 18 + (-1, 1)))
        both.answer(other, rng.choice(STATUSES), fields, rng.choice(BODIES))
    elif kind < 0.85:
        both.flush()
    elif kind < 0.95:
        both.send_events(*rng.choice(_sayings(stream)))
    elif kind < 0.98:
        both.send_events(*rng.choice(_sayings(events.StreamId(rng.choice((0, 0, stream + 1))))))
    else:
        both.lift_limits()


@cache
def _sayings(stream: events.StreamId) -> tuple[tuple[events.Event, ...], ...]:
    sized = events.Headers(((b"content-length", b"2"),))
    chunked = events.ResponseHead(stream, 200, events.Headers(((b"date", DATE), JSON)))
    named = events.ResponseHead(stream, 200, events.Headers(((b"date", DATE), JSON, (b"X-Run-Id", b"1"))))
    return (
        (
            chunked,
            events.ResponseData(stream, b"ok"),
            events.ResponseData(stream, b""),
            events.ResponseData(stream, b"x" * 20),
        ),
        (chunked, events.ResponseData(stream, b"ok"), events.ResponseEnd(stream)),
        (chunked, events.ResponseEnd(stream, events.Headers(((b"x-a", b"b"),)))),
        (named, events.ResponseData(stream, b"ok"), events.ResponseEnd(stream)),
        (chunked,),
        (chunked, events.ResponseBodyDelegated(stream, 2)),
        *((events.ResponseHead(stream, status, events.Headers(((b"date", value),))),) for status, value in ODD_HEADS),
        (events.ResponseHead(stream, 200), events.ResponseData(stream, b"ok"), events.ResponseEnd(stream)),
        (events.ResponseHead(stream, 200, sized), events.ResponseData(stream, b"ok"), events.ResponseEnd(stream)),
        (events.ResponseHead(stream, 200, sized), events.ResponseBodyDelegated(stream, 2), events.ResponseEnd(stream)),
        (events.ResponseHead(stream, 200),),
        (events.ResponseData(stream, b"ok"),),
        (events.ResponseEnd(stream),),
        (events.Informational(stream, 100),),
        (events.AcceptWebSocket(stream),),
        (events.TextMessage(stream, "hi"),),
        (events.CloseWebSocket(stream),),
        (events.RequestHead(stream, "GET", "/"),),
    )


class ServerPair(DifferentialPair[Http1Connection, FastPathServerConnection]):
    """h11 and the fast path of one server connection."""

    def __init__(self, limits: Limits = LIMITS) -> None:
        reference = Http1Connection(Role.SERVER, limits=limits, entropy=bytes)
        super().__init__(reference, FastPathServerConnection(limits=limits, entropy=bytes), stream=0)
        self.alone = 0  # responses that the fast path sent alone

    def on_event(self, event: events.Event) -> None:
        """Record the stream of a request: the next responses are sent on it."""
        if isinstance(event, events.RequestHead):
            self.stream = event.stream

    def hear_request(self, data: bytes, *, begin_only: bool = False) -> bool:
        """Pass bytes to both implementations; return whether the fast path parsed them as one whole request."""
        taken = self.fast_path.receive_simple_request(data)
        if taken is None:
            self.feed(data)
            return False
        head, body = taken
        self.on_event(head)
        self.reference.receive_data(data)
        assert self.reference.next_event() == head, "the fast path reads another head"
        if begin_only:
            self.fast_path.replay_as_events()
        else:
            rest = list(iter(self.reference.next_event, None))
            told = b"".join(getattr(event, "data", b"") for event in rest)
            assert told == body, "the fast path reads another body"
            assert rest[-1] == events.RequestEnd(head.stream), "the fast path reads another end"
        self.check()
        return True

    def answer(self, stream: events.StreamId, status: int, fields: Fields, body: bytes) -> bool:
        """Send a whole response by both implementations; return whether the fast path accepted it in one call."""
        bodiless = status in BODILESS
        size = () if bodiless else ((b"content-length", b"%d" % len(body)),)
        response: list[events.Event] = [
            events.ResponseHead(stream, status, events.Headers(((b"date", DATE), *fields, *size)))
        ]
        if body and not bodiless:
            response.append(events.ResponseData(stream, body))
        response.append(events.ResponseEnd(stream))
        at_once = self.fast_path.send_simple_response(stream, status, DATE, fields, body)
        if not at_once:
            self.send_events(*response)
            return False
        self.alone += 1
        assert send_events(self.reference, response) is None, "the reference does not allow what the fast path sent"
        self.flush()
        return True
