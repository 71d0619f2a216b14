"""An utterance as a file, for an engine that listens to files: written to the spool, heard, deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc_proto.basics.pcm import wav_head
from svc_proto.commands import DeleteBlob
from svc_proto.engine.files import spool_file
from svc_proto.engine.flow import Flow
from svc_proto.facts import Failure
from svc_proto.voice.contract import ProviderError, Recording

if TYPE_CHECKING:
    from svc_proto.voice.service import Voice

__all__ = ["transcribe"]


def transcribe(voice: Voice, provider: str, pcm: bytes, rate: int) -> Flow[str]:
    """What is said in some PCM (Hz `rate`). Raises `ProviderError`."""
    data = wav_head(len(pcm), rate) + pcm
    path = yield from spool_file(voice.engine, ".wav", data)
    if isinstance(path, Failure):
        raise ProviderError("the recording could not be stored on the relay's host")
    try:
        recording = Recording(path=path, size=len(data), content_type="audio/wav", suffix=".wav")
        heard = yield from voice.providers.transcriber(provider).transcribe(recording)
        return heard.text.strip()
    finally:
        voice.engine.emit(DeleteBlob(path))
