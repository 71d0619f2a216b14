"""Calls over HTTP/1.1 and over HTTP/2: the same words of the server give the same answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from svc_proto.commands import Abort, CloseWrite, Command, Connect, PauseReading, ResumeReading
from svc_proto.engine.client import Fetched, fetch, websocket, whole
from svc_proto.engine.client_channel import Into
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.engine.readers import EventReader, events
from svc_proto.engine.socket import Socket
from svc_proto.facts import Closed, Failure, FailureKind, ReadClosed, Stopping
from svc_proto.wire.events import (
    AcceptSocket,
    CloseSocket,
    Headers,
    Informational,
    Ping,
    RequestData,
    RequestEnd,
    RequestHead,
    ResponseData,
    ResponseEnd,
    ResponseHead,
    SocketClosed,
    StreamId,
    TextMessage,
)
from tests.engine.client_peer import Dialogue
from tests.engine.service import Recorder

S = StreamId(1)
TYPE = (b"content-type", b"text/plain")
EVENTS = Headers(((b"content-type", b"text/event-stream"),))
LINE = (b"connection", b"keep-alive", b"te", b"transfer-encoding", b"host")


@pytest.fixture(params=["1.1", "2"])
def version(request: pytest.FixtureRequest) -> str:
    chosen: str = request.param
    return chosen


@pytest.fixture(params=["http", "https"])
def scheme(request: pytest.FixtureRequest) -> str:
    chosen: str = request.param
    return chosen


def calling(flow: Callable[[Engine], Flow[Any]], version: str) -> Dialogue:
    return Dialogue(flow, version)


def getting(version: str, scheme: str = "https", into: Into[Fetched] | None = None) -> Dialogue:
    knows = version == "2"
    url = f"{scheme}://api.example/v1/models?all=1"
    return Dialogue(lambda engine: fetch(engine, "GET", url, into=into, within=5.0, prior_knowledge=knows), version)


def plainly(headers: Headers) -> list[tuple[bytes, bytes]]:
    return [field for field in headers if field[0] not in LINE]


def test_a_fetch(version: str, scheme: str) -> None:
    talk = getting(version, scheme)
    port = 443 if scheme == "https" else 80
    offers = ("h2", "http/1.1") if scheme == "https" else ("http/1.1",)
    assert talk.connect == Connect(talk.connect.op, talk.ch, "api.example", port, scheme == "https", offers)
    head = talk.heard[0]
    assert isinstance(head, RequestHead)
    assert (head.method, head.target, head.headers.get(b"host")) == (
        "GET",
        "/v1/models?all=1",
        b"api.example:%d" % port,
    )
    assert talk.heard[1:] == [RequestEnd(S)]
    talk.say(Informational(S, 103), ResponseHead(S, 200, Headers((TYPE,))), ResponseData(S, b"he"))
    assert talk.results == []
    talk.say(ResponseData(S, b"llo"), ResponseEnd(S))
    (answer,) = talk.results
    assert (answer.status, plainly(answer.headers), answer.body) == (200, [TYPE], b"hello")
    assert talk.took() == [Abort(talk.ch)]
    talk.tell(Closed(talk.ch))
    assert talk.caller.engine.channel_count == 0


@pytest.mark.parametrize("size", [0, 1, 100_000, 3_000_000])
def test_a_body_to_send(version: str, size: int) -> None:
    body = b"x" * size
    talk = calling(lambda engine: fetch(engine, "POST", "https://a/x", headers=((b"x-y", b"z"),), body=body), version)
    head, *pieces, end = talk.heard
    assert isinstance(head, RequestHead)
    assert plainly(head.headers) == [(b"x-y", b"z"), (b"content-length", b"%d" % size)]
    assert b"".join(piece.data for piece in pieces if isinstance(piece, RequestData)) == body
    assert end == RequestEnd(S)
    talk.say(ResponseHead(S, 204), ResponseEnd(S))
    assert talk.results[0].status == 204


def test_a_refusal_before_the_body_has_gone(version: str) -> None:
    talk = calling(lambda engine: fetch(engine, "POST", "https://a/x", body=b"x" * 3_000_000, within=9.0), version)
    talk.say(ResponseHead(S, 413, Headers(((b"content-length", b"2"),))), ResponseData(S, b"no"), ResponseEnd(S))
    assert (talk.results[0].status, talk.results[0].body) == (413, b"no")


def ended(version: str, *facts: Callable[[Dialogue], None]) -> Failure:
    talk = getting(version)
    for fact in facts:
        fact(talk)
    (failure,) = talk.results
    assert isinstance(failure, Failure)
    assert failure.detail
    assert talk.took()[-1:] in ([Abort(talk.ch)], [])
    return failure


def half(talk: Dialogue) -> None:
    talk.say(ResponseHead(S, 200, Headers(((b"content-length", b"5"),))), ResponseData(S, b"he"))


def fin(talk: Dialogue) -> None:
    talk.tell(ReadClosed(talk.ch))


def gone(talk: Dialogue) -> None:
    talk.tell(Closed(talk.ch, "reset by peer"))


def late(talk: Dialogue) -> None:
    talk.after(5.0)


def nonsense(talk: Dialogue) -> None:
    talk.raw(b"SSH-2.0-OpenSSH_9.2p1\r\n\r\n")


@pytest.mark.parametrize(
    ("facts", "kind"),
    [
        ((fin,), FailureKind.UNREACHABLE),
        ((half, fin), FailureKind.UNREACHABLE),
        ((gone,), FailureKind.UNREACHABLE),
        ((half, gone), FailureKind.UNREACHABLE),
        ((late,), FailureKind.TIMED_OUT),
        ((half, late), FailureKind.TIMED_OUT),
        ((nonsense,), FailureKind.INVALID),
    ],
)
def test_what_goes_wrong_has_the_same_name(
    version: str, facts: tuple[Callable[[Dialogue], None], ...], kind: FailureKind
) -> None:
    assert ended(version, *facts).kind is kind


def test_an_answer_that_is_too_large(version: str) -> None:
    talk = getting(version, into=whole(4))
    talk.say(ResponseHead(S, 200), ResponseData(S, b"he"))
    assert talk.results == []
    talk.say(ResponseData(S, b"llo"))
    assert talk.results == [Failure(FailureKind.TOO_LARGE, "the answer has more than 4 bytes")]


def test_the_caller_goes_away(version: str) -> None:
    talk = getting(version)
    talk.act(talk.caller.task.cancel)
    assert talk.orders[-1] == Abort(talk.ch)
    half(talk)
    gone(talk)
    assert talk.results == talk.caller.errors == []


# --- WebSockets ---


def opening(version: str) -> tuple[Dialogue, Recorder]:
    handler = Recorder()
    url = "wss://relay.example/ws"
    return Dialogue(
        lambda engine: fetch(engine, "GET", url, into=websocket(handler), headers=((b"x-y", b"z"),), within=5.0),
        version,
    ), handler


def opened(version: str) -> tuple[Dialogue, Recorder]:
    talk, handler = opening(version)
    talk.say(AcceptSocket(S))
    assert handler.told == [("open",)]
    return talk, handler


def test_a_websocket(version: str) -> None:
    talk, handler = opening(version)
    head = talk.heard[0]
    assert isinstance(head, RequestHead)
    assert (head.websocket, head.target, head.headers.get(b"x-y")) == (True, "/ws", b"z")
    talk.say(AcceptSocket(S))
    (socket,) = talk.results
    assert isinstance(socket, Socket)
    assert socket is handler.socket
    talk.heard.clear()
    talk.say(TextMessage(S, "hi"), Ping(S, b"p"))
    assert handler.told == [("open",), ("text", "hi")]
    assert [type(event).__name__ for event in talk.heard] == ["Pong"]
    assert socket.send_text("yo")
    assert socket.send_text("z" * 100_000)
    talk.after(0.0)
    assert talk.heard[1:] == [TextMessage(S, "yo"), TextMessage(S, "z" * 100_000)]
    talk.say(CloseSocket(S, 1000, "bye"))
    assert handler.told[-1] == ("closed", 1000, "bye")
    assert talk.took() == [CloseWrite(talk.ch)]
    talk.tell(ReadClosed(talk.ch))
    talk.tell(Closed(talk.ch))
    assert talk.caller.engine.channel_count == 0


class Reader(Recorder):
    """Stops reading, goes on, and closes, at a word."""

    def on_text(self, text: str) -> None:
        super().on_text(text)
        if text in ("hold", "go on"):
            self.open_socket.hold(text == "hold")
            self.open_socket.hold(text == "hold")
        elif text == "close":
            self.open_socket.close()
            self.open_socket.hold(True)


def reader(version: str) -> tuple[Dialogue, Reader]:
    handler = Reader()
    talk = Dialogue(lambda engine: fetch(engine, "GET", "wss://relay.example/ws", into=websocket(handler)), version)
    talk.say(AcceptSocket(S), TextMessage(S, "hold"))
    return talk, handler


def pauses(talk: Dialogue) -> list[type[Command]]:
    """What was ordered of reading."""
    orders, talk.orders = talk.orders, []
    return [type(order) for order in orders if isinstance(order, PauseReading | ResumeReading)]


def test_who_reads_no_more_says_that_he_is_there_for_an_hour(version: str) -> None:
    talk, handler = reader(version)
    assert pauses(talk) == [PauseReading]
    talk.heard.clear()
    for _ in range(360):
        talk.after(9.999)
        assert talk.heard == []
        talk.after(0.001)
        assert [type(event) for event in talk.heard] == [Ping]
        talk.heard.clear()
    talk.say(TextMessage(S, "go on"))
    assert pauses(talk) == [ResumeReading]
    assert handler.told[-1] == ("text", "go on")
    talk.heard.clear()
    talk.after(30.0)
    assert [type(event) for event in talk.heard] == [Ping]


def test_who_closes_reads_again(version: str) -> None:
    talk, handler = reader(version)
    pauses(talk)
    talk.say(TextMessage(S, "close"))
    assert pauses(talk) == [ResumeReading]
    assert handler.told[-1] == ("closed", 1000, "")


def test_we_close_first(version: str) -> None:
    talk, handler = opened(version)
    talk.tell(Stopping(5.0))
    assert isinstance(talk.heard[-1], SocketClosed)
    assert talk.heard[-1].code == 1001
    talk.tell(ReadClosed(talk.ch))
    assert handler.told[-1] == ("closed", 1001, "")


def test_a_websocket_that_is_declined(version: str) -> None:
    talk, handler = opening(version)
    talk.say(ResponseHead(S, 429, Headers(((b"content-length", b"2"),))), ResponseData(S, b"no"), ResponseEnd(S))
    assert (talk.results[0].status, talk.results[0].body) == (429, b"no")
    assert handler.told == []
    assert Abort(talk.ch) in talk.took()


@pytest.mark.parametrize("end", [fin, gone])
def test_a_websocket_that_is_cut_off(version: str, end: Callable[[Dialogue], None]) -> None:
    talk, handler = opened(version)
    end(talk)
    assert [told[:2] for told in handler.told] == [("open",), ("closed", 1006)]


def test_a_silent_peer_is_pinged_and_dropped(version: str) -> None:
    talk, handler = opened(version)
    talk.reads = False
    talk.after(60.0)
    assert Abort(talk.ch) in talk.took()
    gone(talk)
    assert handler.told[-1][:2] == ("closed", 1006)


def test_a_websocket_that_nobody_answers(version: str) -> None:
    talk, handler = opening(version)
    talk.after(5.0)
    assert talk.results[0].kind is FailureKind.TIMED_OUT
    assert handler.told == []


# --- event streams ---


def test_events_at_the_readers_pace(version: str) -> None:
    readers: list[EventReader] = []

    def flow(engine: Engine) -> Flow[object]:
        reader = yield from fetch(engine, "POST", "https://a/s", into=events())
        assert isinstance(reader, EventReader)
        readers.append(reader)
        batches: list[object] = []
        while isinstance(batch := (yield from reader.read()), tuple):
            batches.append([event.data for event in batch])
        reader.drop()
        return batches

    talk = calling(flow, version)
    talk.say(ResponseHead(S, 200, EVENTS), ResponseData(S, b"data: 1\n\ndata: 2\n\n"), ResponseData(S, b": there\n\n"))
    talk.say(ResponseData(S, b"data: 3\n\n"), ResponseEnd(S))
    assert talk.results == [[["1", "2"], ["3"]]]
