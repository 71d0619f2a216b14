"""What is fuzzed, and the oracles. Each target takes bytes and raises when an oracle does not hold.

Common to all: only declared exceptions leave a parser, and the chunking of the input makes no difference.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import h11

from fuzz.mutate import chunked
from svc_proto.basics import strict_json
from svc_proto.basics.errors import Refused, RemoteProtocolError
from svc_proto.basics.moment import Moment
from svc_proto.commands import Command, Exit, Level, Log, Operation, PauseReading, Query, ResumeReading, Send
from svc_proto.config import RelayConfig
from svc_proto.engine.core import Engine
from svc_proto.engine.store import LoadSessions
from svc_proto.facts import Accepted, Address, ChannelId, Done, Failed, Failure, FailureKind, Received, Started
from svc_proto.machines.qr import parse_invite
from svc_proto.relay.service import Relay
from svc_proto.wire.connection import Role
from svc_proto.wire.envelope import parse_envelope
from svc_proto.wire.events import (
    BinaryMessage,
    Event,
    Headers,
    RequestData,
    RequestEnd,
    RequestHead,
    ResponseData,
    ResponseEnd,
    ResponseHead,
    StreamId,
    TextMessage,
)
from svc_proto.wire.http1 import Http1Connection
from svc_proto.wire.sse import EventStreamDecoder

__all__ = ["TARGETS", "Target"]

Target = Callable[[bytes], None]
NOW = Moment(1000.0, 1_800_000_000.0)
CH = ChannelId(2)
PEER = Address("127.0.0.1", 40_000)
ONE = StreamId(1)
CHUNKED = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"


def http1(data: bytes) -> None:
    """A server connection: requests are answered, WebSockets accepted and echoed."""
    whole = _serve([data])
    assert _serve(_pieces(data)) == whole, "chunking changed the events"


def answer(data: bytes) -> None:
    """A client connection that has asked with a GET: what answers it."""
    whole = _listen([data])
    assert _listen(_pieces(data)) == whole, "chunking changed the events"


def chunks(data: bytes) -> None:
    """A body in chunks: the strict reader sees the body that h11 sees, or refuses."""
    whole = _serve([CHUNKED + data])
    assert _serve(_pieces(CHUNKED + data)) == whole, "chunking changed the events"
    if not isinstance(whole[-1], tuple):  # not refused
        body = b"".join(event.data for event in whole if isinstance(event, RequestData) and event.stream == ONE)
        assert _h11_body(CHUNKED + data).startswith(body), "h11 reads another body"


def envelope(data: bytes) -> None:
    """Messages and JSON."""
    text = data.decode("utf-8", "replace")
    parse_envelope(text)
    try:
        value = strict_json.loads(data)
    except strict_json.JsonError:
        return
    assert strict_json.loads(strict_json.dumps_bytes(value)) == value, "JSON does not come back"


def sse(data: bytes) -> None:
    """An event stream."""

    def decode(pieces: list[bytes]) -> list[object]:
        decoder, events = EventStreamDecoder(), list[object]()
        try:
            for piece in pieces:
                events += decoder.receive_data(piece)
        except RemoteProtocolError:
            events.append("error")
        return events

    assert decode(_pieces(data)) == decode([data]), "chunking changed the events"


def qr(data: bytes) -> None:
    """A pasted invite."""
    try:
        parse_invite(data.decode("utf-8", "replace"))
    except Refused as refused:
        if refused.status != 400:
            raise


def core(data: bytes) -> None:
    """A whole relay: never an exception, never a command after `Exit`, the same bytes for any chunking."""
    assert _relay(_pieces(data)) == _relay([data]), "chunking changed the answer"


TARGETS: dict[str, Target] = {
    "http1": http1,
    "answer": answer,
    "chunks": chunks,
    "envelope": envelope,
    "sse": sse,
    "qr": qr,
    "core": core,
}


def _pieces(data: bytes) -> list[bytes]:
    return chunked(data, Random(len(data)))


def _serve(pieces: list[bytes]) -> list[object]:
    connection = Http1Connection(Role.SERVER, entropy=_zeros)
    events: list[object] = []
    try:
        for piece in pieces:
            connection.receive_data(piece)
            while (event := connection.next_event()) is not None:
                _note(events, event)
                _reply(connection, event)
    except RemoteProtocolError as error:
        events.append((error.status, str(error)))
    return events


def _listen(pieces: list[bytes]) -> list[object]:
    connection = Http1Connection(Role.CLIENT, entropy=_zeros)
    connection.send(RequestHead(ONE, "GET", "/", Headers(((b"host", b"a"),))))
    connection.send(RequestEnd(ONE))
    events: list[object] = []
    try:
        for piece in pieces:
            connection.receive_data(piece)
            while (event := connection.next_event()) is not None:
                _note(events, event)
                if isinstance(event, ResponseEnd):
                    return events  # what follows answers nothing, and is noticed when it comes
        connection.receive_eof()
        while (event := connection.next_event()) is not None:
            _note(events, event)
    except RemoteProtocolError as error:
        events.append((error.status, str(error)))
    return events


def _h11_body(data: bytes) -> bytes:
    peer = h11.Connection(h11.SERVER, max_incomplete_event_size=1 << 20)
    peer.receive_data(data)
    peer.next_event()
    body = b""
    while isinstance(event := peer.next_event(), h11.Data):
        body += bytes(event.data)
    return body


def _note(events: list[object], event: Event) -> None:
    last = events[-1] if events else None
    if isinstance(event, RequestData) and isinstance(last, RequestData):
        events[-1] = RequestData(event.stream, last.data + event.data)
    elif isinstance(event, ResponseData) and isinstance(last, ResponseData):
        events[-1] = ResponseData(event.stream, last.data + event.data)
    else:
        events.append(event)


def _reply(connection: Http1Connection, event: Event) -> None:
    if isinstance(event, RequestHead) and event.websocket:
        return
    if isinstance(event, RequestEnd) and not connection.must_close:
        connection.send(ResponseHead(event.stream, 200))
        connection.send(ResponseData(event.stream, b"ok"))
        connection.send(ResponseEnd(event.stream))
    elif isinstance(event, TextMessage | BinaryMessage):
        connection.send(event)
    connection.data_to_send()


def _relay(pieces: list[bytes]) -> list[object]:
    engine = Engine(Relay(RelayConfig(pairing_code="ABC123")), entropy=_zeros, log_level=Level.ERROR)
    said = _answered(engine, engine.handle(Started(), NOW))
    orders = engine.handle(Accepted(CH, PEER, PEER), NOW)
    for piece in filter(None, pieces):  # what is received is never empty
        orders += engine.handle(Received(CH, piece), NOW)
    said += _answered(engine, orders)  # only now, or the pieces would decide what comes before an answer
    assert not any(isinstance(command, Log | Exit) for command in said), f"a bug was logged: {said}"
    sent = b"".join(command.data for command in said if isinstance(command, Send))
    # How often reading pauses does depend on the chunking.
    quiet = (Send, Operation, PauseReading, ResumeReading)
    return [sent, *(type(command).__name__ for command in said if not isinstance(command, quiet))]


def _answered(engine: Engine, commands: list[Command]) -> list[Command]:
    """Carry out operations at once: the store is empty and there are no files."""
    said: list[Command] = []
    while commands:
        said += commands
        answers = [_answer(command) for command in commands if isinstance(command, Operation)]
        commands = [command for answer in answers for command in engine.handle(answer, NOW)]
    return said


def _answer(order: Operation[object]) -> Done | Failed:
    if isinstance(order, Query):
        return Done(order.op, () if isinstance(order.request, LoadSessions) else None)
    return Failed(order.op, Failure(FailureKind.NOT_FOUND))


def _zeros(n: int) -> bytes:
    return bytes(n)
