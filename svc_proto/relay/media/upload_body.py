"""Upload of a file in a multipart request, streamed into the spool folder; shared by media and recordings.

    class Picture(IncomingFile):
        def begin_part(self, part): ...        # the flow that begins the file, or None: not this part
        def too_large(self, limit): ...        # the refusal

    picture = Picture(engine, max_size=MIB, noun="picture")
    try:
        yield from receive_part(request, kind, picture)
        if not picture.begun: ...              # no part was the file
        path = yield from picture.finish()
    finally:
        picture.abandon()

Refusals: 400 for an invalid body, 413 for a file that is too long, 500 for a disk failure.
"""

from abc import ABC, abstractmethod
from typing import cast

from svc_proto.basics.errors import Refused, RemoteProtocolError
from svc_proto.commands import CreateBlob, DiscardBlob, FinishBlob, WriteBlob
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, run_operation
from svc_proto.engine.message import Request
from svc_proto.facts import Failure, FailureKind
from svc_proto.wire.multipart import MultipartDecoder, PartBegin, PartData, PartEnd

__all__ = ["IncomingFile", "multipart_content_type", "receive_part"]

# Bytes of disk space that uploads leave free: the store needs some to revoke a session.
MIN_FREE_BYTES = 64 * 1024 * 1024
DISK_TIMEOUT = 120.0  # s, for one step of an upload on a slow disk


class IncomingFile(ABC):
    """A file during its upload. `abandon` deletes an unfinished file."""

    def __init__(self, engine: Engine, *, max_size: int, noun: str) -> None:
        self.engine = engine
        self.size = 0
        self.begun = False
        self._max_size = max_size
        self._noun = noun
        self._blob: int | None = None

    @abstractmethod
    def begin_part(self, part: PartBegin) -> Flow[None] | None:
        """Return the flow that begins the file with this part; None if the part is not the file."""

    @abstractmethod
    def too_large(self, limit: int) -> Refused:
        """Return the refusal 413 of a file that is too large."""

    def create(self, suffix: str, *, within: float = DISK_TIMEOUT) -> Flow[None]:
        """Create the file with this suffix in the spool folder. Raise `Refused` 500."""
        self.begun = True
        blob = yield from run_operation(
            self.engine, CreateBlob(self.engine.new_op(), suffix, MIN_FREE_BYTES), within=within
        )
        if isinstance(blob, Failure):
            raise self.not_stored(blob)
        self._blob = blob

    def write(self, data: bytes) -> Flow[None]:
        """Append data; raise `Refused` 413 above the limit, 500 for a disk failure."""
        self.size += len(data)
        if self.size > self._max_size:
            raise self.too_large(self._max_size)
        blob = cast("int", self._blob)  # a part's data follows its beginning
        written = yield from run_operation(
            self.engine, WriteBlob(self.engine.new_op(), blob, data), within=DISK_TIMEOUT
        )
        if isinstance(written, Failure):
            raise self.not_stored(written)

    def finish(self) -> Flow[str]:
        """Close the file and return its path. Raise `Refused` 500 for a disk failure.

        The caller must delete the file when it is no longer needed.
        """
        blob = cast("int", self._blob)
        path = yield from run_operation(self.engine, FinishBlob(self.engine.new_op(), blob), within=DISK_TIMEOUT)
        if isinstance(path, Failure):
            raise self.not_stored(path)
        self._blob = None
        return path

    def abandon(self) -> None:
        """Delete the file if it was created and is not finished."""
        if self._blob is not None:
            self.engine.emit(DiscardBlob(self._blob))

    def not_stored(self, failure: Failure) -> Refused:
        """Return the refusal of a disk failure: 500 `disk_full` or `write_failed`."""
        if failure.kind is FailureKind.NO_SPACE:
            return Refused(500, "disk_full", "the disk of the relay's host is full")
        return Refused(500, "write_failed", f"the {self._noun} could not be stored")


def multipart_content_type(request: Request) -> bytes | None:
    """Return the request's content type if it is `multipart/form-data`; None otherwise."""
    kind = request.headers.get(b"content-type", b"") or b""
    return kind if kind.partition(b";")[0].strip().lower() == b"multipart/form-data" else None


def receive_part(request: Request, kind: bytes, file: IncomingFile) -> Flow[None]:
    """Read the whole body, and write the first part that `file` accepts to disk as it arrives.

    Other parts are skipped. Raise `Refused` 400 for an invalid body, and what `file` raises.
    """
    try:
        decoder = MultipartDecoder(kind)
        inside = False
        more = True
        while more:
            data = yield from request.stream.read()
            more = bool(data)
            if more:
                decoder.receive_data(data)
            else:
                decoder.receive_eof()
            pieces: list[bytes] = []
            while (event := decoder.next_event()) is not None:
                match event:
                    case PartBegin() if not file.begun and (beginning := file.begin_part(event)) is not None:
                        inside = True
                        yield from beginning
                    case PartData(data=piece) if inside:
                        pieces.append(piece)
                    case PartEnd():
                        inside = False
                    case _:
                        pass  # data of another part
            if pieces:
                yield from file.write(b"".join(pieces))
    except RemoteProtocolError as error:
        raise Refused(400, "invalid_multipart", str(error)) from None
