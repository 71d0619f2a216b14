"""The socket to a realtime provider: said, heard, waited for, and given up."""

from __future__ import annotations

import json

import pytest

from svc_proto.engine.client import Fetched
from svc_proto.engine.flow import Flow
from svc_proto.facts import Failure, FailureKind
from svc_proto.voice import provider_link
from svc_proto.voice.contract import (
    AudioDelta,
    ProviderError,
    ProviderEvent,
    RealtimeOptions,
    ResponseDone,
    TextDelta,
)
from svc_proto.voice.provider_link import ProviderLink, open_link
from svc_proto.wire.events import Headers
from tests.voice.dialects import FakeDialect, Provider
from tests.voice.rig import Rig

OPTIONS = RealtimeOptions(model="m", voice="v", sample_rate=24_000)


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Provider:
    made = Provider()
    monkeypatch.setattr(provider_link, "fetch", made.fetch)
    return made


class Taker:
    """A flow that takes an event."""

    def __init__(self, rig: Rig, link: ProviderLink) -> None:
        self.events: list[ProviderEvent] = []
        self.problems: list[str] = []

        def take() -> Flow[ProviderEvent]:
            return (yield from link.take(within=10.0))

        rig.do(
            lambda: rig.engine.spawn(
                take(), on_done=self.events.append, on_error=lambda error: self.problems.append(str(error))
            )
        )


def opened(rig: Rig) -> ProviderLink:
    return rig.flow(open_link(rig.engine, FakeDialect(OPTIONS)))


def say(rig: Rig, provider: Provider, **message: object) -> None:
    rig.do(lambda: provider.handler.on_text(json.dumps(message)))


def test_a_conversation(provider: Provider) -> None:
    rig = Rig()
    link = opened(rig)
    assert (provider.headers, provider.pings_every) == (FakeDialect.headers, 20.0)
    rig.do(lambda: link.send(FakeDialect(OPTIONS).say("a"), FakeDialect(OPTIONS).respond()))
    assert [json.loads(text)["say"] for text in provider.heard] == ["setup", "text", "respond"]
    first = Taker(rig, link)
    say(rig, provider, do="nothing")
    rig.do(lambda: provider.handler.on_text("no json"))
    rig.do(lambda: provider.handler.on_text("[]"))
    rig.do(lambda: provider.handler.on_binary(b""))
    rig.do(provider.handler.on_writable)
    assert first.events == []
    say(rig, provider, do="audio", size=4, times=2)
    assert first.events == [AudioDelta("r", bytes(4))]
    say(rig, provider, do="text", text="b")
    assert [Taker(rig, link).events for _ in range(2)] == [[AudioDelta("r", bytes(4))], [TextDelta("r", "b")]]
    silent = Taker(rig, link)
    rig.after(11.0)
    assert silent.problems == ["the provider says nothing any more"]
    rig.do(link.close)
    say(rig, provider, do="done")
    assert provider.closed == [1000]
    assert Taker(rig, link).problems == ["closed"]


def test_what_was_said_before_the_end_is_still_heard(provider: Provider) -> None:
    rig = Rig()
    link = opened(rig)
    say(rig, provider, do="done")
    rig.do(lambda: provider.handler.on_closed(1006, ""))
    assert Taker(rig, link).events == [ResponseDone("r")]
    assert Taker(rig, link).problems == ["the provider closed the connection with code 1006"]


def test_whoever_waits_hears_of_the_end(provider: Provider) -> None:
    rig = Rig()
    waiting = Taker(rig, opened(rig))
    rig.do(lambda: provider.handler.on_closed(1011, "secret reason"))
    assert waiting.problems == ["the provider closed the connection with code 1011"]


@pytest.mark.parametrize(("times", "size", "refused"), [(3, 1, False), (4, 1, True), (2, 4, False), (1, 9, True)])
def test_a_provider_far_ahead_of_its_listener(
    provider: Provider, times: int, size: int, refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provider_link, "MAX_EVENTS", 3)
    monkeypatch.setattr(provider_link, "MAX_BYTES", 8)
    rig = Rig()
    link = opened(rig)
    say(rig, provider, do="audio", size=size, times=times)
    assert provider.closed == ([1008] if refused else [])
    assert Taker(rig, link).problems == (["the provider is too far ahead of the listener"] if refused else [])


@pytest.mark.parametrize(
    ("refusal", "text"),
    [
        (Failure(FailureKind.UNREACHABLE, "10.0.0.1"), "the provider cannot be reached: unreachable"),
        (Fetched(401, Headers(()), b"bad key secret"), "the provider refused the connection with status 401"),
    ],
)
def test_no_connection(provider: Provider, refusal: Failure | Fetched, text: str) -> None:
    provider.refusal = refusal
    with pytest.raises(ProviderError) as problem:
        opened(Rig())
    assert str(problem.value) == text
