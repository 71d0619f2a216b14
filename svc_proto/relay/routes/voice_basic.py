"""Routes of basic voice: configuration, speech to text, text to an audio file (wire terminal-voice 3)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from svc_proto.basics.errors import Refused
from svc_proto.commands import DeleteBlob, Level
from svc_proto.engine.flow import Flow
from svc_proto.engine.message import JsonResponse, Request, Response, json_response
from svc_proto.engine.router import Route
from svc_proto.relay.access import BASIC_PATHS, RelayAccess
from svc_proto.relay.routes.voice_settings import VoicePort
from svc_proto.relay.voice.recording_upload import MAX_UPLOAD, MULTIPART_EXTRA, receive_recording
from svc_proto.voice.basic import BasicVoice, spoken_text
from svc_proto.voice.profiles import profile_of
from svc_proto.wire.events import Headers

if TYPE_CHECKING:
    from svc_proto.schema.voice_types import TranscriptJson, VoiceConfigJson

__all__ = ["MAX_BUSY", "routes"]

MAX_BUSY = 64  # concurrent recordings and texts; a further one: 503
RETRY = ((b"retry-after", b"5"),)
NAMES = {"audio/mpeg": "tts.mp3", "audio/wav": "tts.wav", "audio/ogg": "tts.ogg", "audio/flac": "tts.flac"}

ResponseT = TypeVar("ResponseT", bound=Response)


def routes(relay: VoicePort) -> list[Route]:
    """Return the routes of voice configuration, transcription and synthesis."""
    view = _BasicVoiceRoutes(relay)
    config, transcribe, synthesize = BASIC_PATHS
    return [
        Route(method="GET", pattern=config, access=RelayAccess.VOICE_CONFIG, handler=view.config),
        Route(
            method="POST",
            pattern=transcribe,
            access=RelayAccess.VOICE_STT,
            handler=partial(view.with_concurrency_limit, view.transcribe),
            body_limit=MAX_UPLOAD + MULTIPART_EXTRA,
            streamed=True,
        ),
        Route(
            method="POST",
            pattern=synthesize,
            access=RelayAccess.VOICE_TTS,
            handler=partial(view.with_concurrency_limit, view.synthesize),
        ),
    ]


class _BasicVoiceRoutes:
    def __init__(self, relay: VoicePort) -> None:
        self._relay = relay
        self._busy = 0  # requests in progress

    def config(self, request: Request) -> Flow[JsonResponse[VoiceConfigJson]]:
        answer = yield from BasicVoice(self._relay.voice_side.voice).config(profile_of(request.query))
        return json_response(200, answer)

    def with_concurrency_limit(self, work: Callable[[Request], Flow[ResponseT]], request: Request) -> Flow[ResponseT]:
        """Run `work` and return its response; raise `Refused` 503 if `MAX_BUSY` requests are in progress."""
        if self._busy >= MAX_BUSY:
            raise Refused(503, "busy", "too many others are speaking: try again in a while", headers=RETRY)
        self._busy += 1
        try:
            return (yield from work(request))
        finally:
            self._busy -= 1

    def transcribe(self, request: Request) -> Flow[JsonResponse[TranscriptJson]]:
        relay = self._relay
        recording = yield from receive_recording(relay.engine, request)
        try:
            profile = profile_of(request.query)
            heard, provider = yield from BasicVoice(relay.voice_side.voice).transcribe(profile, recording)
        finally:
            relay.engine.emit(DeleteBlob(recording.path))
        relay.engine.log(Level.INFO, "voice transcribed", provider=provider, size=recording.size)
        return json_response(200, {"success": True, "text": heard, "provider": provider, "profile": profile})

    def synthesize(self, request: Request) -> Flow[Response]:
        body = request.json_object()
        text = spoken_text(body.get("text"))
        basic = BasicVoice(self._relay.voice_side.voice)
        spoken = yield from basic.synthesize(profile_of(request.query, body), text, body)
        name = NAMES.get(spoken.content_type, "tts")
        headers = [
            (b"content-type", spoken.content_type.encode("ascii")),
            (b"cache-control", b"private, no-store"),
            (b"content-disposition", f'inline; filename="{name}"'.encode("ascii")),
        ]
        return Response(200, Headers(headers), spoken.data)
