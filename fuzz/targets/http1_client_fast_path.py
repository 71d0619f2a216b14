"""Fuzz target of HTTP/1.1 clients: the fast path against h11, for requests and their responses."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from random import Random
from zlib import crc32

from fuzz.mutation import split_randomly
from fuzz.targets.differential import DifferentialPair, LocalMisuseError
from svc_proto.wire import events
from svc_proto.wire.connection import Role
from svc_proto.wire.http1 import Http1Connection
from svc_proto.wire.http1_fast_path_client import FastPathClientConnection
from svc_proto.wire.limits import Limits

LIMITS = Limits(max_head=600, max_fields=8)
ONE = events.StreamId(1)
HOST, CLOSE, LENGTH = (b"host", b"a:80"), (b"connection", b"close"), (b"content-length", b"5")
PLAIN = (
    (HOST, CLOSE),
    (HOST, CLOSE, (b"accept", b"text/event-stream"), (b"Authorization", b"Bearer a")),
    (HOST, CLOSE, LENGTH),
    (HOST, CLOSE, LENGTH),
)
ODD = (
    (HOST,), (CLOSE, HOST), (CLOSE,), (), (HOST, HOST, CLOSE), (HOST, CLOSE, CLOSE), (HOST, (b"connection", b"Close")),
    (HOST, (b"connection", b"keep-alive")), (HOST, CLOSE, (b"transfer-encoding", b"chunked")),
    (HOST, CLOSE, (b"expect", b"100-continue")), (HOST, CLOSE, (b"content-length", b"x")),
    (HOST, CLOSE, (b"content-length", b"05")), (HOST, CLOSE, (b"content-length", b"5, 5")), (HOST, CLOSE, (b"x", b"")),
    (HOST, CLOSE, (b"content-length", b"1" * 19)),
    (HOST, CLOSE, (b"x", b" a")), (HOST, CLOSE, (b"x", b"\xff")), (HOST, CLOSE, (b"x y", b"a")),
    (HOST, CLOSE, (b"x", b"a\r\nb: c"))
)  # fmt: skip
BODIES = ((b"abcde",), (b"ab", b"", b"cde"), (b"abcde", b""))
METHODS = ("GET", "GET", "POST", "POST", "DELETE")
ODD_METHODS = ("HEAD", "BREW", "get", "G T", "")
ODD_TARGETS = ("*", "a", "http://h/", "/ a", "/\u00e9", "/\ud800", "")


def http1_client_fast_path(data: bytes) -> None:
    """Compare fast path and h11 for the bytes of a server, which also determine their splitting and the request."""
    compare_calls(data, Random(crc32(data)))


def compare_calls(data: bytes, rng: Random) -> int:
    """Compare both implementations on one call with the response `data`.

    Return whether the fast path handled the call alone.
    """
    both = ClientPair()
    with suppress(LocalMisuseError):
        _play(both, data, rng)
    return both.fast_path._reference is None


def _play(both: ClientPair, data: bytes, rng: Random) -> None:
    both.send_events(*_asked(rng))
    both.flush()
    pieces = [data] if rng.random() < 0.5 else split_randomly(data, rng)
    if rng.random() < 0.5:
        head, end, body = data.partition(b"\r\n\r\n")
        first = rng.randrange(len(body) + 1)
        pieces = [head + end + body[:first], *split_randomly(body[first:], rng)]
    for piece in pieces:
        both.feed(piece)
        for _ in range(rng.choice((0, 1, 2, 9))):
            both.next_events()
        if rng.random() < 0.03:
            both.send_events(rng.choice(_odd()))
    if rng.random() < 0.5:
        both.end()
    both.next_events(9)
    if rng.random() < 0.3:
        both.send_events(rng.choice(_odd()))
        both.feed(data[-7:])
        both.next_events(2)
    both.lift_limits()
    both.flush()


def _asked(rng: Random) -> list[events.Event]:
    odd = rng.random() < 0.15
    fields = rng.choice(ODD if odd and rng.random() < 0.6 else PLAIN)
    method = rng.choice(ODD_METHODS if odd and rng.random() < 0.3 else METHODS)
    target = rng.choice(ODD_TARGETS) if odd and rng.random() < 0.3 else "/v1/a?b=c"
    request: list[events.Event] = [events.RequestHead(ONE, method, target, events.Headers(fields))]
    if LENGTH in fields:
        request += [events.RequestData(ONE, piece) for piece in rng.choice(BODIES)]
    request.append(events.RequestEnd(ONE))
    if odd and rng.random() < 0.5:
        at = rng.randrange(len(request) + 1)
        request[at : at + rng.randrange(2)] = [rng.choice(_odd())]
    return request


@cache
def _odd() -> tuple[events.Event, ...]:
    return (
        events.RequestData(ONE, b"x"),
        events.RequestData(ONE, b""),
        events.RequestEnd(ONE),
        events.RequestEnd(ONE, events.Headers(((b"x", b"y"),))),
        events.RequestEnd(events.StreamId(2)),
        events.RequestHead(ONE, "GET", "/", events.Headers((HOST, CLOSE))),
        events.RequestHead(ONE, "GET", "/", events.Headers((HOST,)), websocket=True),
        events.ResponseEnd(ONE),
        events.AcceptWebSocket(ONE),
    )


class ClientPair(DifferentialPair[Http1Connection, FastPathClientConnection]):
    """h11 and the fast path of one client connection."""

    def __init__(self, limits: Limits = LIMITS) -> None:
        reference = Http1Connection(Role.CLIENT, limits=limits, entropy=bytes)
        super().__init__(reference, FastPathClientConnection(limits=limits, entropy=bytes))
