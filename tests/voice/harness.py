"""Voice services without a relay: a `CoreHarness`, sockets that are lists, and a scripted renderer.

rig = VoiceHarness()                             # or with other files, and another configuration
answer = rig.create(rig.output, provider="stub")
client = rig.attach(rig.output, answer)
client.send_event("response.create", text="Hello.")
assert client.types() == [...]
"""

import json
from collections.abc import Mapping
from typing import Any, cast

import yaml

from svc_proto.commands import AppendFile, SweepFolder
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.engine.sync import Condition
from svc_proto.engine.websocket import WebSocketConnection, WebSocketHandler
from svc_proto.facts import Started
from svc_proto.voice.principal import Principal
from svc_proto.voice.provider_interface import (
    AudioChunk,
    AudioSink,
    ProviderError,
    Renderer,
    RenderResult,
    SpeechRequest,
)
from svc_proto.voice.providers.stub import StubRenderer
from svc_proto.voice.service import VoiceServices
from svc_proto.voice.session_manager import VoiceSessionManager
from svc_proto.voice.speech_sessions import LabSessionManager, OutputSessionManager
from svc_proto.voice_config import VoiceConfig
from tests.machines.fixed_inputs import source
from tests.support.core_harness import CoreHarness
from tests.support.playbook import IdleService

OWN = "/home/config.yaml"  # the relay's own voice settings
CONFIG = VoiceConfig(home="/home", service_home="/h", config_path="/h/config.yaml", api_key="from the environment")
STUB = {OWN: {"voice_output": {"provider": "stub"}, "realtime_voice": {"provider": "stub"}}}
PHONE = Principal(kind="session", device_id="phone", bearer_hash="a" * 64)
SOUND = AudioChunk(b"\x00\x10" * 240, 24_000, "tone")  # 10 ms
OTHER = Principal(kind="session", device_id="tablet", bearer_hash="b" * 64)


class ScriptedRenderer:
    """`Renderer` that sends the audio, raises the errors, and returns at the ends, that a test has queued."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._bell = Condition(engine)
        self._next: list[AudioChunk | ProviderError | Exception | None] = []
        self.request: SpeechRequest | None = None
        self.sink: AudioSink  # of the request
        self.taken = 0  # the flow has ended, for any reason
        self.stopped = False

    def queue_samples(self, *moves: AudioChunk | Exception | None) -> None:
        """Queue audio, an error, or None for the end."""
        self._next += moves
        self._bell.notify_all()

    def render(self, request: SpeechRequest, sink: AudioSink) -> Flow[RenderResult]:
        self.request, self.sink = request, sink
        try:
            while True:
                while not self._next:
                    yield from self._bell.wait(self._engine.now.mono + 1e6)
                match self._next.pop(0):
                    case AudioChunk() as chunk:
                        yield from sink.chunk(chunk)
                        self.taken += 1
                    case None:
                        metadata = {"api_key": "hidden", "rate": 1.5, "odd": float("nan"), "nested": {}, "none": None}
                        return RenderResult(
                            provider="puppet", model="m", voice="v", metadata=metadata, transcript="as it was said"
                        )
                    case error:
                        raise error
        finally:
            self.stopped = True


class VoiceTestClient:
    """Client of one WebSocket, and the `WebSocketConnection` that the relay sends to."""

    def __init__(self, book: CoreHarness, handler: WebSocketHandler) -> None:
        self._book = book
        self._handler = handler
        self.number: int = book.engine.new_op()  # unique
        self.writable = True
        self.texts: list[str] = []  # received texts
        self.closed: int | None = None  # the code with which the relay closed it
        self.reason = ""
        self.pings_every: float | None = None
        book.within(lambda: handler.on_open(cast("WebSocketConnection", self)))

    # --- the client ---

    def send_event(self, kind: str, **fields: object) -> None:
        """Send a message of this type as JSON."""
        self.send(json.dumps({"type": kind, **fields}))

    def send(self, text: str) -> None:
        """Send a text message."""
        self._book.within(lambda: self._handler.on_text(text))

    def send_binary(self, data: bytes) -> None:
        """Send a binary message."""
        self._book.within(lambda: self._handler.on_binary(data))

    def disconnect(self, code: int = 1006) -> None:
        """Report the end of the socket, with this close code, to the handler."""
        self._book.within(lambda: self._handler.on_closed(code, ""))

    def read(self) -> None:
        """Become writable again, and report it to the handler."""
        self.writable = True
        self._book.within(self._handler.on_writable)

    def events(self) -> list[dict[str, Any]]:
        """Return the events that have arrived since the last call."""
        arrived, self.texts = self.texts, []
        return [json.loads(text) for text in arrived]

    def types(self) -> list[str]:
        """Return the types of the new events."""
        return [event["type"] for event in self.events()]

    # --- the socket ---

    def send_text(self, text: str) -> bool:
        if self.closed is not None:
            return False
        self.texts.append(text)
        return True

    def close(self, code: int = 1000, reason: str = "") -> None:
        if self.closed is None:
            self.closed, self.reason = code, reason

    def set_ping_interval(self, seconds: float) -> None:
        self.pings_every = seconds


class VoiceHarness(CoreHarness):
    """Core harness with the voice services, their files and a scripted renderer."""

    def __init__(self, files: Mapping[str, object] = STUB, *, config: VoiceConfig = CONFIG) -> None:
        super().__init__(IdleService(), entropy=source())
        for path, value in files.items():
            self.write(path, value)
        self.feed(Started())
        self.voice = VoiceServices(self.engine, config)
        self.scripted = ScriptedRenderer(self.engine)  # the renderer of every provider but `stub`
        self.voice.providers.renderer = self._renderer  # type: ignore[method-assign]  # see `VoiceServices`
        self.output = OutputSessionManager(self.voice)
        self.lab = LabSessionManager(self.voice)

    def _renderer(self, provider_id: str) -> Renderer:
        return StubRenderer() if provider_id == "stub" else self.scripted

    # --- sessions and sockets ---

    def create(self, family: VoiceSessionManager, principal: Principal = PHONE, /, **body: object) -> dict[str, Any]:
        """Create a session and return the answer to its caller."""
        (answer,) = self.spawn(family.create(body, principal))
        return dict(answer)

    def attach(
        self, family: VoiceSessionManager, answer: Mapping[str, Any], principal: Principal = PHONE
    ) -> VoiceTestClient:
        """Open a socket of the session."""
        return VoiceTestClient(self, self.within(lambda: family.open(principal, answer["session_id"])))

    def log(self, answer: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Let two seconds pass, and return the events in the event log of a session on disk; [] without a file."""
        self.after(2.0)
        path = answer["event_log_path"]
        return [json.loads(line) for line in self.disk.get(path).splitlines()] if self.disk.exists(path) else []

    # --- the disk ---

    def write(self, path: str, value: object) -> None:
        """Write a file; a value that is not text is written as YAML."""
        text = value if isinstance(value, str) else yaml.safe_dump(value)
        self.disk.put(path, text.encode())

    @property
    def writes(self) -> int:
        """Return the number of `AppendFile` commands so far."""
        return sum(isinstance(command, AppendFile) for command in self.commands)

    @property
    def sweeps(self) -> list[SweepFolder]:
        return [command for command in self.commands if isinstance(command, SweepFolder)]


def spoken(rig: VoiceHarness, **body: object) -> tuple[dict[str, Any], VoiceTestClient]:
    """Create a session whose scripted renderer has started; return the answer to its creation, and its client."""
    answer = rig.create(rig.output, provider="openai_tts", **body)
    client = rig.attach(rig.output, answer)
    client.send_event("response.create", text="Hello there.")
    return answer, client


def queue_samples(rig: VoiceHarness, *moves: AudioChunk | Exception | None) -> None:
    """Queue audio, errors or ends for the scripted renderer of a harness."""
    rig.within(lambda: rig.scripted.queue_samples(*moves))
