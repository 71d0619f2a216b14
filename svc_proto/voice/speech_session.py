"""A session in which a renderer speaks, one response at a time: how sound reaches the client and the WAV copy.

class OutputSession(SpeechSession[OutputSettings]):
    def finish(self): ...                  # a response is over, well or not
    def spoken(self, done): ...            # it is: tell
    def failed(self, error): ...           # it broke off: tell

self.start(message, "verbatim", text_chars=12)
self.speak(request)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from svc_proto.engine.flow import Flow, Task
from svc_proto.voice.contract import AudioChunk, Rendered, SpeechRequest
from svc_proto.voice.event_log import AudioCopy
from svc_proto.voice.family import ChosenSession, ChosenT
from svc_proto.voice.pcm import whole_samples
from svc_proto.voice.session import MAX_DELTA
from svc_proto.voice.session_table import SessionTable
from svc_proto.voice.speaking import Metrics, masked

if TYPE_CHECKING:
    from svc_proto.voice.principal import Principal
    from svc_proto.voice.service import Voice

__all__ = ["SpeechSession"]

MAX_MODE = 80  # characters of `render_mode`: the rest is cut


class SpeechSession(ChosenSession[ChosenT], ABC):
    """See the module."""

    def __init__(
        self,
        voice: Voice,
        table: SessionTable[Any],
        principal: Principal,
        chosen: ChosenT,
        *,
        window: float,
        runs: str,
    ) -> None:
        super().__init__(voice, table, principal, chosen, window=window, runs=runs)
        self.copy = AudioCopy(self.engine, f"{self.run_path}.wav")  # of the response that is spoken, or was last
        self.task: Task | None = None
        self._metrics: Metrics  # of the response that is spoken, or was last

    # --- for the families ---

    @abstractmethod
    def finish(self) -> None:
        """A response is over, well or not: let the state follow."""

    @abstractmethod
    def spoken(self, done: Rendered) -> None:
        """A response was spoken to its end."""

    @abstractmethod
    def failed(self, error: Exception) -> None:
        """The speech broke off with this error."""

    def start(self, message: Mapping[str, object], mode: str, /, **fields: object) -> None:
        """Say that the response to `response.create` begins; `mode` if it names none."""
        asked = message.get("render_mode")
        word = asked[:MAX_MODE] if isinstance(asked, str) and asked else mode
        self.emit("voice.response.started", **self.choice(), render_mode=word, **fields)

    def speak(self, request: SpeechRequest) -> None:
        """Have it spoken."""
        self._metrics = Metrics(self.engine.now.mono)
        self.task = self.engine.spawn(self._render(request), on_done=self.spoken, on_error=self.failed)

    def tell_done(self, done: Rendered, /, **fields: object) -> None:
        """`voice.audio.done` and `voice.response.done`."""
        self.emit("voice.audio.done")
        who = {"provider": done.provider, "model": done.model, "voice": done.voice}
        self.emit(
            "voice.response.done",
            **who,
            audio_path=self.copy.path,
            event_log_path=self.log.path,
            metrics=self._metrics.report(**who, now=self.engine.now.mono),
            metadata=masked(done.metadata),
            **fields,
        )

    # --- for renderers ---

    def chunk(self, chunk: AudioChunk) -> Flow[None]:
        """Some sound: an `AudioSink`."""
        data = whole_samples(chunk.data)
        for start in range(0, len(data), MAX_DELTA):
            piece = data[start : start + MAX_DELTA]
            self._metrics.piece(len(piece), chunk.sample_rate, self.engine.now.mono)
            self.emit_audio("voice.audio.delta", piece, chunk.sample_rate, label=chunk.label)
            self.copy.write(piece, chunk.sample_rate)
            yield from self.room()

    def _render(self, request: SpeechRequest) -> Flow[Rendered]:
        """A realtime provider answers on a socket of its own, any other reads the text aloud."""
        renderer = self.voice.providers.renderer(self.chosen.provider)
        return (yield from renderer.render(request, self))
