"""A file in a request, streamed into the spool folder: what uploads of media and recordings share.

    class Picture(IncomingFile):
        def begin_part(self, part): ...        # the flow that begins the file, or None: not this part
        def too_large(self, limit): ...        # the refusal

    picture = Picture(engine, max_size=MIB, noun="picture")
    try:
        yield from receive_part(request, kind, picture)
        path = yield from picture.finish()
    finally:
        picture.abandon()

Refusals: 400 for what is no such body, 413 for a file that is too long, 500 for a disk that does not take it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, cast

from svc_proto.basics.errors import Refused, RemoteProtocolError
from svc_proto.commands import CreateBlob, DiscardBlob, FinishBlob, WriteBlob
from svc_proto.engine.flow import Flow, run_operation
from svc_proto.engine.message import Request
from svc_proto.facts import Failure, FailureKind
from svc_proto.wire.multipart import MultipartDecoder, PartBegin, PartData, PartEnd

if TYPE_CHECKING:
    from svc_proto.engine.core import Engine

__all__ = ["IncomingFile", "multipart_content_type", "receive_part"]

MIN_FREE_BYTES = 64 * 1024 * 1024  # bytes of the disk that uploads leave free: the store needs some to revoke a session
DISK_TIMEOUT = 120.0  # s, for one step of an upload on a slow disk


class IncomingFile(ABC):
    """One file on its way to the disk. `abandon` deletes whatever of it there is, unless it was finished."""

    def __init__(self, engine: Engine, *, max_size: int, noun: str) -> None:
        self.engine = engine
        self.size = 0
        self.begun = False
        self._max_size = max_size
        self._noun = noun
        self._blob: int | None = None

    @abstractmethod
    def begin_part(self, part: PartBegin) -> Flow[None] | None:
        """A part of a multipart body begins: how this file begins with it; None if it is not this file."""

    @abstractmethod
    def too_large(self, limit: int) -> Refused:
        """The refusal of a file that is larger than may be: 413."""

    def create(self, suffix: str, *, within: float = DISK_TIMEOUT) -> Flow[None]:
        """Create the file; the end of its name is given."""
        self.begun = True
        blob = yield from run_operation(
            self.engine, CreateBlob(self.engine.new_op(), suffix, MIN_FREE_BYTES), within=within
        )
        if isinstance(blob, Failure):
            raise self.not_stored(blob)
        self._blob = blob

    def write(self, data: bytes) -> Flow[None]:
        """Append; `Refused` 413 over the limit."""
        self.size += len(data)
        if self.size > self._max_size:
            raise self.too_large(self._max_size)
        blob = cast("int", self._blob)  # a part's data comes behind its beginning
        written = yield from run_operation(
            self.engine, WriteBlob(self.engine.new_op(), blob, data), within=DISK_TIMEOUT
        )
        if isinstance(written, Failure):
            raise self.not_stored(written)

    def finish(self) -> Flow[str]:
        """Close the file, which has begun; where it is. Deleting it is the caller's from now on."""
        blob = cast("int", self._blob)
        path = yield from run_operation(self.engine, FinishBlob(self.engine.new_op(), blob), within=DISK_TIMEOUT)
        if isinstance(path, Failure):
            raise self.not_stored(path)
        self._blob = None
        return path

    def abandon(self) -> None:
        """Leave nothing behind."""
        if self._blob is not None:
            self.engine.emit(DiscardBlob(self._blob))

    def not_stored(self, failure: Failure) -> Refused:
        """The refusal where the disk did not take the file: 500 `disk_full` or `write_failed`."""
        if failure.kind is FailureKind.NO_SPACE:
            return Refused(500, "disk_full", "the disk of the relay's host is full")
        return Refused(500, "write_failed", f"the {self._noun} could not be stored")


def multipart_content_type(request: Request) -> bytes | None:
    """The request's content type if that is `multipart/form-data`."""
    kind = request.headers.get(b"content-type", b"") or b""
    return kind if kind.partition(b";")[0].strip().lower() == b"multipart/form-data" else None


def receive_part(request: Request, kind: bytes, file: IncomingFile) -> Flow[None]:
    """Read the body to its end: the first part that the file begins with goes to the disk as it comes."""
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
                        pass  # of a part that nobody asked for
            if pieces:
                yield from file.write(b"".join(pieces))
    except RemoteProtocolError as error:
        raise Refused(400, "invalid_multipart", str(error)) from None
