"""Rendering of one text: audio in pieces of limited size, with timing metrics (wire terminal-voice 6.6)."""

from svc_proto.basics.pcm import whole_samples
from svc_proto.engine.flow import Flow
from svc_proto.voice.provider_interface import AudioChunk, RenderResult, SpeechRequest
from svc_proto.voice.session import MAX_DELTA, VoiceMode
from svc_proto.voice.speak_request import SpeechMetrics, mask_secrets

__all__ = ["Rendering"]


class Rendering:
    """Rendering in progress; an `AudioSink`. `mode` receives the audio and the result."""

    def __init__(self, mode: VoiceMode, request: SpeechRequest, response_id: str = "") -> None:
        self._mode = mode
        self._session = mode.session
        self._request = request
        self._response_id = response_id
        self._metrics = SpeechMetrics(mode.engine.now.mono)
        self.task = mode.engine.spawn(self._render(), on_done=self._done, on_error=self._failed)

    @property
    def has_room(self) -> bool:
        """Report whether the client has room for more audio."""
        return self._session.has_room

    def write(self, chunk: AudioChunk) -> None:
        """Pass on a piece of audio: whole samples, at most `MAX_DELTA` bytes."""
        self._metrics.piece(len(chunk.data), chunk.sample_rate, self._session.engine.now.mono)
        self._mode.rendered_audio(self._response_id, chunk)

    def chunk(self, chunk: AudioChunk) -> Flow[None]:
        """Pass on audio of the renderer in pieces; wait for the client after each."""
        data = whole_samples(chunk.data)
        for start in range(0, len(data), MAX_DELTA):
            self.write(AudioChunk(data[start : start + MAX_DELTA], chunk.sample_rate, chunk.label))
            yield from self._mode.wait_writable()

    def _render(self) -> Flow[RenderResult]:
        session = self._session
        return (yield from session.voice.providers.renderer(session.chosen.provider).render(self._request, self))

    def _done(self, done: RenderResult) -> None:
        metrics = self._metrics.report(done, now=self._session.engine.now.mono)
        self._mode.rendered(self._response_id, done, {"metrics": metrics, "metadata": mask_secrets(done.metadata)})

    def _failed(self, error: Exception) -> None:
        self._mode.rendered(self._response_id, error, {})
