"""HTTP/2 features in the client's role: windows, settings, refused WebSockets, resets, GOAWAY."""

import pytest

from svc_proto.commands import Abort, CloseWrite, Connect, PauseReading, Send
from svc_proto.engine import core
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, sleep
from svc_proto.engine.http_client import fetch, websocket_upgrade
from svc_proto.engine.response_readers import MAX_UNREAD, EventReader, event_stream
from svc_proto.engine.websocket import WebSocketConnection
from svc_proto.facts import ChannelId, Closed, Failure, FailureKind, ReadClosed, Received, Sent
from svc_proto.wire import events
from svc_proto.wire.connection import Role
from svc_proto.wire.http2 import Http2Connection
from svc_proto.wire.http2_settings import STREAM_WINDOW
from tests.engine.toy_service import RecordingWebSocketHandler
from tests.engine.wire_peer import CallDialogue
from tests.wire.connection_pair import seeded
from tests.wire.http2_pair import frame

S = events.StreamId(1)
EVENTS = events.Headers(((b"content-type", b"text/event-stream"),))
WSS = "wss://relay.example/ws"
MB = 1_000_000


NO_SOCKETS = frame(4, b"")  # settings without values


def getting() -> CallDialogue:
    return CallDialogue(lambda engine: fetch(engine, "GET", "https://a/x", within=5.0), "2")


def opened() -> tuple[CallDialogue, RecordingWebSocketHandler, WebSocketConnection]:
    handler = RecordingWebSocketHandler()
    talk = CallDialogue(lambda engine: fetch(engine, "GET", WSS, into=websocket_upgrade(handler)), "2")
    talk.send_from_peer(events.AcceptWebSocket(S))
    return talk, handler, handler.open_socket


# --- windows ---


class Reluctant(Http2Connection):
    """HTTP/2 server connection that acknowledges received data only while `stingy` is False."""

    def __init__(self) -> None:
        super().__init__(Role.SERVER, entropy=seeded(7))
        self.stingy = True
        self.owing = 0

    def acknowledge_data(self, stream: events.StreamId, n: int) -> None:
        self.owing += n
        if not self.stingy:
            super().acknowledge_data(stream, self.owing)
            self.owing = 0


def test_a_body_waits_for_the_servers_windows() -> None:
    server = Reluctant()
    talk = CallDialogue(lambda engine: fetch(engine, "POST", "https://a/x", body=bytes(MB)), "2", server=server)
    heard = sum(len(event.data) for event in talk.heard if isinstance(event, events.RequestData))
    assert heard == STREAM_WINDOW
    assert not [order for order in talk.orders if isinstance(order, PauseReading)]
    server.stingy = False
    server.acknowledge_data(S, 0)
    talk.run_until_idle()
    heard = sum(len(event.data) for event in talk.heard if isinstance(event, events.RequestData))
    assert (heard, talk.heard[-1]) == (MB, events.RequestEnd(S))
    talk.send_from_peer(events.ResponseHead(S, 204), events.ResponseEnd(S))
    assert talk.results[0].status == 204


def test_a_window_that_never_opens_fails_the_upload() -> None:
    talk = CallDialogue(
        lambda engine: fetch(engine, "POST", "https://a/x", body=bytes(MB), within=300.0), "2", server=Reluctant()
    )
    talk.after(59.0)
    assert talk.took() == []
    talk.after(2.0)
    assert talk.took() == [Abort(talk.ch)]
    talk.handle(Closed(talk.ch))
    assert talk.results[0].kind is FailureKind.UNREACHABLE


GROWS = frame(8, b"\x00\x0f\x00\x00", stream=1) + frame(8, b"\x00\x0f\x00\x00")


def test_messages_and_their_close_frame_wait_for_the_window() -> None:
    bare = Bare()
    talk, handler, socket = bare.waiting()
    assert not socket.writable
    bare.talk(frame(0, b"\x88\x02\x03\xe8", flags=1, stream=1))  # its close frame, and the end of its stream
    assert handler.told[-1] == ("closed", 1000, "")
    assert talk.took() == []  # our own close frame waits after the messages
    bare.talk(GROWS)
    assert talk.took() == [CloseWrite(talk.ch)]
    bare = Bare()
    _, handler, socket = bare.waiting()
    bare.talk(GROWS)
    assert handler.told[-1] == ("writable",)
    assert socket.writable


def test_a_window_that_never_opens() -> None:
    bare = Bare()
    talk, handler, socket = bare.opened(settings=b"\x00\x08\x00\x00\x00\x01\x00\x04\x00\x00\x00\x00")
    talk.took()
    socket.send_text("hello")
    talk.after(0.0)
    talk.after(29.0)
    bare.talk(frame(6, bytes(8)))  # it is alive, but does not read
    talk.after(29.0)
    assert talk.took() == []
    talk.after(2.0)
    assert talk.took() == [Abort(talk.ch)]
    talk.handle(Closed(talk.ch))
    assert handler.told[-1][:2] == ("closed", 1006)


def test_without_output_no_window_deadline_runs() -> None:
    talk = CallDialogue(lambda engine: fetch(engine, "GET", "https://a/x", within=300.0), "2")
    talk.took()
    talk.handle(Received(talk.ch, frame(8, b"\x00\x00\x00\x01")))  # more room than is needed
    talk.after(299.0)
    assert talk.took() == []


def test_output_that_waits_for_the_socket_has_its_own_deadline() -> None:
    bare = Bare()
    talk, _, socket = bare.opened()
    talk.took()
    talk.reads = False
    socket.send_text("x" * 200_000)
    talk.after(0.0)
    (order,) = talk.took()
    assert isinstance(order, Send)
    talk.after(20.0)
    talk.handle(Sent(talk.ch, 10))  # the rest is sent later
    talk.after(5.0)
    bare.talk(frame(6, bytes(8)))
    pong = sum(len(command.data) for command in talk.took() if isinstance(command, Send))
    talk.after(20.0)
    talk.handle(Sent(talk.ch, len(order.data) - 10 + pong))
    talk.after(14.0)
    assert Abort(talk.ch) not in talk.took()
    talk.after(2.0)  # the window should have opened by now
    assert Abort(talk.ch) in talk.took()


@pytest.mark.parametrize("end", [Received(ChannelId(1), frame(6, b"short")), ReadClosed(ChannelId(1))])
def test_a_server_that_ends_or_breaks_a_rule_while_messages_wait(end: Received | ReadClosed) -> None:
    bare = Bare()
    talk, handler, _ = bare.waiting()
    talk.handle(end)
    assert talk.took() == [CloseWrite(talk.ch)]
    talk.handle(Closed(talk.ch))
    assert handler.told[-1][:2] == ("closed", 1006)


class Bare:
    """HTTP/2 server whose frames a test writes by hand."""

    def opened(
        self, settings: bytes = b"\x00\x08\x00\x00\x00\x01"
    ) -> tuple[CallDialogue, RecordingWebSocketHandler, WebSocketConnection]:
        handler = RecordingWebSocketHandler()
        talk = self.dialogue = CallDialogue(
            lambda engine: fetch(engine, "GET", WSS, into=websocket_upgrade(handler)), "2", server=Silent()
        )
        self.talk(frame(4, settings))
        self.talk(frame(1, b"\x88", flags=4, stream=1))  # :status 200
        return talk, handler, handler.open_socket

    def waiting(self) -> tuple[CallDialogue, RecordingWebSocketHandler, WebSocketConnection]:
        """Open a WebSocket and send more messages than the server's window permits.

        Return the dialogue, the handler and the WebSocket.
        """
        talk, handler, socket = self.opened()
        for _ in range(8):
            assert socket.send_text("x" * 50_000)
        talk.after(0.0)
        return talk, handler, socket

    def talk(self, data: bytes) -> None:
        self.dialogue.handle(Received(self.dialogue.ch, data))


class Silent(Http2Connection):
    """HTTP/2 server connection that drops what it receives and sends nothing."""

    def __init__(self) -> None:
        super().__init__(Role.SERVER, entropy=seeded(7))

    def receive_data(self, data: bytes) -> None:
        pass

    def data_to_send(self, most: int = 0) -> bytes:
        return b""


def test_a_paused_reader_keeps_its_window_shut_and_answers_pings() -> None:
    readers: list[EventReader] = []
    batches: list[int] = []

    def flow(engine: Engine) -> Flow[object]:
        reader = yield from fetch(engine, "POST", "https://a/s", into=event_stream())
        assert isinstance(reader, EventReader)
        readers.append(reader)
        yield from sleep(engine, 100.0)
        while isinstance(batch := (yield from reader.read()), tuple):
            batches.append(len(batch))
        reader.abandon()
        return batch

    talk = CallDialogue(flow, "2")
    server = talk.peer
    assert isinstance(server, Http2Connection)
    talk.send_from_peer(events.ResponseHead(S, 200, EVENTS))
    event = b"data: " + b"x" * 10_000 + b"\n\n"
    for _ in range(60):
        talk.send_from_peer(events.ResponseData(S, event))
    waiting = server.unsent(S)
    came = 60 * len(event) - waiting
    assert MAX_UNREAD < came <= STREAM_WINDOW + MAX_UNREAD + len(event)
    assert not [order for order in talk.orders if isinstance(order, PauseReading)]
    talk.orders.clear()
    talk.raw(frame(6, b"12345678"))
    talk.after(100.0)
    talk.send_from_peer(events.ResponseEnd(S))
    assert server.unsent(S) == 0
    assert (talk.results, sum(batches)) == ([None], 60)


# --- servers that open no WebSockets ---


def refusing() -> tuple[CallDialogue, RecordingWebSocketHandler]:
    handler = RecordingWebSocketHandler()

    def twice(engine: Engine) -> Flow[object]:
        first = yield from fetch(engine, "GET", WSS, into=websocket_upgrade(handler), within=5.0)
        yield from sleep(engine, 1.0)
        second = yield from fetch(engine, "GET", WSS, into=websocket_upgrade(handler), within=5.0)
        return first, second

    talk = CallDialogue(twice, "2", server=Silent())
    return talk, handler


def test_websockets_fall_back_to_http1() -> None:
    talk, handler = refusing()
    talk.version = "1.1"
    talk.raw(NO_SOCKETS)
    again = next(order for order in talk.orders if isinstance(order, Connect))
    assert talk.orders[0] == Abort(talk.ch)
    assert (again.host, again.port, again.tls, again.alpn) == ("relay.example", 443, True, ("http/1.1",))
    talk.begin()
    talk.send_from_peer(events.AcceptWebSocket(S))
    assert handler.told == [("open",)]
    talk.after(1.0)
    known = next(order for order in talk.orders if isinstance(order, Connect))
    assert known.alpn == ("http/1.1",)  # the version is cached
    talk.begin()
    talk.send_from_peer(events.AcceptWebSocket(S))
    ((first, second),) = talk.results
    assert isinstance(first, WebSocketConnection)
    assert isinstance(second, WebSocketConnection)


def test_the_time_is_for_both_attempts() -> None:
    talk, _ = refusing()
    talk.after(3.0)
    talk.raw(NO_SOCKETS)
    talk.after(2.0)
    talk.after(1.0)
    assert len([order for order in talk.orders if isinstance(order, Connect)]) == 2
    talk, _ = refusing()
    talk.raw(frame(4, b"\x00\x08\x00\x00\x00\x01"))
    talk.raw(frame(4, b"\x00\x08\x00\x00\x00\x00"))  # the server opens WebSockets no longer
    talk.orders.clear()
    talk.after(5.0)
    talk.raw(NO_SOCKETS)
    assert not [order for order in talk.orders if isinstance(order, Connect)]


def test_no_fallback_after_the_timeout() -> None:
    upgrade = websocket_upgrade(RecordingWebSocketHandler())
    talk = CallDialogue(lambda engine: fetch(engine, "GET", WSS, into=upgrade, within=0.0), "2", server=Silent())
    assert talk.results[0].kind is FailureKind.TIMED_OUT


def test_the_cache_of_http1_servers_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core, "MAX_REMEMBERED", 1)

    def flow(engine: Engine) -> Flow[object]:
        for host in ("a", "b"):
            yield from fetch(
                engine, "GET", f"wss://{host}/", into=websocket_upgrade(RecordingWebSocketHandler()), within=5.0
            )
        return None

    talk = CallDialogue(flow, "2", server=Silent())
    talk.raw(NO_SOCKETS)
    assert list(talk.caller.engine.without_sockets) == [("a", 443)]
    talk.begin(Silent())
    talk.after(5.0)
    talk.begin(Silent())
    talk.raw(NO_SOCKETS)
    assert list(talk.caller.engine.without_sockets) == [("b", 443)]


def test_prior_knowledge_falls_back_too() -> None:
    handler, url = RecordingWebSocketHandler(), "ws://relay.example/ws"
    into = websocket_upgrade(handler)
    talk = CallDialogue(lambda engine: fetch(engine, "GET", url, into=into, prior_knowledge=True), "2", server=Silent())
    talk.version = "1.1"
    talk.raw(NO_SOCKETS)
    talk.begin()
    talk.send_from_peer(events.AcceptWebSocket(S))
    assert handler.told == [("open",)]


# --- resets and GOAWAY ---


def test_a_reset() -> None:
    talk = getting()
    talk.send_from_peer(events.ResponseHead(S, 200), events.ResponseData(S, b"x"), events.StreamReset(S))
    assert talk.results == [Failure(FailureKind.UNREACHABLE, "the peer reset the stream")]


def test_goaway_of_a_server() -> None:
    talk = getting()
    talk.raw(NO_SOCKETS + frame(7, bytes(8)))
    assert talk.results[0].kind is FailureKind.UNREACHABLE
    talk = getting()
    assert isinstance(talk.peer, Http2Connection)
    talk.peer.go_away()  # and finishes the open streams
    talk.run_until_idle()
    talk.send_from_peer(events.ResponseHead(S, 200), events.ResponseEnd(S))
    assert talk.results[0].status == 200


def test_a_stream_of_events_that_is_reset() -> None:
    def flow(engine: Engine) -> Flow[object]:
        reader = yield from fetch(engine, "POST", "https://a/s", into=event_stream())
        assert isinstance(reader, EventReader)
        batch = yield from reader.read()
        return batch, (yield from reader.read())

    talk = CallDialogue(flow, "2")
    talk.send_from_peer(events.ResponseHead(S, 200, EVENTS), events.ResponseData(S, b"data: 1\n\n"))
    talk.send_from_peer(events.StreamReset(S))
    ((batch, end),) = talk.results
    assert ([event.data for event in batch], end.kind) == (["1"], FailureKind.UNREACHABLE)


def test_a_websocket_that_is_reset() -> None:
    talk, handler, socket = opened()
    talk.send_from_peer(events.StreamReset(S))
    assert handler.told[-1][:2] == ("closed", 1006)
    assert not socket.send_text("x")
    assert talk.took() == [CloseWrite(talk.ch)]
