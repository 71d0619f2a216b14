from typing import Any

import pytest

from tests.support.servers.realtime_server import (
    DroppedTurn,
    FailedTurn,
    FunctionCallTurn,
    OpenAiRealtimeServer,
    RawMessageTurn,
    SpokenTurn,
    Turn,
    XaiRealtimeServer,
)
from tests.voice.providers.provider_harness import KEY, ProviderHarness, problem

ENDPOINTS = pytest.mark.parametrize(
    ("provider", "make"), [("openai_realtime", OpenAiRealtimeServer), ("xai_realtime", XaiRealtimeServer)]
)
SOUND = bytes(range(256)) * 40


@ENDPOINTS
def test_text_is_rendered(provider: str, make: Any) -> None:
    peer = make(turns=[SpokenTurn("Hello to you.", SOUND, pieces=4, pause=0.2)])
    studio = ProviderHarness(peer)
    done = studio.render(provider, model="voice-1", voice="v", expression={"emotion": "warm"})
    assert studio.sink.pcm == SOUND
    assert (done.provider, done.model, done.transcript) == (provider, "resolved-model", "Hello to you.")
    (session,) = peer.sessions
    assert session.asked.target == "/v1/realtime?model=voice-1"
    assert session.asked.headers.get(b"authorization") == f"Bearer {KEY}".encode()
    assert session.kinds == ["session.update", "conversation.item.create", "response.create"]
    assert session.said[0]["session"]["instructions"] == "Emotion: warm."
    assert session.closed == 1000


TEXT = '{"type": "response.output_text.delta", "response_id": "r", "delta": "mute"}'
DONE = {"type": "response.done", "response": {"id": "r"}}
FAULTS: list[tuple[Turn, str]] = [
    (FailedTurn("Rate limit reached"), "Rate limit reached"),
    (RawMessageTurn(({"type": "error", "error": {"message": "Bad voice"}},)), "Bad voice"),
    (RawMessageTurn((TEXT, DONE)), "openai_realtime sent no audio (completed)"),
    (FunctionCallTurn("svc_run_task", {}), "openai_realtime sent no audio (completed)"),
    (DroppedTurn(), "the provider closed the connection with code 1006"),
    (DroppedTurn(code=1013), "the provider closed the connection with code 1013"),
    (SpokenTurn("Hm", forgets_done=True), "the provider says nothing any more"),
    (RawMessageTurn(("no JSON", "[1]", "{", {"type": "error", "error": {"message": "after noise"}})), "after noise"),
]


@pytest.mark.parametrize(("turn", "words"), FAULTS)
def test_error_texts(turn: Turn, words: str) -> None:
    studio = ProviderHarness(OpenAiRealtimeServer(turns=[turn]))
    assert str(problem(lambda: studio.render("openai_realtime"))) == words


def test_a_benign_notice_changes_nothing() -> None:
    notice = {"type": "error", "error": {"message": "Cancellation failed: no active response found"}}
    sound = {"type": "response.output_audio.delta", "response_id": "r", "delta": "AAAA"}
    studio = ProviderHarness(OpenAiRealtimeServer(turns=[RawMessageTurn((notice, sound, DONE, sound))]))
    studio.render("openai_realtime")
    assert studio.sink.pcm == b"\0\0"
