"""Renderer by a realtime provider: one socket for one text (wire terminal-voice 5)."""

from collections.abc import Callable

from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.voice.provider_interface import (
    AudioChunk,
    AudioDelta,
    AudioSink,
    ProviderError,
    ProviderErrorEvent,
    ProviderReady,
    RealtimeOptions,
    RenderResult,
    ResponseDone,
    SpeechRequest,
    SpokenTextDelta,
)
from svc_proto.voice.providers.http_apis import instructions_of
from svc_proto.voice.providers.realtime_dialects import RealtimeDialect
from svc_proto.voice.realtime.actions import Respond, SendUserText
from svc_proto.voice.realtime_connection import connect_realtime

__all__ = ["OneShotRenderer"]

SILENCE_TIMEOUT = 60.0  # s between two messages


class OneShotRenderer:
    """`Renderer` whose sound is a realtime model's own answer to the text."""

    def __init__(self, engine: Engine, provider: str, make: Callable[[RealtimeOptions], RealtimeDialect]) -> None:
        self._engine = engine
        self._provider = provider
        self._make = make

    def render(self, request: SpeechRequest, sink: AudioSink) -> Flow[RenderResult]:
        """Connect, send the text and pass the sound to `sink` until the response ends.

        Raise `ProviderError` if the provider fails, falls silent, or sends no audio.
        """
        dialect = self._make(
            RealtimeOptions(
                model=request.model,
                voice=request.voice,
                sample_rate=request.sample_rate,
                instructions=instructions_of(request),
                transcribe=False,
            )
        )
        link = yield from connect_realtime(self._engine, dialect, provider=self._provider)
        model, words, heard, status = request.model, list[str](), 0, ""
        try:
            link.send(SendUserText(request.text), Respond())
            while True:
                match (yield from link.next_event(within=SILENCE_TIMEOUT)):
                    case ProviderReady(model=resolved) if resolved:
                        model = resolved
                    case AudioDelta(data=data):
                        heard += len(data)
                        yield from sink.chunk(AudioChunk(data, request.sample_rate))
                    case SpokenTextDelta(delta=delta):
                        words.append(delta)
                    case ProviderErrorEvent(message=message, benign=False):
                        raise ProviderError(message)
                    case ResponseDone(status=status):
                        break
        finally:
            link.close()
        if not heard:
            raise ProviderError(f"{self._provider} sent no audio ({status})")
        return RenderResult(
            provider=self._provider,
            model=model,
            voice=request.voice,
            metadata={"sample_rate": request.sample_rate},
            transcript="".join(words) or None,
        )
