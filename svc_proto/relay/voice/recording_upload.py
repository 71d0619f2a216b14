"""Upload of a recording: one part of a multipart body, streamed into the spool folder (wire terminal-voice 3.3).

The first bytes decide the file's suffix and type, as vendors and programs choose the decoder by a file's name; the
content type of the part decides if the bytes are of no known format of `MEDIA_TYPES`.
"""

from svc_proto.basics.content_types import SNIFFED, detect_format
from svc_proto.basics.errors import Refused
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.engine.message import Request
from svc_proto.relay.media.upload_body import IncomingFile, multipart_content_type, receive_part
from svc_proto.voice.provider_interface import Recording
from svc_proto.wire.multipart import PartBegin

__all__ = ["MAX_UPLOAD", "MULTIPART_EXTRA", "receive_recording", "suffix_of"]

MAX_UPLOAD = 25 * 1024 * 1024  # bytes of a recording: 413
MULTIPART_EXTRA = 1024 * 1024  # bytes of the body besides the recording
MEDIA_TYPES = ("audio/", "video/")  # of a recording, by its first bytes
NAMES = ("file", "audio")  # names of parts that are accepted without a file name
# Subtypes of audio, by file suffix.
_KINDS = {
    "wav": "wav wave x-wav vnd.wave",
    "m4a": "mp4 m4a x-m4a",
    "mp3": "mpeg mp3",
    "flac": "flac x-flac",
    **{name: name for name in ("webm", "ogg", "opus", "aac")},
}
# Containers of films, as the type and suffix of a recording, by their usual extension.
_CONTAINERS = {
    "mp4": ("audio/mp4", ".m4a"),
    "3gp": ("audio/3gpp", ".3gp"),
    "webm": ("audio/webm", ".webm"),
    "mkv": ("audio/webm", ".webm"),
    "opus": ("audio/ogg", ".ogg"),
    "asf": ("audio/x-ms-wma", ".wma"),
}
_SUFFIXES = {kind: f".{suffix}" for suffix, kinds in _KINDS.items() for kind in kinds.split()}


def suffix_of(content_type: str) -> str:
    """Return the file suffix for a content type; `.wav` for unknown types."""
    return _SUFFIXES.get(content_type.partition("/")[2], ".wav")


def receive_recording(engine: Engine, request: Request) -> Flow[Recording]:
    """Read the whole body and return the recording: the first part that has a file name, or a name of `NAMES`.

    The caller deletes the file. Raise `Refused` 400 for an invalid body, 413 for a recording that is too long, 500 for
    a disk failure.
    """
    kind = multipart_content_type(request)
    if kind is None:
        raise Refused(400, "invalid_multipart", "the body must be multipart/form-data with an audio file")
    incoming = _RecordingFile(engine)
    try:
        yield from receive_part(request, kind, incoming)
        return (yield from incoming.recording())
    finally:
        incoming.abandon()


class _RecordingFile(IncomingFile):
    def __init__(self, engine: Engine) -> None:
        super().__init__(engine, max_size=MAX_UPLOAD, noun="recording")
        self._content_type = self._suffix = ""
        self._start = bytearray()  # of the recording, until the file is created
        self._created = False

    def begin_part(self, part: PartBegin) -> Flow[None] | None:
        if part.filename is None and part.name not in NAMES:
            return None
        self._content_type = (part.content_type or "").partition(";")[0].strip().lower()
        self._suffix = suffix_of(self._content_type)
        self.begun = True
        return _nothing()

    def write(self, data: bytes) -> Flow[None]:
        """Append data; the file is created when `SNIFFED` bytes are there, which decide its type."""
        if self._created:
            yield from super().write(data)
            return
        self._start += data
        if len(self._start) >= SNIFFED:
            yield from self._create()

    def too_large(self, limit: int) -> Refused:
        return Refused(413, "too_large", f"a recording may have at most {limit} bytes", extra={"limit": limit})

    def recording(self) -> Flow[Recording]:
        """Finish the file and return the recording.

        Raise `Refused` 400 if the recording is missing or empty, and 500 for a disk failure.
        """
        if not self.begun:
            raise Refused(400, "audio_missing", "the multipart body has no audio file")
        if not self._start:
            raise Refused(400, "audio_empty", "the audio file is empty")
        if not self._created:
            yield from self._create()
        path = yield from self.finish()
        return Recording(path=path, size=self.size, content_type=self._content_type, suffix=self._suffix)

    def _create(self) -> Flow[None]:
        start = bytes(self._start)
        found = detect_format(start)
        if found is not None and found.content_type.startswith(MEDIA_TYPES):
            usual = (found.content_type, f".{found.extension}")
            self._content_type, self._suffix = _CONTAINERS.get(found.extension, usual)
        self._created = True
        yield from self.create(self._suffix)
        yield from super().write(start)


def _nothing() -> Flow[None]:
    yield from ()
