"""Providers of speech on every loop.

The host's own engines say a sentence and understand it, without a network and without a key. Vendors are peers that
speak their protocols over real sockets.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
from io import BytesIO
from types import MappingProxyType
from typing import Any, cast

import pytest

from runtimes.sim.child import Child, Script
from runtimes.voice_work import encode_mp3, find_engines
from svc_proto.commands import Level, Ready
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.facts import Accepted
from svc_proto.voice.contract import AudioChunk, Recording, SpeechRequest
from svc_proto.voice.keys import Keys
from svc_proto.voice.providers.table import Providers
from tests.loops.virtual import VirtualWorld
from tests.loops.world import World
from tests.peers.openai_voice import OpenAiPeer
from tests.peers.realtime import RealtimeScript, Said
from tests.peers.vendor import Sound
from tests.voice.sounds import CLEAR_VOICE, SENTENCE, needs_decoder, needs_engines, spoken, words

Plan = Callable[[Providers, Engine], Flow[Any]]
PATIENCE = 60.0  # s: the machine may be busy


class Chore:
    """A service that runs one flow and keeps what came of it."""

    engine: Engine

    def __init__(self, plan: Plan, variables: Mapping[str, str]) -> None:
        self._plan = plan
        self._variables = variables
        self.outcome: list[Any] = []

    def bind(self, engine: Engine) -> None:
        self.engine = engine

    def on_started(self) -> None:
        self.engine.emit(Ready())
        plan = self._plan(Providers(self.engine, Keys(self._variables)), self.engine)
        self.engine.spawn(plan, on_done=self._over, on_error=self._over)

    def _over(self, outcome: object) -> None:
        self.outcome.append(outcome)
        self.engine.log(Level.INFO, "over")

    def on_accepted(self, fact: Accepted) -> None:
        return None

    def on_stopping(self) -> None:
        pass


class Sink:
    def __init__(self) -> None:
        self.chunks: list[AudioChunk] = []

    def chunk(self, chunk: AudioChunk) -> Flow[None]:
        self.chunks.append(chunk)
        yield from ()


class RealProgram(Script):
    """In the simulated world a real program, run to its end when its input has ended."""

    def __init__(self, child: Child) -> None:
        super().__init__(child)
        self._input = b""
        self._output = b""

    def on_input(self, data: bytes) -> None:
        self._input += data

    def on_input_closed(self) -> None:
        done = subprocess.run(self.child.argv, input=self._input, capture_output=True, check=False)
        self._output = done.stdout
        self.child.emit_error(done.stderr)
        self._status = done.returncode
        self.on_room()

    def on_room(self) -> None:
        room = self.child.room
        self.child.emit(self._output[:room])
        self._output = self._output[room:]
        if not self._output:
            self.child.exit(self._status)


def do(world: World, plan: Plan, variables: Mapping[str, str] = MappingProxyType({})) -> Any:
    """Run a plan in the world."""
    if isinstance(world, VirtualWorld):
        host = world.relay_host
        host.compute["voice.engines"] = find_engines
        host.compute["voice.mp3"] = encode_mp3
        found = find_engines()
        for argv in (found["speak"], found["listen"]):
            host.programs |= dict.fromkeys(cast("list[str]", argv)[:1], RealProgram)
    chore = Chore(plan, variables)
    server = world.start_service("voice", lambda port, home: chore, port=9100)
    world.wait_until(lambda: bool(chore.outcome), PATIENCE)
    server.stop()
    (outcome,) = chore.outcome
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


@pytest.mark.repetition  # of test_voice::test_a_sentence_is_spoken_and_understood_offline, which goes through the relay
@needs_engines
@needs_decoder
def test_a_sentence_comes_back(world: World, tmp_path: Any) -> None:
    """It is spoken into an MP3 file, and most of its words are heard in that again."""
    path = tmp_path / "speech.mp3"

    def plan(providers: Providers, engine: Engine) -> Flow[tuple[bool, bytes, str]]:
        installed = yield from providers.local_installed()
        spoken = yield from providers.speaker("local").speak(SpeechRequest(text=SENTENCE, voice=CLEAR_VOICE))
        path.write_bytes(spoken.data)  # what the route of uploads does by `CreateBlob`
        recording = Recording(
            path=str(path), size=len(spoken.data), content_type=spoken.content_type, suffix=path.suffix
        )
        heard = yield from providers.transcriber("local").transcribe(recording, language="en")
        return installed, spoken.data, heard.text

    installed, data, text = do(world, plan)
    assert installed
    assert 1.5 < seconds(data) < 5.0
    assert len(words(text) & words(SENTENCE)) >= 0.6 * len(words(SENTENCE)), text


@needs_engines
def test_speech_is_streamed_at_the_rate_that_was_asked_for(world: World) -> None:
    sink = Sink()

    def plan(providers: Providers, engine: Engine) -> Flow[Any]:
        request = SpeechRequest(text=SENTENCE, voice=CLEAR_VOICE, sample_rate=24_000)
        return (yield from providers.renderer("local").render(request, sink))

    done = do(world, plan)
    assert (done.provider, done.voice) == ("local", CLEAR_VOICE)
    size = sum(len(chunk.data) for chunk in sink.chunks)
    wanted = (len(spoken()) - 44) / 2 / 22_050 * 140 / 160  # s
    assert abs(size / 2 / 24_000 - wanted) < 0.8
    assert len(sink.chunks) > 10
    assert {chunk.sample_rate for chunk in sink.chunks} == {24_000}


@needs_engines
@pytest.mark.parametrize(("voice", "complaint"), [("nobody", "espeak-ng has no voice nobody")])
def test_a_voice_that_it_does_not_have(world: World, voice: str, complaint: str) -> None:
    def plan(providers: Providers, engine: Engine) -> Flow[Any]:
        return (yield from providers.renderer("local").render(SpeechRequest(text="Hi.", voice=voice), Sink()))

    with pytest.raises(Exception, match=complaint):
        do(world, plan)


@needs_engines
def test_a_recording_that_is_cut_short(world: World, tmp_path: Any) -> None:
    path = tmp_path / "cut.wav"
    path.write_bytes(spoken()[:-100])

    def plan(providers: Providers, engine: Engine) -> Flow[Any]:
        recording = Recording(path=str(path), size=1, content_type="audio/wav", suffix=".wav")
        return (yield from providers.transcriber("local").transcribe(recording))

    with pytest.raises(Exception, match="the WAV file is cut short"):
        do(world, plan)


def test_vendors_over_sockets(world: World) -> None:
    """Sound over HTTP, and over a realtime WebSocket."""
    sound = bytes(range(256)) * 1_000
    script = RealtimeScript([Said("Hello.", sound, pieces=20)])
    url = world.peer(OpenAiPeer([Sound(sound)], script))
    variables = {
        "OPENAI_API_KEY": "sk-test-key",
        "OPENAI_BASE_URL": f"{url}/v1",
        "OPENAI_REALTIME_URL": f"{url.replace('http', 'ws')}/v1/realtime",
    }
    sinks = {"openai_tts": Sink(), "openai_realtime": Sink()}

    def plan(providers: Providers, engine: Engine) -> Flow[list[str]]:
        done = []
        for name, sink in sinks.items():
            rendered = yield from providers.renderer(name).render(SpeechRequest(text="Hello."), sink)
            done.append(rendered.provider)
        return done

    assert do(world, plan, variables) == ["openai_tts", "openai_realtime"]
    for sink in sinks.values():
        assert b"".join(chunk.data for chunk in sink.chunks) == sound


def seconds(mp3: bytes) -> float:
    """How long an MP3 file lasts, by a library that is not ours."""
    import av

    with av.open(BytesIO(mp3), format="mp3") as file:
        return float(sum(frame.samples / frame.sample_rate for frame in file.decode(audio=0)))
