"""Providers in the simulated world, with a vendor's server where a test needs one.

    studio = ProviderHarness(OpenAiRealtimeServer([Sound(pcm)]))
    done = studio.render("openai_tts", text="Hello.")
    assert studio.sink.pcm == pcm

A call raises the errors of its flow. No key may be in a log or in an error.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import pytest

from runtimes.sim.child import ScriptedProgram, SimChild
from runtimes.sim.host import SimHost
from runtimes.sim.simulation import Simulation
from svc_proto.commands import Level
from svc_proto.engine.core import Engine, Service
from svc_proto.engine.flow import Flow, sleep
from svc_proto.voice.provider_interface import (
    AudioChunk,
    ProviderError,
    Recording,
    RenderResult,
    SpeechFile,
    SpeechRequest,
)
from svc_proto.voice.provider_keys import ProviderKeys
from svc_proto.voice.providers.provider_factory import ProviderFactory
from tests.support.playbook import FlowService

T = TypeVar("T")
KEY = "sk-abcdefghijklmnopqrstuvwxyz-0123456789"
PORT = 9000
ENDPOINTS = {"OPENAI": "/v1", "GROQ": "/v1", "MISTRAL": "/v1", "DEEPINFRA": "/v1", "XAI": "", "ELEVENLABS": "/v1/"}
VARIABLES = {f"{name}_API_KEY": KEY for name in ENDPOINTS}
VARIABLES |= {f"{name}_BASE_URL": f"http://vendor:{PORT}{path}" for name, path in ENDPOINTS.items()}
VARIABLES |= {f"{name}_REALTIME_URL": f"ws://vendor:{PORT}/v1/realtime" for name in ("OPENAI", "XAI")}


class Sink:
    """`AudioSink` that stores everything; `pause` is the time of each chunk in seconds."""

    def __init__(self) -> None:
        self.engine: Engine
        self.chunks: list[AudioChunk] = []
        self.at: list[float] = []
        self.pause = 0.0

    @property
    def has_room(self) -> bool:
        return not self.pause

    def write(self, chunk: AudioChunk) -> None:
        self.chunks.append(chunk)
        self.at.append(self.engine.now.mono)

    def chunk(self, chunk: AudioChunk) -> Flow[None]:
        self.write(chunk)
        if self.pause:
            yield from sleep(self.engine, self.pause)

    @property
    def pcm(self) -> bytes:
        return b"".join(chunk.data for chunk in self.chunks)


class ScriptedSpeechProgram(ScriptedProgram):
    """Program of the host that waits for the end of its input.

    Then it writes `first`, waits `after` seconds, writes `leaves`, if given, to the path in its last argument, writes
    `error` and `says`, and exits with `status`, by default 0. With the status None the program does not exit.
    """

    def __init__(self, child: SimChild, does: Mapping[str, Any]) -> None:
        super().__init__(child)
        self.heard = b""
        self.left: bytes = does.get("says", b"")  # output that is not written yet
        self._does = does

    def on_input(self, data: bytes) -> None:
        self.heard += data

    def on_input_closed(self) -> None:
        self.child.emit(self._does.get("first", b""))
        self.child.after(self._does.get("after", 0.0), self._begin)

    def _begin(self) -> None:
        if (file := self._does.get("leaves")) is not None:
            self.child.host.disk.put(self.child.argv[-1], file)
        self.child.emit_error(self._does.get("error", b""))
        self.on_room()

    def on_room(self) -> None:
        piece, self.left = self.left[: self.child.room], self.left[self.child.room :]
        self.child.emit(piece)
        if not self.left and (status := self._does.get("status", 0)) is not None:
            self.child.exit(status)


class ProviderHarness:
    """Simulated host with provider keys and, if `peer` is given, a vendor's server on another host."""

    def __init__(self, peer: Service | None = None, **variables: str) -> None:
        self.sim = Simulation(trace=False)
        self.host: SimHost = self.sim.host("relay", "10.0.0.1")
        self.variables = VARIABLES | variables
        self.sink = Sink()
        if peer is not None:
            host = self.sim.host("vendor", "10.0.0.2")
            endpoint = host.start(lambda entropy: Engine(peer, entropy=entropy), [PORT])
            self.sim.run_until(lambda: endpoint.ready)

    def program(self, path: str, **does: Any) -> list[ScriptedSpeechProgram]:
        """Install a `ScriptedSpeechProgram` with the behaviour `does`; return a list that receives the started ones."""
        started: list[ScriptedSpeechProgram] = []

        def start(child: SimChild) -> ScriptedSpeechProgram:
            started.append(ScriptedSpeechProgram(child, does))
            return started[-1]

        self.host.programs[path] = start
        return started

    # --- flows ---

    def run(self, plan: Callable[[ProviderFactory, Engine], Flow[T]], *, limit: float = 3_600.0) -> T:
        """Run a flow in a process of its own until it ends; require that nothing is left open."""
        life = FlowService(lambda engine: plan(ProviderFactory(engine, ProviderKeys(self.variables)), engine))
        process = self.host.start(lambda entropy: Engine(life, entropy=entropy, log_level=Level.DEBUG))
        self.sim.run_until(lambda: bool(life.results or life.errors or not process.alive), limit)
        self.sim.run_for(5.0)
        assert process.operations.open_handles == 0
        assert process.channel_count == 0
        assert not self.host.children
        process.stop(0.0)
        self.sim.run_until(lambda: not process.alive)
        assert KEY not in repr([line.fields for line in process.logs])
        for error in life.errors:
            assert KEY not in str(error)
            raise error
        (result,) = life.results
        return result  # type: ignore[no-any-return]  # the result of the flow

    def render(self, provider: str, text: str = "Hello.", **request: Any) -> RenderResult:
        """Render speech into `sink`."""

        def plan(providers: ProviderFactory, engine: Engine) -> Flow[RenderResult]:
            self.sink.engine = engine
            return (yield from providers.renderer(provider).render(SpeechRequest(text=text, **request), self.sink))

        return self.run(plan)

    def speak(self, provider: str, text: str = "Hello.", **request: Any) -> SpeechFile:
        """Render speech into a file."""
        return self.run(
            lambda providers, engine: providers.file_speaker(provider).speak(SpeechRequest(text=text, **request))
        )

    def transcribe(self, provider: str, data: bytes = b"RIFFsound", **options: str) -> str:
        """Transcribe an upload."""
        path = f"{self.host.spool}/upload.wav"
        self.host.disk.put(path, data)
        recording = Recording(path=path, size=len(data), content_type="audio/wav", suffix=".wav")
        return self.run(lambda providers, engine: providers.transcriber(provider).transcribe(recording, **options))


def problem(call: Callable[[], object]) -> ProviderError:
    """Return the error that a call raises."""
    with pytest.raises(ProviderError) as caught:
        call()
    return caught.value
