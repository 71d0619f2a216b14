"""How an answer is said: at once as a whole, or a head and then a file, or what a producer writes."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING

from svc_proto.commands import Level, ReleaseFile
from svc_proto.engine.body_streams import ResponseWriter, copy_file, send_file
from svc_proto.engine.flow import Flow
from svc_proto.engine.message import Response, Streamed
from svc_proto.engine.router import path_of
from svc_proto.facts import Failure, FailureKind
from svc_proto.wire.events import Headers, RequestHead, ResponseData, ResponseEnd, ResponseHead

if TYPE_CHECKING:
    from svc_proto.engine.exchange import Exchange
    from svc_proto.engine.server_channel import ServerChannel

__all__ = ["deliver_file", "http_date", "produce", "say_at_once", "say_head", "say_whole"]

BODILESS = (204, 304)
CLOSE = (b"connection", b"close")
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_DEBUG = Level.DEBUG  # as in `machines.session`
SPILL = 16 * 1024  # bytes of a body that are written at once, so that requests behind it may have to wait
PEERS_FAULT = (FailureKind.CANCELLED, FailureKind.UNREACHABLE, FailureKind.TIMED_OUT)


def say_at_once(
    channel: ServerChannel, head: RequestHead, label: str, response: Response, begun: float | None = None
) -> bool:
    """Say a whole answer in one go; False, and nothing was said, if this connection has it said event by event.

    `begun` is when its request came, where that was before now.
    """
    engine, body = channel.engine, response.body
    common = () if response.alone else channel.app.fields(head, secure=channel.secure)
    fields = (*common, *response.headers)
    alone = channel.alone
    if alone is None or not alone.send_simple_response(
        head.stream, response.status, http_date(int(engine.now.wall)), fields, body
    ):
        return False
    engine.dirty[channel] = None
    engine.counts.answers[label][response.status] += 1
    if begun is not None:
        engine.counts.waits[label].observe(engine.now.mono - begun)
    if engine.log_level <= _DEBUG:
        begun = engine.now.mono if begun is None else begun
        channel.note("request", begun, method=head.method, route=path_of(label), status=response.status)
    if len(body) >= SPILL and response.status not in BODILESS:
        channel.spill()
    return True


def say_whole(exchange: Exchange, response: Response, *, closing: bool) -> None:
    """Say a whole answer, event by event. Where none may be, the connection says no body."""
    channel, stream, body = exchange.channel, exchange.stream, response.body
    say_head(exchange, response, length=len(body), closing=closing)
    if body:
        channel.put(ResponseData(stream, body))
    channel.put(ResponseEnd(stream))
    if len(body) >= SPILL:
        channel.spill()


def say_head(exchange: Exchange, answer: Response | Streamed, *, length: int | None, closing: bool) -> None:
    """Say the head of an answer whose body has `length` bytes; None: nobody knows."""
    channel, head, status = exchange.channel, exchange.head, answer.status
    common = () if answer.alone else channel.app.fields(head, secure=channel.secure)
    fields = [(b"date", http_date(int(channel.engine.now.wall))), *common, *answer.headers]
    if length is not None and status not in BODILESS:
        fields.append((b"content-length", b"%d" % length))
    if closing and exchange.stream:  # the answer on stream 0 closes by itself
        fields.append(CLOSE)
    channel.put(ResponseHead(exchange.stream, status, Headers(fields)))
    counts = channel.engine.counts
    counts.answers[exchange.label][status] += 1
    counts.waits[exchange.label].observe(channel.engine.now.mono - exchange.begun)
    channel.note("request", exchange.begun, method=head.method, route=path_of(exchange.label), status=status)


def deliver_file(exchange: Exchange, response: Response) -> Flow[bool]:
    """Answer with a file; whether all of it was sent."""
    channel, file, outcome = exchange.channel, response.file, None
    assert file is not None
    try:
        exchange.begin_body(response, length=file.length)
        if exchange.head.method == "HEAD":
            return True
        if channel.alone is not None:
            outcome = yield from send_file(channel, exchange.stream, file)
        else:
            exchange.outgoing = ResponseWriter(channel, exchange.stream)
            outcome = yield from copy_file(channel, exchange.outgoing, file)
    finally:
        channel.engine.emit(ReleaseFile(file.handle))
    if isinstance(outcome, Failure) and outcome.kind not in PEERS_FAULT:
        channel.engine.log(Level.WARNING, "file not sent", route=exchange.label, problem=outcome.kind.value)
    return outcome is None


def produce(exchange: Exchange, answer: Streamed) -> Flow[bool]:
    """Answer with what a producer writes; whether that was all of it."""
    exchange.begin_body(answer, length=None)
    if exchange.head.method == "HEAD":
        return True
    exchange.outgoing = ResponseWriter(exchange.channel, exchange.stream)
    return (yield from answer.producer(exchange.outgoing)) is not False


@lru_cache(maxsize=4)
def http_date(second: int) -> bytes:
    """The `Date` of an epoch time (RFC 9110 section 5.6.7), such as ``Sun, 06 Nov 1994 08:49:37 GMT``."""
    when = datetime.fromtimestamp(second, UTC)
    text = f"{DAYS[when.weekday()]}, {when.day:02} {MONTHS[when.month - 1]} {when.year:04} {when:%H:%M:%S} GMT"
    return text.encode("ascii")
