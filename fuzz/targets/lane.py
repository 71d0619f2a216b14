"""The plain lane of HTTP/1.1 and the law, h11, on the same bytes: nobody can tell which of the two is in charge.

Both are fed the same pieces, asked for events equally often and told to say the same. What comes of it is compared
after each step: events, errors with their texts, every property, and the bytes that are to be sent.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from random import Random
from typing import TypeAlias
from zlib import crc32

from fuzz.mutate import chunked
from svc_proto.basics.errors import LocalProtocolError, RemoteProtocolError
from svc_proto.wire.connection import Connection, Role
from svc_proto.wire.events import (
    AcceptSocket,
    CloseSocket,
    Event,
    Headers,
    Informational,
    RequestEnd,
    RequestHead,
    ResponseData,
    ResponseElsewhere,
    ResponseEnd,
    ResponseHead,
    StreamId,
    TextMessage,
)
from svc_proto.wire.http1 import BODILESS, Http1Connection
from svc_proto.wire.http1_plain import PlainConnection
from svc_proto.wire.limits import Limits

__all__ = ["LIMITS", "Both", "MisusedError", "compare", "lane"]

Fields: TypeAlias = tuple[tuple[bytes, bytes], ...]

LIMITS = Limits(max_head=600, max_fields=8)
DATE = b"Sun, 06 Nov 1994 08:49:37 GMT"
_BEGINNING = re.compile(rb"(?=\b(?:GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS) /)")
PROPERTIES = ("must_close", "paused", "idle", "held", "head_pending")
STATUSES = (200, 200, 200, 404, 500, 299, 999, 204, 204, 304, 205)
JSON = (b"content-type", b"application/json")
PLAIN: tuple[Fields, ...] = (
    (),
    (JSON,),
    (JSON, (b"x-a", b"1 2")),
    (JSON, (b"vary", b"origin"), JSON),
    ((b"X-Upper", b"1"),),
)
ODD: tuple[Fields, ...] = (
    ((b"Connection", b"close"),),
    ((b"Content-Length", b"3"),),
    ((b"HOST", b"b"), JSON),
    ((b"Transfer-Encoding", b"chunked"),),
    ((b"Date", b"x"), (b"X", b"1"), (b"x", b"2")),
    ((b"x", b""),),
    ((b"x", b"a\tb"),),
    ((b"x", b"\xff"),),
    ((b"x", b" a"),),
    ((b"x", b"a\r\nb: c"),),
    ((b"x y", b"a"),),
    ((b"x: y", b"a"),),
    ((b"connection", b"close"),),
    ((b"connection", b"keep-alive"),),
    ((b"content-length", b"3"),),
    ((b"content-length", b"x"),),
    ((b"host", b"b"), JSON),
    ((b"transfer-encoding", b"chunked"),),
    ((b"upgrade", b"h2c"),),
    ((b"long", b"l" * 2048),),
)
ODD_HEADS = ((204, DATE), (200, b"a\r\nb: c"), (200, b""), (205, DATE), (999, DATE), (1000, DATE), (199, DATE))
BODIES = (b"", b"", b"ok", b'{"ok":true}', b"x" * 300)


def lane(data: bytes) -> None:
    """Bytes from a peer; where they are cut, and what is said to them, follows from the bytes."""
    compare(data, Random(crc32(data)))


def compare(data: bytes, rng: Random) -> int:
    """Play one script to both; how many messages the lane had all to itself."""
    both = Both()
    with suppress(MisusedError):
        _play(both, data, rng)
    return both.alone


def _play(both: Both, data: bytes, rng: Random) -> None:
    for piece in _pieces(data, rng):
        both.hear(piece, at_once=rng.random() < 0.7, begin_only=rng.random() < 0.2)
        if rng.random() < 0.6:
            both.take(4)
            both.answer(StreamId(both.stream), 200, rng.choice(PLAIN), rng.choice(BODIES))
        else:
            for _ in range(rng.choice((0, 1, 1, 2, 3, 6))):
                _step(both, rng)
    if rng.random() < 0.3:
        both.end()
        both.take(4)
    for _ in range(rng.choice((0, 0, 3))):
        _step(both, rng)
    both.flush()


def _pieces(data: bytes, rng: Random) -> list[bytes]:
    """Cut where requests seem to begin, which is how most clients send them, or anywhere."""
    kind = rng.random()
    if kind < 0.7:
        return [piece for piece in _BEGINNING.split(data) if piece]
    return chunked(data, rng) if kind < 0.9 else [data]


def _step(both: Both, rng: Random) -> None:
    stream = StreamId(both.stream)
    kind = rng.random()
    if kind < 0.4:
        both.take(rng.choice((1, 1, 2, 9)))
    elif kind < 0.75:
        fields = rng.choice(PLAIN) if rng.random() < 0.85 else rng.choice(ODD)
        other = StreamId(stream + rng.choice((0,) * 18 + (-1, 1)))
        both.answer(other, rng.choice(STATUSES), fields, rng.choice(BODIES))
    elif kind < 0.85:
        both.flush()
    elif kind < 0.95:
        both.say(*rng.choice(_sayings(stream)))
    elif kind < 0.98:
        both.say(*rng.choice(_sayings(StreamId(rng.choice((0, 0, stream + 1))))))
    else:
        both.trust()


@cache
def _sayings(stream: StreamId) -> tuple[tuple[Event, ...], ...]:
    sized = Headers(((b"content-length", b"2"),))
    chunked = ResponseHead(stream, 200, Headers(((b"date", DATE), JSON)))
    named = ResponseHead(stream, 200, Headers(((b"date", DATE), JSON, (b"X-Run-Id", b"1"))))
    return (
        (chunked, ResponseData(stream, b"ok"), ResponseData(stream, b""), ResponseData(stream, b"x" * 20)),
        (chunked, ResponseData(stream, b"ok"), ResponseEnd(stream)),
        (chunked, ResponseEnd(stream, Headers(((b"x-a", b"b"),)))),
        (named, ResponseData(stream, b"ok"), ResponseEnd(stream)),
        (chunked,),
        (chunked, ResponseElsewhere(stream, 2)),
        *((ResponseHead(stream, status, Headers(((b"date", value),))),) for status, value in ODD_HEADS),
        (ResponseHead(stream, 200), ResponseData(stream, b"ok"), ResponseEnd(stream)),
        (ResponseHead(stream, 200, sized), ResponseData(stream, b"ok"), ResponseEnd(stream)),
        (ResponseHead(stream, 200, sized), ResponseElsewhere(stream, 2), ResponseEnd(stream)),
        (ResponseHead(stream, 200),),
        (ResponseData(stream, b"ok"),),
        (ResponseEnd(stream),),
        (Informational(stream, 100),),
        (AcceptSocket(stream),),
        (TextMessage(stream, "hi"),),
        (CloseSocket(stream),),
        (RequestHead(stream, "GET", "/"),),
    )


class MisusedError(Exception):
    """We have said what h11 does not allow: no program goes on after that."""


class Both:
    """The law and the lane, and whatever is done to them."""

    def __init__(self, limits: Limits = LIMITS) -> None:
        self.law = Http1Connection(Role.SERVER, limits=limits, entropy=bytes)
        self.lane = PlainConnection(limits=limits, entropy=bytes)
        self.stream = 0  # of the last request that was told
        self.alone = 0  # messages that the lane read and answered by itself

    def hear(self, data: bytes, *, at_once: bool = False, begin_only: bool = False) -> bool:
        """Bytes come; with `at_once` the lane is asked for a whole request first. Whether it gave one."""
        self.law.receive_data(data)
        taken = self.lane.plain(data) if at_once else None
        if taken is None:
            self.lane.receive_data(data)
        else:
            head, body = taken
            self._heard(head)
            assert self.law.next_event() == head, "the lane reads another head"
            if begin_only:
                self.lane.retell()
            else:
                rest = list(iter(self.law.next_event, None))
                told = b"".join(getattr(event, "data", b"") for event in rest)
                assert told == body, "the lane reads another body"
                assert rest[-1] == RequestEnd(head.stream), "the lane reads another end"
        self._check()
        return taken is not None

    def end(self) -> None:
        """The peer says no more."""
        self._do(lambda connection: connection.receive_eof())

    def take(self, n: int) -> Event | None:
        """Ask for some events; the last one."""
        event = None
        for _ in range(n):
            event = self._do(lambda connection: connection.next_event())
            if isinstance(event, RequestHead):
                self._heard(event)
        return event if isinstance(event, Event) else None

    def say(self, *events: Event) -> None:
        """Say events, one by one, up to the first that may not be said."""
        problem = self._do(lambda connection: _say(connection, events))
        if isinstance(problem, str) and problem.startswith("HTTP/1.1 does not allow"):
            raise MisusedError

    def answer(self, stream: StreamId, status: int, fields: Fields, body: bytes) -> bool:
        """Say a whole response, the lane if it can at once. Whether it could."""
        bodiless = status in BODILESS
        size = () if bodiless else ((b"content-length", b"%d" % len(body)),)
        events: list[Event] = [ResponseHead(stream, status, Headers(((b"date", DATE), *fields, *size)))]
        if body and not bodiless:
            events.append(ResponseData(stream, body))
        events.append(ResponseEnd(stream))
        at_once = self.lane.answer(stream, status, DATE, fields, body)
        if not at_once:
            self.say(*events)
            return False
        self.alone += 1
        assert _say(self.law, events) is None, "the law does not allow what the lane has said"
        self.flush()
        return True

    def flush(self) -> bytes:
        """What is to be sent."""
        said = self._do(lambda connection: connection.data_to_send())
        assert isinstance(said, bytes)
        return said

    def trust(self) -> None:
        """The peer is known."""
        self._do(lambda connection: connection.trust(StreamId(self.stream)))

    def _heard(self, head: RequestHead) -> None:
        self.stream = head.stream

    def _do(self, what: Callable[[Connection], object]) -> object:
        law, lane = _outcome(what, self.law), _outcome(what, self.lane)
        assert lane == law, f"the lane: {lane!r}, the law: {law!r}"
        self._check()
        return law

    def _check(self) -> None:
        for name in PROPERTIES:
            law, lane = getattr(self.law, name), getattr(self.lane, name)
            assert lane == law, f"{name}: the lane: {lane!r}, the law: {law!r}"


def _say(connection: Connection, events: tuple[Event, ...] | list[Event]) -> str | None:
    try:
        for event in events:
            connection.send(event)
    except LocalProtocolError as error:
        return str(error)
    return None


def _outcome(what: Callable[[Connection], object], connection: Connection) -> object:
    try:
        return what(connection)
    except RemoteProtocolError as error:
        return (error.status, error.close_code, error.code, str(error))
