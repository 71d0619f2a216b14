"""Provider over HTTP: one request for each text or recording; rendered speech is passed on as it arrives (wire 4.10).

The requests are rows of `svc_proto.voice.providers.http_apis`; timeouts and limits of responses are the same for all
vendors and are defined here.
"""

import re
from typing import TypeVar

from attrs import evolve

from svc_proto.basics import strict_json
from svc_proto.basics.resampler import Resampler
from svc_proto.engine.client_channel import ResponseMode
from svc_proto.engine.core import Engine
from svc_proto.engine.files import read_file
from svc_proto.engine.flow import Flow
from svc_proto.engine.http_client import HttpResult, fetch
from svc_proto.engine.response_readers import BodyReader, streamed
from svc_proto.facts import Failure
from svc_proto.schema.json_object import JsonObject
from svc_proto.voice.provider_interface import (
    AudioChunk,
    AudioSink,
    ProviderError,
    Recording,
    RenderResult,
    SpeechFile,
    SpeechRequest,
)
from svc_proto.voice.provider_keys import ProviderCredentials
from svc_proto.voice.providers.errors import response_error, truncated_error
from svc_proto.voice.providers.http_apis import RATE, SpeechApi
from svc_proto.wire.multipart import Part, encode_multipart

__all__ = ["HttpSpeechProvider"]

T = TypeVar("T")
JSON = (b"content-type", b"application/json")
RESPONSE_TIMEOUT = 60.0  # s to the head of a response, and between two pieces of it, wire 4.10
MAX_DURATION = 900.0  # s for one text, even if data keeps arriving
LISTENING = 300.0  # s for a whole transcription
CHUNK_SIZE = 4_096  # bytes of one chunk, wire 4.7
MAX_SOUND = 96_000_000  # bytes for one text, half an hour at 24 kHz
MAX_UPLOAD = 25 * 1024 * 1024  # bytes, wire 3.3
MAX_TRANSCRIPT = 200_000  # characters
_PCM = re.compile(rb"(?:audio/(?:x-)?(?:pcm|raw|l16)|(?:application|binary)/octet-stream)\b")
_NOT_SOUND = re.compile(rb"(?:text/|application/(?!octet-stream))")
_CONTAINERS = (b"RIFF", b"ID3", b"OggS", b"fLaC", b"\x1aE\xdf\xa3")  # WAV, MP3, Ogg, FLAC, WebM


class HttpSpeechProvider:
    """`Renderer` over a vendor's HTTP API, which also makes speech files and transcribes."""

    def __init__(self, engine: Engine, api: SpeechApi, access: ProviderCredentials) -> None:
        self._engine = engine
        self._api = api
        self._access = access

    def render(self, request: SpeechRequest, sink: AudioSink) -> Flow[RenderResult]:
        """Pass the vendor's PCM on at the pace of the sink, resampled to the requested rate if necessary.

        Raise `ProviderError` if the vendor fails or sends no PCM.
        """
        request = self._filled(request)
        rate = request.sample_rate if request.sample_rate in self._api.rates else RATE
        reader = yield from self._request_speech(request, rate, into=streamed())
        if isinstance(reader, HttpResult | Failure):
            raise response_error(self._access, reader)
        try:
            yield from self._pass_on(reader, Resampler(rate, request.sample_rate), request, sink)
        finally:
            reader.abandon()
        return RenderResult(
            provider=self._api.provider,
            model=request.model,
            voice=request.voice,
            metadata={"sample_rate": request.sample_rate, "source_sample_rate": rate},
        )

    def speak(self, request: SpeechRequest) -> Flow[SpeechFile]:
        """Return the vendor's speech for a text as an MP3 file; raise `ProviderError` if there is none."""
        access, answer = self._access, (yield from self._request_speech(self._filled(request), None))
        if isinstance(answer, Failure) or answer.status != 200:
            raise response_error(access, answer)
        kind = (answer.headers.get(b"content-type") or b"").strip().lower()
        if _NOT_SOUND.match(kind):
            raise ProviderError(f"{access.endpoint} answered with {_named(kind)}, not audio")
        if not answer.body:
            raise ProviderError(f"{access.endpoint} sent no audio")
        return SpeechFile(answer.body, "audio/mpeg")

    def transcribe(self, recording: Recording, *, model: str = "", language: str = "") -> Flow[str]:
        """Upload a recording, as the last part of a form, and return at most `MAX_TRANSCRIPT` characters of transcript.

        Raise `ProviderError` if the file cannot be read or the vendor sends no transcript. For a vendor without a form
        field for the model (xAI), `model` is ignored.
        """
        api, access = self._api, self._access
        data = yield from read_file(self._engine, recording.path, limit=MAX_UPLOAD)
        if isinstance(data, Failure):
            raise ProviderError(f"the recording cannot be read: {data.kind.value}")
        boundary = self._engine.entropy(16).hex()
        form = (b"content-type", f"multipart/form-data; boundary={boundary}".encode("ascii"))
        fields = [(name, model if model and not place else value) for place, (name, value) in enumerate(api.hears)]
        if language:
            fields.append((api.language, language))
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
            access.at(api.listening),
            headers=(*api.header(access.key), form),
            body=encode_multipart((*(Part(name=name, data=value.encode()) for name, value in fields), sound), boundary),
            within=LISTENING,
        )
        if isinstance(answer, Failure) or answer.status != 200:
            raise response_error(access, answer)
        text = JsonObject.parse_or_empty(answer.body).string("text")
        if text is None:
            raise ProviderError(f"{access.endpoint} answered with something that is no transcript")
        return text.strip()[:MAX_TRANSCRIPT]

    # --- helpers ---

    def _filled(self, request: SpeechRequest) -> SpeechRequest:
        """Return the request with the vendor's defaults for model and voice."""
        return evolve(request, model=request.model or self._api.model, voice=request.voice or self._api.voice)

    def _request_speech(
        self, request: SpeechRequest, rate: int | None, into: ResponseMode[T] | None = None
    ) -> Flow[T | HttpResult | Failure]:
        path, asked = self._api.speech(request, rate)
        headers, body = (JSON, *self._api.header(self._access.key)), strict_json.dumps_bytes(asked)
        url = self._access.at(path)
        return fetch(self._engine, "POST", url, into=into, headers=headers, body=body, within=RESPONSE_TIMEOUT)

    def _pass_on(self, reader: BodyReader, sound: Resampler, request: SpeechRequest, sink: AudioSink) -> Flow[None]:
        access = self._access
        kind = (reader.head.headers.get(b"content-type") or b"").strip().lower()
        until = self._engine.now.mono + MAX_DURATION
        rate, size, passed_on, reading = request.sample_rate, 0, 0, False

        def at_once(data: bytes) -> bool:
            """Pass on a small piece during the read if no wait or error is due; return whether it was passed on."""
            nonlocal size, passed_on
            later = not (reading and passed_on and sink.has_room and len(data) <= CHUNK_SIZE)
            if later or size + len(data) > MAX_SOUND or self._engine.now.mono > until:
                return False
            size += len(data)
            if pcm := sound.feed(data):
                passed_on += len(pcm)
                sink.write(AudioChunk(pcm, rate))
            return True

        reader.observe(at_once)
        while True:
            reading = True
            data = yield from reader.read(within=RESPONSE_TIMEOUT)
            reading = False
            if isinstance(data, Failure):
                raise truncated_error(access, data)
            if data is None:
                break
            if not size:
                _require_pcm(access, kind, data)
            size += len(data)
            if size > MAX_SOUND or self._engine.now.mono > until:
                raise ProviderError(f"{access.endpoint} does not come to an end")
            for begin in range(0, len(data), CHUNK_SIZE):
                pcm = sound.feed(data[begin : begin + CHUNK_SIZE])
                if pcm:
                    passed_on += len(pcm)
                    yield from sink.chunk(AudioChunk(pcm, rate))
        if not passed_on:
            raise ProviderError(f"{access.endpoint} sent no audio")


def _require_pcm(access: ProviderCredentials, kind: bytes, data: bytes) -> None:
    """Raise `ProviderError` if a response is labelled as no sound (`_NOT_SOUND`), or begins like another format.

    Vendors label PCM in many ways, one of them `audio/mpeg`.
    """
    frame = kind.startswith(b"audio/mp") and data[0] == 0xFF and len(data) > 1 and data[1] >= 0xE0  # MPEG frame sync
    if _NOT_SOUND.match(kind) or (not _PCM.match(kind) and frame) or data.startswith(_CONTAINERS):
        raise ProviderError(f"{access.endpoint} answered with {_named(kind)}, not PCM")


def _named(kind: bytes) -> str:
    return kind.partition(b";")[0].decode("ascii", "replace")[:60] or "something"
