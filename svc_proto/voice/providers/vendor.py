"""Vendors over HTTP: one request for one text or recording, its answer read as it comes (wire terminal-voice 4.10).

What each is asked is a row (`svc_proto.voice.providers.vendors`); what is waited for, for how long, and what may come
back is decided here, once for all of them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from svc_proto.basics.resampler import Resampler
from svc_proto.engine.client import Fetched, fetch
from svc_proto.engine.files import read_file
from svc_proto.engine.flow import Flow
from svc_proto.engine.readers import BodyReader, pieces
from svc_proto.facts import Failure
from svc_proto.schema.members import Members
from svc_proto.voice.contract import (
    AudioChunk,
    AudioSink,
    ProviderError,
    Recording,
    Rendered,
    SpeechRequest,
    Spoken,
    Transcript,
)
from svc_proto.voice.providers.access import VendorAccess
from svc_proto.voice.providers.problems import broke_off, refused, unreachable
from svc_proto.voice.providers.vendors import VendorApi
from svc_proto.wire.multipart import Part, encode_multipart

if TYPE_CHECKING:
    from svc_proto.engine.core import Engine

__all__ = ["VendorEngine"]

WITHIN = 60.0  # s to the head of an answer, and between two pieces of it, wire 4.10
WHOLE = 900.0  # s for one text, whatever drips in
LISTENING = 300.0  # s for a whole transcription
PIECE = 4_096  # bytes of one chunk, wire 4.7
MAX_SOUND = 96_000_000  # bytes for one text, half an hour at 24 kHz
MAX_UPLOAD = 25 * 1024 * 1024  # bytes, wire 3.3
MAX_TRANSCRIPT = 200_000  # characters
_PCM = re.compile(rb"(?:audio/(?:x-)?(?:pcm|raw|l16)|(?:application|binary)/octet-stream)\b")
_NOT_SOUND = re.compile(rb"(?:text/|application/(?!octet-stream))")
_CONTAINERS = (b"RIFF", b"ID3", b"OggS", b"fLaC", b"\x1aE\xdf\xa3")  # WAV, MP3, Ogg, FLAC, WebM


class VendorEngine:
    """A `Renderer`, a `Speaker` and a `Transcriber`."""

    def __init__(self, engine: Engine, vendor: VendorApi) -> None:
        self._engine = engine
        self._vendor = vendor

    def render(self, request: SpeechRequest, sink: AudioSink) -> Flow[Rendered]:
        """Pass the vendor's PCM on at the pace of the sink."""
        access, call = self._vendor.access, self._vendor.call(request, file=False)
        reader = yield from fetch(
            self._engine, "POST", call.url, into=pieces(), headers=call.headers, body=call.body, within=WITHIN
        )
        if isinstance(reader, Failure):
            raise unreachable(access, reader)
        if isinstance(reader, Fetched):
            raise refused(access, reader)
        try:
            yield from self._pass_on(reader, Resampler(call.sample_rate, request.sample_rate), request, sink)
        finally:
            reader.drop()
        return Rendered(
            provider=self._vendor.api.provider,
            model=call.model,
            voice=call.voice,
            metadata={"sample_rate": request.sample_rate, "source_sample_rate": call.sample_rate},
        )

    def speak(self, request: SpeechRequest) -> Flow[Spoken]:
        """Fetch the vendor's MP3."""
        access, call = self._vendor.access, self._vendor.call(request, file=True)
        answer = yield from fetch(self._engine, "POST", call.url, headers=call.headers, body=call.body, within=WITHIN)
        if isinstance(answer, Failure):
            raise unreachable(access, answer)
        if answer.status != 200:
            raise refused(access, answer)
        kind = (answer.headers.get(b"content-type") or b"").strip().lower()
        if _NOT_SOUND.match(kind):
            raise ProviderError(f"{access.vendor} answered with {_named(kind)}, not audio")
        if not answer.body:
            raise ProviderError(f"{access.vendor} sent no audio")
        return Spoken(answer.body, "audio/mpeg")

    def transcribe(self, recording: Recording, *, model: str = "", language: str = "") -> Flow[Transcript]:
        """Upload the recording and read the answer."""
        access, form = self._vendor.access, self._vendor.form(model, language)
        data = yield from read_file(self._engine, recording.path, limit=MAX_UPLOAD)
        if isinstance(data, Failure):
            raise ProviderError(f"the recording cannot be read: {data.kind.value}")
        boundary = self._engine.entropy(16).hex()
        parts = [Part(name=name, data=value.encode("utf-8")) for name, value in form.fields]
        sound = Part(
            name="file",
            filename=f"voice{recording.suffix}",
            content_type=recording.content_type or "application/octet-stream",
            data=data,
        )
        del data
        answer = yield from fetch(
            self._engine,
            "POST",
            form.url,
            headers=(*form.headers, (b"content-type", f"multipart/form-data; boundary={boundary}".encode("ascii"))),
            body=encode_multipart((*parts, sound), boundary),
            within=LISTENING,
        )
        if isinstance(answer, Failure):
            raise unreachable(access, answer)
        if answer.status != 200:
            raise refused(access, answer)
        return Transcript(text=_transcript(access, answer.body), provider=self._vendor.api.provider)

    def _pass_on(self, reader: BodyReader, sound: Resampler, request: SpeechRequest, sink: AudioSink) -> Flow[None]:
        access = self._vendor.access
        kind = (reader.head.headers.get(b"content-type") or b"").strip().lower()
        until = self._engine.now.mono + WHOLE
        rate, size, passed_on, reading = request.sample_rate, 0, 0, False

        def at_once(data: bytes) -> bool:
            """A piece that comes while this waits for one, and the sink does not have to be waited for."""
            nonlocal size, passed_on
            later = not (reading and passed_on and sink.has_room and len(data) <= PIECE)
            if later or size + len(data) > MAX_SOUND or self._engine.now.mono > until:
                return False
            size += len(data)
            if pcm := sound.feed(data):
                passed_on += len(pcm)
                sink.put(AudioChunk(pcm, rate))
            return True

        reader.tap(at_once)
        while True:
            reading = True
            data = yield from reader.read(within=WITHIN)
            reading = False
            if isinstance(data, Failure):
                raise broke_off(access, data)
            if data is None:
                break
            if not size:
                _require_pcm(access, kind, data)
            size += len(data)
            if size > MAX_SOUND or self._engine.now.mono > until:
                raise ProviderError(f"{access.vendor} does not come to an end")
            for begin in range(0, len(data), PIECE):
                pcm = sound.feed(data[begin : begin + PIECE])
                if pcm:
                    passed_on += len(pcm)
                    yield from sink.chunk(AudioChunk(pcm, rate))
        if not passed_on:
            raise ProviderError(f"{access.vendor} sent no audio")


def _require_pcm(access: VendorAccess, kind: bytes, data: bytes) -> None:
    """Vendors label PCM in many ways, one of them `audio/mpeg`: what is no sound at all, or a file, is refused."""
    frame = kind.startswith(b"audio/mp") and data[0] == 0xFF and len(data) > 1 and data[1] >= 0xE0  # MPEG frame sync
    if _NOT_SOUND.match(kind) or (not _PCM.match(kind) and frame) or data.startswith(_CONTAINERS):
        raise ProviderError(f"{access.vendor} answered with {_named(kind)}, not PCM")


def _named(kind: bytes) -> str:
    return kind.partition(b";")[0].decode("ascii", "replace")[:60] or "something"


def _transcript(access: VendorAccess, body: bytes) -> str:
    text = Members.parsed(body).string("text")
    if text is None:
        raise ProviderError(f"{access.vendor} answered with something that is no transcript")
    return text.strip()[:MAX_TRANSCRIPT]
