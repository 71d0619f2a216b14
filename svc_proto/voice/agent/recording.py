"""An utterance as a file, for an engine that listens to files: written to the spool, heard, deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc_proto.basics.pcm import wav_head
from svc_proto.commands import CreateBlob, DeleteBlob, DiscardBlob, FinishBlob, WriteBlob
from svc_proto.engine.flow import Flow, ask
from svc_proto.facts import Failure
from svc_proto.voice.contract import ProviderError, Recording

if TYPE_CHECKING:
    from svc_proto.voice.service import Voice

__all__ = ["transcribe"]

NOT_STORED = "the recording could not be stored on the relay's host"


def transcribe(voice: Voice, provider: str, pcm: bytes, rate: int) -> Flow[str]:
    """What is said in some PCM (Hz `rate`). Raises `ProviderError`."""
    engine = voice.engine
    blob = yield from ask(engine, CreateBlob(engine.new_op(), ".wav"))
    if isinstance(blob, Failure):
        raise ProviderError(NOT_STORED)
    path: str | Failure | None = None
    try:
        data = wav_head(len(pcm), rate) + pcm
        written = yield from ask(engine, WriteBlob(engine.new_op(), blob, data))
        if isinstance(written, Failure):
            raise ProviderError(NOT_STORED)
        path = yield from ask(engine, FinishBlob(engine.new_op(), blob))
        if isinstance(path, Failure):
            raise ProviderError(NOT_STORED)
        recording = Recording(path=path, size=len(data), content_type="audio/wav", suffix=".wav")
        heard = yield from voice.providers.transcriber(provider).transcribe(recording)
        return heard.text.strip()
    finally:
        engine.emit(DeleteBlob(path) if isinstance(path, str) else DiscardBlob(blob))
