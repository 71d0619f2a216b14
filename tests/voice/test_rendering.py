from types import SimpleNamespace
from typing import Any, cast

from svc_proto.engine.flow import Flow
from svc_proto.voice.provider_interface import AudioChunk, ProviderError, RenderResult, SpeechRequest
from svc_proto.voice.rendering import Rendering
from tests.voice.harness import VoiceHarness

CHUNK = AudioChunk(b"\1\0" * 10, 24_000)


class Listener:
    def __init__(self, session: Any) -> None:
        self.session, self.engine = session, session.engine
        self.told: list[tuple[str, Any]] = []

    def rendered_audio(self, response_id: str, chunk: AudioChunk) -> None:
        self.told.append((response_id, chunk))

    def wait_writable(self) -> Flow[None]:
        yield from ()

    def rendered(self, response_id: str, done: RenderResult | Exception, fields: dict[str, object]) -> None:
        self.told.append((response_id, fields or str(done)))


def begin(rig: VoiceHarness) -> tuple[Rendering, Listener]:
    session = SimpleNamespace(
        engine=rig.engine, voice=rig.voice, chosen=SimpleNamespace(provider="puppet"), has_room=True
    )
    listener = Listener(session)
    made: list[Rendering] = []
    rig.within(lambda: made.append(Rendering(cast("Any", listener), SpeechRequest(text="Hi."), "r1")))
    assert made[0].has_room
    return made[0], listener


def test_text_is_rendered(rig: VoiceHarness) -> None:
    _, listener = begin(rig)
    rig.within(lambda: rig.scripted.queue_samples(CHUNK, None))
    (first, (response_id, fields)) = listener.told
    assert first == ("r1", CHUNK)
    assert response_id == "r1"
    assert fields["metrics"]["provider"] == "puppet"
    assert "hidden" not in str(fields["metadata"])


def test_rendering_fails(rig: VoiceHarness) -> None:
    _, listener = begin(rig)
    rig.within(lambda: rig.scripted.queue_samples(ProviderError("no voice")))
    assert listener.told == [("r1", "no voice")]


def test_rendering_is_stopped(rig: VoiceHarness) -> None:
    rendering, listener = begin(rig)
    rig.within(rendering.task.cancel)
    rig.within(rendering.task.cancel)
    assert rig.scripted.stopped
    assert listener.told == []
