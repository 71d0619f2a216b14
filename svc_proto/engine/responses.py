"""Writers of responses: complete, from a file, or streamed by a producer."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING

from svc_proto.commands import Level, ReleaseFile
from svc_proto.engine.body_streams import ResponseWriter, copy_file_part, send_file_part
from svc_proto.engine.flow import Flow
from svc_proto.engine.message import Response, StreamedResponse
from svc_proto.engine.router import path_of_label
from svc_proto.facts import Failure, FailureKind
from svc_proto.wire.events import Headers, RequestHead, ResponseData, ResponseEnd, ResponseHead

if TYPE_CHECKING:
    from svc_proto.engine.exchange import Exchange
    from svc_proto.engine.server_channel import ServerChannel

__all__ = [
    "send_file_response",
    "http_date",
    "send_streamed_response",
    "try_send_simple",
    "send_response_head",
    "send_response",
]

BODILESS = (204, 304)
CLOSE = (b"connection", b"close")
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_DEBUG = Level.DEBUG  # alias, as in `machines.paired_session`
FLUSH_SIZE = 16 * 1024  # bytes of a body that is written at once, so that requests behind it may have to wait
PEER_FAILURES = (FailureKind.CANCELLED, FailureKind.UNREACHABLE, FailureKind.TIMED_OUT)


def try_send_simple(
    channel: ServerChannel, head: RequestHead, label: str, response: Response, begun: float | None = None
) -> bool:
    """Send a whole response in one step; return False, with nothing sent, if the connection needs it event by event.

    `begun` is the time of the request's arrival, if before now.
    """
    engine, body = channel.engine, response.body
    common = () if response.only_these_headers else channel.app.response_headers(head, secure=channel.secure)
    fields = (*common, *response.headers)
    own_connection = channel.own_connection
    if own_connection is None or not own_connection.send_simple_response(
        head.stream, response.status, http_date(int(engine.now.wall)), fields, body
    ):
        return False
    engine.dirty[channel] = None
    engine.counts.answers[label][response.status] += 1
    if begun is not None:
        engine.counts.waits[label].observe(engine.now.mono - begun)
    if engine.log_level <= _DEBUG:
        begun = engine.now.mono if begun is None else begun
        channel.log_request("request", begun, method=head.method, route=path_of_label(label), status=response.status)
    if len(body) >= FLUSH_SIZE and response.status not in BODILESS:
        channel.write_pending()
    return True


def send_response(exchange: Exchange, response: Response, *, closing: bool) -> None:
    """Send a whole response, event by event. The connection omits a body that is not permitted."""
    channel, stream, body = exchange.channel, exchange.stream, response.body
    send_response_head(exchange, response, length=len(body), closing=closing)
    if body:
        channel.send_event(ResponseData(stream, body))
    channel.send_event(ResponseEnd(stream))
    if len(body) >= FLUSH_SIZE:
        channel.write_pending()


def send_response_head(
    exchange: Exchange, response: Response | StreamedResponse, *, length: int | None, closing: bool
) -> None:
    """Send the head of a response whose body has `length` bytes; None: unknown."""
    channel, head, status = exchange.channel, exchange.head, response.status
    common = () if response.only_these_headers else channel.app.response_headers(head, secure=channel.secure)
    fields = [(b"date", http_date(int(channel.engine.now.wall))), *common, *response.headers]
    if length is not None and status not in BODILESS:
        fields.append((b"content-length", b"%d" % length))
    if closing and exchange.stream:  # a response on stream 0 closes the connection anyway
        fields.append(CLOSE)
    channel.send_event(ResponseHead(exchange.stream, status, Headers(fields)))
    counts = channel.engine.counts
    counts.answers[exchange.label][status] += 1
    counts.waits[exchange.label].observe(channel.engine.now.mono - exchange.begun)
    channel.log_request(
        "request", exchange.begun, method=head.method, route=path_of_label(exchange.label), status=status
    )


def send_file_response(exchange: Exchange, response: Response) -> Flow[bool]:
    """Respond with a file and release its handle; return whether all of it was sent. HEAD needs the head only."""
    channel, file, outcome = exchange.channel, response.file, None
    assert file is not None
    try:
        exchange.begin_body(response, length=file.length)
        if exchange.head.method == "HEAD":
            return True
        if channel.own_connection is not None:
            outcome = yield from send_file_part(channel, exchange.stream, file)
        else:
            exchange.outgoing = ResponseWriter(channel, exchange.stream)
            outcome = yield from copy_file_part(channel, exchange.outgoing, file)
    finally:
        channel.engine.emit(ReleaseFile(file.handle))
    if isinstance(outcome, Failure) and outcome.kind not in PEER_FAILURES:
        channel.engine.log(Level.WARNING, "file not sent", route=exchange.label, problem=outcome.kind.value)
    return outcome is None


def send_streamed_response(exchange: Exchange, response: StreamedResponse) -> Flow[bool]:
    """Respond with the output of a producer, to HEAD without it; return whether the response is complete."""
    exchange.begin_body(response, length=None)
    if exchange.head.method == "HEAD":
        return True
    exchange.outgoing = ResponseWriter(exchange.channel, exchange.stream)
    exchange.outgoing.half_closed = exchange.channel.is_half_closed
    return (yield from response.producer(exchange.outgoing)) is not False


@lru_cache(maxsize=4)
def http_date(second: int) -> bytes:
    """Return Unix seconds as an HTTP date (RFC 9110 section 5.6.7), such as ``Sun, 06 Nov 1994 08:49:37 GMT``."""
    when = datetime.fromtimestamp(second, UTC)
    text = f"{DAYS[when.weekday()]}, {when.day:02} {MONTHS[when.month - 1]} {when.year:04} {when:%H:%M:%S} GMT"
    return text.encode("ascii")
