import json
from base64 import b64encode
from functools import partial
from typing import cast

import pytest

from svc_proto.engine.client_channel import ResponseMode
from svc_proto.engine.flow import Flow
from svc_proto.engine.http_client import HttpResult
from svc_proto.engine.websocket import WebSocketConnection, WebSocketHandler
from svc_proto.facts import Failure, FailureKind
from svc_proto.voice import realtime_connection
from svc_proto.voice.provider_interface import (
    AudioDelta,
    ProviderError,
    ProviderEvent,
    RealtimeOptions,
    ResponseDone,
    SpokenTextDelta,
)
from svc_proto.voice.provider_keys import ProviderCredentials
from svc_proto.voice.providers.realtime_dialects import OpenAiDialect
from svc_proto.voice.realtime.actions import AppendInput, Respond, SendUserText
from svc_proto.voice.realtime_connection import RealtimeConnection, connect_realtime
from svc_proto.wire.events import Headers
from tests.voice.harness import VoiceHarness

ACCESS = ProviderCredentials("provider", "wss://provider.example/v1/realtime", "a-key")
OPTIONS = RealtimeOptions(model="m", voice="v", sample_rate=24_000)
DONE: dict[str, object] = {"type": "response.done", "response": {"id": "r"}}


class Provider:
    """Replacement for `fetch` of a WebSocket, and for the `WebSocketConnection` that it returns."""

    def __init__(self) -> None:
        self.deliver_texts: list[str] = []
        self.headers: tuple[tuple[bytes, bytes], ...] = ()
        self.closed: list[int] = []
        self.pings_every = 0.0
        self.refusal: Failure | HttpResult | None = None
        self.handler: WebSocketHandler

    def fetch(
        self,
        *_: object,
        into: ResponseMode[WebSocketConnection],
        headers: tuple[tuple[bytes, bytes], ...],
        within: float,
    ) -> Flow[WebSocketConnection | HttpResult | Failure]:
        """Return `refusal` if it is set, else open this object as the WebSocket and return it."""
        yield from ()
        if self.refusal is not None:
            return self.refusal
        self.headers, self.handler = headers, cast("WebSocketHandler", into.handler)
        socket = cast("WebSocketConnection", self)
        self.handler.on_open(socket)
        return socket

    def send_text(self, text: str) -> bool:
        self.deliver_texts.append(text)
        return True

    def close(self, code: int = 1000, reason: str = "") -> None:
        self.closed.append(code)

    def set_ping_interval(self, seconds: float) -> None:
        self.pings_every = seconds


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Provider:
    made = Provider()
    monkeypatch.setattr(realtime_connection, "fetch", made.fetch)
    return made


class Taker:
    """Flow that waits for one event of a connection; `events` receives the event, or `problems` the error text."""

    def __init__(self, rig: VoiceHarness, link: RealtimeConnection) -> None:
        self.events: list[ProviderEvent] = []
        self.problems: list[str] = []
        taking = link.next_event(within=10.0)
        refused = lambda error: self.problems.append(str(error))  # noqa: E731 - one of many arguments
        rig.within(lambda: rig.engine.spawn(taking, on_done=self.events.append, on_error=refused))


def opened(rig: VoiceHarness) -> RealtimeConnection:
    (link,) = rig.spawn(connect_realtime(rig.engine, OpenAiDialect(ACCESS, OPTIONS), provider="xai_realtime"))
    return link


def hear(rig: VoiceHarness, provider: Provider, *events: dict[str, object]) -> None:
    for event in events:
        rig.within(partial(provider.handler.on_text, json.dumps(event)))


def sound(size: int) -> dict[str, object]:
    return {"type": "response.output_audio.delta", "response_id": "r", "delta": b64encode(bytes(size)).decode()}


def test_a_conversation(rig: VoiceHarness, provider: Provider) -> None:
    link = opened(rig)
    assert (provider.headers, provider.pings_every) == (((b"authorization", b"Bearer a-key"),), 20.0)
    rig.within(lambda: link.send(SendUserText("a"), AppendInput(b"\1"), Respond()))
    assert [json.loads(text)["type"] for text in provider.deliver_texts] == [
        "session.update",
        "conversation.item.create",
        "response.create",
    ]
    first = Taker(rig, link)
    hear(rig, provider, {"type": "nothing"})
    rig.within(lambda: provider.handler.on_text("no json"))
    rig.within(lambda: provider.handler.on_text("[]"))
    rig.within(lambda: provider.handler.on_binary(b""))
    rig.within(provider.handler.on_writable)
    assert first.events == []
    hear(rig, provider, sound(4), sound(4))
    assert first.events == [AudioDelta("r", bytes(4))]
    hear(rig, provider, {"type": "response.text.delta", "response_id": "r", "delta": "b"})
    assert [Taker(rig, link).events for _ in range(2)] == [[AudioDelta("r", bytes(4))], [SpokenTextDelta("r", "b")]]
    silent = Taker(rig, link)
    rig.after(11.0)
    assert silent.problems == ["the provider says nothing any more"]
    rig.within(link.close)
    hear(rig, provider, DONE)
    assert provider.closed == [1000]
    assert Taker(rig, link).problems == ["closed"]


def test_events_are_read_leniently_also_before_a_close(rig: VoiceHarness, provider: Provider) -> None:
    link = opened(rig)
    odd = r'{"type":"x","type":"response.text.delta","response_id":"r","delta":"cut \ud83d","score":NaN}'
    rig.within(lambda: provider.handler.on_text(odd))
    assert Taker(rig, link).events == [SpokenTextDelta("r", "cut \ufffd")]
    hear(rig, provider, DONE)
    rig.within(lambda: provider.handler.on_closed(1006, "secret reason"))
    rig.within(lambda: provider.handler.on_closed(1000, ""))
    assert Taker(rig, link).events == [ResponseDone("r")]
    assert Taker(rig, link).problems == ["the provider closed the connection with code 1006"]


@pytest.mark.parametrize(("sizes", "refused"), [([2] * 3, False), ([2] * 4, True), ([4, 4], False), ([4, 6], True)])
def test_provider_too_far_ahead_is_disconnected(
    rig: VoiceHarness, provider: Provider, sizes: list[int], refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(realtime_connection, "MAX_EVENTS", 3)
    monkeypatch.setattr(realtime_connection, "MAX_BYTES", 8)
    link = opened(rig)
    hear(rig, provider, *map(sound, sizes))
    assert provider.closed == ([1008] if refused else [])
    assert Taker(rig, link).problems == (["the provider is too far ahead of the listener"] if refused else [])


def test_delivered_events_free_the_buffer(
    rig: VoiceHarness, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(realtime_connection, "MAX_BYTES", 8)
    link = opened(rig)
    for _ in range(3):
        hear(rig, provider, sound(6))
        assert Taker(rig, link).events == [AudioDelta("r", bytes(6))]
    assert provider.closed == []


@pytest.mark.parametrize(
    ("refusal", "text"),
    [
        (Failure(FailureKind.UNREACHABLE, "10.0.0.1"), "xai_realtime cannot be reached: unreachable"),
        (HttpResult(401, Headers(()), b"bad key secret"), "xai_realtime does not accept the configured API key"),
        (HttpResult(429, Headers(()), b""), "xai_realtime takes no more sessions for now (429)"),
        (HttpResult(404, Headers(()), b"secret"), "xai_realtime declined the socket with 404"),
    ],
)
def test_no_connection(provider: Provider, refusal: Failure | HttpResult, text: str) -> None:
    provider.refusal = refusal
    with pytest.raises(ProviderError) as problem:
        opened(VoiceHarness())
    assert str(problem.value) == text
