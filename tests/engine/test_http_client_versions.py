"""Client WebSockets that pause reading, over HTTP/1.1 and over HTTP/2."""

import pytest

from svc_proto.commands import Command, PauseReading, ResumeReading
from svc_proto.engine.http_client import fetch, websocket_upgrade
from svc_proto.wire.events import AcceptWebSocket, Ping, StreamId, TextMessage
from tests.engine.toy_service import RecordingWebSocketHandler
from tests.engine.wire_peer import CallDialogue

S = StreamId(1)


@pytest.fixture(params=["1.1", "2"])
def version(request: pytest.FixtureRequest) -> str:
    chosen: str = request.param
    return chosen


class Reader(RecordingWebSocketHandler):
    """WebSocket handler that pauses or resumes reading, or closes, by the text of a message."""

    def on_text(self, text: str) -> None:
        super().on_text(text)
        if text in ("hold", "go on"):
            self.open_socket.set_read_paused(text == "hold")
            self.open_socket.set_read_paused(text == "hold")
        elif text == "close":
            self.open_socket.close()
            self.open_socket.set_read_paused(True)


def reader(version: str) -> tuple[CallDialogue, Reader]:
    handler = Reader()
    talk = CallDialogue(
        lambda engine: fetch(engine, "GET", "wss://relay.example/ws", into=websocket_upgrade(handler)), version
    )
    talk.send_from_peer(AcceptWebSocket(S), TextMessage(S, "hold"))
    return talk, handler


def pauses(talk: CallDialogue) -> list[type[Command]]:
    """Return the types of the commands since the last call that pause or resume reading."""
    orders, talk.orders = talk.orders, []
    return [type(order) for order in orders if isinstance(order, PauseReading | ResumeReading)]


def test_a_paused_reader_sends_pings_for_an_hour(version: str) -> None:
    talk, handler = reader(version)
    assert pauses(talk) == [PauseReading]
    talk.heard.clear()
    for _ in range(360):
        talk.after(9.999)
        assert talk.heard == []
        talk.after(0.001)
        assert [type(event) for event in talk.heard] == [Ping]
        talk.heard.clear()
    talk.send_from_peer(TextMessage(S, "go on"))
    assert pauses(talk) == [ResumeReading]
    assert handler.told[-1] == ("text", "go on")
    talk.heard.clear()
    talk.after(30.0)
    assert [type(event) for event in talk.heard] == [Ping]


def test_closing_resumes_reading(version: str) -> None:
    talk, handler = reader(version)
    pauses(talk)
    talk.send_from_peer(TextMessage(S, "close"))
    assert pauses(talk) == [ResumeReading]
    assert handler.told[-1] == ("closed", 1000, "")
