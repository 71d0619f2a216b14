import json
from typing import Any

import pytest
from attrs import define, field

from svc_proto.basics import strict_json
from svc_proto.dashboard import speech_stream
from svc_proto.engine.websocket import WebSocketConnection
from svc_proto.facts import Address
from svc_proto.relay.service import Relay
from svc_proto.relay_config import RelayConfig
from svc_proto.wire.events import BinaryMessage, Event, Headers, RequestHead, TextMessage, WebSocketClosed
from tests.api.harness import HOME, KEY
from tests.dashboard.app_client import AppClient, AppHarness
from tests.support.http_harness import FIRST, HttpCall, as_json
from tests.support.playbook import PATIENT, PEER, REMOTE

RELAY_PORT = 8767
SETTINGS = "voice_output: {provider: stub}\n"


@define(eq=False)
class Listener(HttpCall):
    """WebSocket of a client that records messages and the number of audio bytes."""

    messages: list[dict[str, Any]] = field(factory=list)
    sound: int = 0  # bytes

    def on_event(self, event: Event) -> None:
        super().on_event(event)
        if isinstance(event, TextMessage):
            self.messages.append(json.loads(event.text))
        elif isinstance(event, BinaryMessage):
            self.sound += len(event.data)

    def send(self, **message: object) -> None:
        self.send_events(TextMessage(FIRST, strict_json.dumps(message)))

    @property
    def types(self) -> list[str]:
        return [message["type"] for message in self.messages]

    @property
    def code(self) -> int | None:
        return next((event.code for event in self.events if isinstance(event, WebSocketClosed)), None)


def speaking(settings: str = SETTINGS) -> tuple[AppHarness, AppClient]:
    """Return a dashboard beside a relay with these settings, and a signed-in client."""
    book = AppHarness(files={f"{HOME}-relay/config.yaml": settings})
    config = RelayConfig(home=HOME, config_path=f"{HOME}/config.yaml", api_key=KEY)
    book.serve(RELAY_PORT, Relay(config, limits=PATIENT))
    return book, book.sign_in()


def listen(client: AppClient) -> Listener:
    """Request the WebSocket of `/api/audio/speak-stream` with a new ticket."""
    return open_stream(client.book, client.ticket())


def open_stream(book: AppHarness, ticket: str, peer: Address = REMOTE) -> Listener:
    listener = book.connect_http1(Listener, peer)
    path = f"/api/audio/speak-stream?ticket={ticket}&profile=default"
    listener.send_events(RequestHead(FIRST, "GET", path, Headers([(b"host", book.host_name)]), websocket=True))
    return listener


def stream_of(book: AppHarness) -> speech_stream.SpeechStream:
    return next(held for held in book.engine.revocables if isinstance(held, speech_stream.SpeechStream))


def start_passage(client: AppClient) -> tuple[Listener, speech_stream._Passage]:
    """Open a stream and send it a sentence; return the client and the passage that the relay renders."""
    listener = listen(client)
    listener.send(text="Hello.\n")
    passage = stream_of(client.book)._passage
    assert passage is not None
    return listener, passage


def test_a_text_is_spoken_by_sentences_or_long_passages() -> None:
    book, client = speaking()
    listener = listen(client)
    listener.send(text="Hello ")
    assert listener.messages == []
    listener.send(text='there. "Fine." And')
    assert listener.messages == [{"type": "start", "sample_rate": 24_000, "channels": 1}]
    first = listener.sound
    assert first > 0
    listener.send(text=" now?\n---\n")
    second = listener.sound
    assert second > first
    listener.send(text="Bye", done=True)
    assert listener.sound > second
    assert (listener.types, listener.code) == (["start", "end"], 1000)
    assert not book.engine.revocables
    _, client = speaking()
    listener = listen(client)
    listener.send(text="a" * speech_stream.MAX_PASSAGE)
    assert listener.sound > 0
    listener.send(done=True)
    assert listener.types == ["start", "end"]


def test_no_sound_precedes_the_start_of_a_relay_that_can_speak() -> None:
    book, client = speaking()
    listener = listen(client)
    assert stream_of(book).add_sound(b"\0\0", 0) is False
    assert (listener.messages, listener.sound) == ([], 0)
    for settings in ("voice_output: {provider: xai_tts}\n", "voice_output: {enabled: false}\n"):
        _, client = speaking(settings)
        listener = listen(client)
        listener.send(text="Hello.\n")
        assert (listener.types, listener.code) == (["fallback"], 1000)


@pytest.mark.parametrize("text", ["", "\n", "---"])
def test_nothing_to_speak(text: str) -> None:
    _, client = speaking()
    listener = listen(client)
    listener.send(text=text, done=True)
    assert (listener.types, listener.sound, listener.code) == (["end"], 0, 1000)


@pytest.mark.parametrize("answer", [{"websocket_path": "/elsewhere"}, {}])
def test_an_answer_that_names_no_socket_is_a_fallback(answer: dict[str, object]) -> None:
    book = AppHarness()
    client = book.sign_in()
    del book.servers[8642]
    book.http = lambda asked: as_json(answer)
    listener = listen(client)
    listener.send(text="Hello.\n")
    assert listener.types == ["fallback"]


def test_a_later_failure_breaks_the_stream_off() -> None:
    book, client = speaking()
    listener = listen(client)
    listener.send(text="Hello.\n")
    assert listener.types == ["start"]
    book.disk.put(f"{HOME}-relay/config.yaml", b"voice_output: {enabled: false}\n")
    book.after(60.0)
    listener.send(text="And now?\n")
    assert (listener.types, listener.code) == (["start"], 1011)
    book, client = speaking()
    listener = listen(client)
    listener.send(text="Hello.\n")
    book.disk.put(f"{HOME}-relay/config.yaml", b"voice_output: {provider: stub, sample_rate: 16000}\n")
    book.after(60.0)
    listener.send(text="And now?\n")
    assert (listener.types, listener.code) == (["start"], 1011)


@pytest.mark.parametrize("event", [{"type": "voice.audio.delta", "audio_base64": "AAAA"}, {"type": "voice.error"}])
def test_a_passage_that_fails_has_one_end(event: dict[str, object]) -> None:
    book, client = speaking()
    listener = listen(client)
    stream = stream_of(book)
    passage = speech_stream._Passage(stream, book.engine)
    passage.on_binary(b"")
    passage.on_writable()
    passage.resume()
    passage.on_text('{"type": "voice.response.started"}')
    passage.on_text(strict_json.dumps(event))
    passage.on_closed(1000, "")
    passage.on_text('{"type": "voice.audio.done"}')
    assert passage.is_complete is False
    assert (listener.types, listener.sound) == ([], 0)


def test_streams_end_on_request_or_for_their_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speech_stream._Passage, "on_text", lambda passage, text: None)
    book, client = speaking()
    listener, passage = start_passage(client)
    listener.send(stop=True)
    assert (listener.types, listener.code) == (["end"], 1000)
    assert passage._socket is None  # the relay stops as well
    listener, passage = start_passage(client)
    listener.vanish()
    assert passage._socket is None
    listener, passage = start_passage(client)
    book.within(lambda: passage.on_closed(1006, ""))
    assert listener.types == ["fallback"]
    listener, passage = start_passage(client)
    paused: list[bool] = []
    with monkeypatch.context() as recorded:
        recorded.setattr(WebSocketConnection, "set_read_paused", lambda socket, value: paused.append(value))
        stream_of(book).on_writable()
    assert paused == [False]
    book, client = speaking()
    listener = listen(client)
    listener.send(text="Hello.\n", done=True)
    listener.send(text="This is ignored.\n", done=True)
    assert stream_of(book)._text == ""
    stream_of(book).on_writable()
    book.after(speech_stream.PASSAGE_TIMEOUT - 1.0)
    assert listener.types == []
    book.after(2.0)
    assert listener.types == ["fallback"]


def test_clients_that_are_silent_wrong_or_signed_out_are_disconnected(monkeypatch: pytest.MonkeyPatch) -> None:
    book, client = speaking()
    listener = listen(client)
    book.after(speech_stream.TEXT_TIMEOUT + 1.0)
    assert (listener.types, listener.code) == ([], 1000)
    monkeypatch.setattr(speech_stream, "MAX_TEXT", 3)
    _, client = speaking()
    listener = listen(client)
    for text, code in (("two", None), ("s", 1009)):
        listener.send(text=text)
        assert listener.code == code
    listener = listen(client)
    listener.send_events(BinaryMessage(FIRST, b"x"))
    assert listener.code == 1003
    _, client = speaking()
    listener = listen(client)
    client.request("POST", "/auth/logout")
    assert listener.code == 1008


def test_tickets_open_one_stream_and_this_host_needs_no_password() -> None:
    _, client = speaking()
    ticket = client.ticket()
    assert open_stream(client.book, ticket).answer is None
    assert open_stream(client.book, ticket).result.status == 401
    book = AppHarness(password="")
    ticket = book.request("POST", "/api/auth/ws-ticket").json["ticket"]
    listener = open_stream(book, ticket, PEER)
    listener.send(done=True)
    assert listener.types == ["end"]


def test_the_relay_is_not_read_while_the_client_reads_too_slowly(monkeypatch: pytest.MonkeyPatch) -> None:
    book, client = speaking()
    listener = listen(client)
    sockets: list[WebSocketConnection] = []

    def pause(socket: WebSocketConnection, value: bool) -> None:
        sockets.append(socket)

    stream_of(book).on_writable()  # without a passage
    with monkeypatch.context() as slow:
        slow.setattr(WebSocketConnection, "writable", False)
        slow.setattr(WebSocketConnection, "set_read_paused", pause)
        listener.send(text="Hello.\n")
    assert stream_of(book).client not in sockets
    assert sockets
