"""Uploads in an S3-compatible store that all nodes share: put, get and delete.

An object is the file of one upload, under a random name. The relay has its permissions, expiry, type, size and entity
tag; the store only has its bytes.
"""

from collections.abc import Callable
from hashlib import sha256
from typing import cast

from svc_proto.basics.errors import Refused
from svc_proto.commands import Compute, Level, OpenedFile, ReadFile
from svc_proto.engine.body_streams import CHUNK_SIZE, ResponseWriter
from svc_proto.engine.client_channel import ResponseMode
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, run_operation
from svc_proto.engine.http_client import HttpResult, UploadBody, fetch
from svc_proto.engine.response_readers import BodyReader, streamed
from svc_proto.facts import Failure
from svc_proto.settings import S3Bucket

__all__ = ["ObjectStore"]

CONNECT_TIMEOUT = 5.0  # s
RESPONSE_TIMEOUT = 30.0  # s for the head of a response
UPLOAD_TIMEOUT = 600.0  # s for a whole upload; one without any progress is dropped much earlier
SILENCE_TIMEOUT = 60.0  # s without a byte, after which the store counts as lost
NAME_BYTES = 16
EMPTY_SHA256 = sha256(b"").hexdigest()
NOT_FOUND = 404


class ObjectStore:
    """Client of one S3 bucket."""

    def __init__(self, engine: Engine, bucket: S3Bucket) -> None:
        self._engine = engine
        self._bucket = bucket

    def put(self, opened: OpenedFile, digest: str) -> Flow[str]:
        """Store an open file with this SHA-256 and return the object's name. Raise `Refused` 503."""
        engine, name = self._engine, self._engine.entropy(NAME_BYTES).hex()

        def read(offset: int) -> Flow[bytes | Failure]:
            order = ReadFile(engine.new_op(), opened.handle, offset, min(CHUNK_SIZE, opened.size - offset))
            return run_operation(engine, order, within=SILENCE_TIMEOUT)

        answer = yield from self._send_request(
            "PUT", name, ResponseMode[HttpResult](), body=UploadBody(opened.size, read), digest=digest
        )
        if not isinstance(answer, HttpResult) or answer.status != 200:
            engine.spawn(self.delete(name))  # the object may exist all the same
            raise self._failed("put", answer)
        return name

    def get(self, method: str, name: str, *, first: int, length: int, size: int) -> Flow[BodyReader]:
        """Request `length` bytes (at least one) of an object from `first` on. Raise `Refused` 404 if it is gone, 503.

        The caller must abandon the reader.
        """
        last, part = first + length - 1, length < size
        fields = ((b"range", b"bytes=%d-%d" % (first, last)),) if part else ()
        answer = yield from self._send_request(method, name, streamed(), fields=fields)
        if isinstance(answer, BodyReader):
            headers = answer.head.headers
            where = headers.get(b"content-range") if part else None
            right = (200, None) if not part else (206, b"bytes %d-%d/%d" % (first, last, size))
            if (answer.head.status, where) == right and headers.get(b"content-length") in (None, b"%d" % length):
                return answer
            answer.abandon()
        raise self._failed("get", answer)

    @staticmethod
    def stream(reader: BodyReader, length: int) -> Callable[[ResponseWriter], Flow[bool]]:
        """Return a body producer for `length` bytes of an object; a truncated body marks the response as incomplete."""

        def produce(writer: ResponseWriter) -> Flow[bool]:
            left = length
            try:
                while left and isinstance(data := (yield from reader.read(within=SILENCE_TIMEOUT)), bytes):
                    writer.write(data[:left])
                    left -= min(left, len(data))
                    yield from writer.drained()
            finally:
                reader.abandon()
            return not left

        return produce

    @staticmethod
    def read_whole(reader: BodyReader, length: int) -> Flow[bytes | None]:
        """Return `length` bytes of the body; None if it is truncated."""
        found = b""
        try:
            while len(found) < length and isinstance(data := (yield from reader.read(within=SILENCE_TIMEOUT)), bytes):
                found += data
        finally:
            reader.abandon()
        return found[:length] if len(found) >= length else None

    def delete(self, name: str) -> Flow[None]:
        """Delete an object; a failure is only logged."""
        answer = yield from self._send_request("DELETE", name, ResponseMode[HttpResult]())
        if not isinstance(answer, HttpResult) or answer.status not in (200, 204, NOT_FOUND):
            self._failed("delete", answer)

    def _send_request(
        self,
        method: str,
        name: str,
        into: ResponseMode[BodyReader] | ResponseMode[HttpResult],
        *,
        fields: tuple[tuple[bytes, bytes], ...] = (),
        body: UploadBody | None = None,
        digest: str = EMPTY_SHA256,
    ) -> Flow[BodyReader | HttpResult | Failure]:
        engine, url = self._engine, f"{self._bucket.url}/{name}"
        signed = yield from run_operation(
            engine, Compute(engine.new_op(), "s3.sign", (self._bucket, method, url, digest))
        )
        if isinstance(signed, Failure):
            return signed
        shown = cast("dict[str, str]", signed)
        return (
            yield from fetch(
                engine,
                method,
                url,
                into=cast("ResponseMode[BodyReader]", into),
                headers=(*((key.lower().encode(), value.encode()) for key, value in shown.items()), *fields),
                body=body or b"",
                within=RESPONSE_TIMEOUT if body is None else UPLOAD_TIMEOUT,
                connect_within=CONNECT_TIMEOUT,
            )
        )

    def _failed(self, what: str, answer: BodyReader | HttpResult | Failure) -> Refused:
        """Return the refusal of a failed request: 404 for a missing object of `get`, else 503, which is logged."""
        status = 0
        if isinstance(answer, HttpResult):
            status = answer.status
        elif isinstance(answer, BodyReader):
            status = answer.head.status
        if status == NOT_FOUND and what == "get":
            return Refused(404, "not_found", "the file is not there any more")
        problem = f"{answer.kind.value}: {answer.detail}" if isinstance(answer, Failure) else "not what was asked for"
        self._engine.log(Level.WARNING, "media store failed", what=what, status=status, problem=problem)
        return Refused(
            503, "media_store_unavailable", "the store of the uploads does not answer as it should: try again"
        )
