"""Content of an attachment that is decoded while its message arrives, and written to a file of the spool folder.

Memory holds the beginning of the content, the beginning of its text, and what is not written yet. The file belongs to
the upload until `store` returns its path; until then, `discard` deletes it.
"""

import binascii
from collections.abc import Callable
from hashlib import sha256

from attrs import define, field, frozen

from svc_proto.api.gateway.attachment_content import NO_BASE64, NO_DISK, TextReader, too_large
from svc_proto.commands import CreateBlob, DeleteBlob, DiscardBlob, FinishBlob, WriteBlob
from svc_proto.engine.core import Engine
from svc_proto.engine.files import read_file
from svc_proto.engine.flow import Flow, run_operation
from svc_proto.engine.sync import Condition
from svc_proto.facts import Failure
from svc_proto.schema.gateway_rpc import NOT_SUPPORTED, RpcCall
from svc_proto.schema.json_rpc import INVALID_PARAMS, RpcError

__all__ = ["AttachmentUpload", "UploadCall", "UploadSpace"]

MAX_SPACE = 1024 * 1024 * 1024  # bytes of the files that are being received, or wait to be attached
HIGH_WATER = 256 * 1024  # bytes that are not written yet: the client is not read
START = 1024  # bytes of the beginning that are kept in memory
MAX_HEAD = 200  # characters of a data URL before its content
WAIT_TIMEOUT = 60.0  # s after which a wait checks its condition again; the operations have their own deadlines
NO_URL = "data_url must be a data URL in base64"


@define
class UploadSpace:
    """Disk space that the uploads of one server use."""

    used: int = 0  # bytes


class AttachmentUpload:
    """Receiver of one content in base64, or of a data URL with it."""

    def __init__(
        self, engine: Engine, space: UploadSpace, on_full: Callable[[bool], None], *, is_url: bool, text_limit: int
    ) -> None:
        """Initialize; `on_full` is called with True when the client must not be read, and with False after that."""
        self.size = 0  # bytes
        self.start = b""  # up to 1 KiB
        self.error: RpcError | None = None  # what follows it is dropped
        self._engine = engine
        self._space = space
        self._on_full = on_full
        self._head: str | None = "" if is_url else None  # of a data URL, until its content begins
        self._text = TextReader(text_limit)
        self._hash = sha256()
        self._left = ""  # fewer than four characters
        self._is_padded = False
        self._pieces: list[bytes] = []
        self._waiting = 0  # bytes in `_pieces`
        self._is_full = False
        self._is_complete = False
        self._path = ""
        self._changed = Condition(engine)
        self._task = engine.spawn(self._write())

    # --- for the connection ---

    def receive_text(self, text: str, *, limit: int) -> None:
        """Decode and queue a piece of the content; set `error` if it is invalid or at a limit.

        After an error do nothing.
        """
        if self.error is not None:
            return
        try:
            self._receive(text, limit)
        except RpcError as error:
            self._fail(error)

    def end(self) -> None:
        """Mark the content as complete; set `error` if it is empty or its base64 is incomplete."""
        if self.error is None and (self._left or not self.size):
            self._fail(RpcError(INVALID_PARAMS, NO_BASE64 if self._head is None else NO_URL))
        self._is_complete = True
        self._changed.notify_all()

    def discard(self) -> None:
        """Delete the file, unless `store` has returned its path. Harmless when repeated."""
        self._task.cancel()
        if self._path:
            self._engine.emit(DeleteBlob(self._path))
            self._path = ""
        self._space.used -= self.size
        self.size = 0
        self._set_full(False)

    # --- for the methods of attachments ---

    def digest(self) -> bytes:
        """Return the SHA-256 of the content."""
        return self._hash.digest()

    def text(self) -> tuple[str, int] | None:
        """Return the beginning of the content as text, and the number of all characters; None if it is no text."""
        return self._text.finish()

    def store(self) -> Flow[str]:
        """Return the path of the whole content; the caller has to delete the file. Raises `RpcError`."""
        yield from self._wait_written()
        path, self._path = self._path, ""
        return path

    def read(self) -> Flow[bytes]:
        """Return the whole content. Raises `RpcError`."""
        yield from self._wait_written()
        data = yield from read_file(self._engine, self._path, limit=self.size)
        if isinstance(data, Failure):
            raise RpcError(NOT_SUPPORTED, NO_DISK)
        return data

    # --- helpers ---

    def _receive(self, text: str, limit: int) -> None:
        if self._head is not None:
            head, comma, text = (self._head + text).partition(",")
            if len(head) >= MAX_HEAD or (comma and not (head.startswith("data:") and head.endswith(";base64"))):
                raise RpcError(INVALID_PARAMS, NO_URL)
            if not comma:
                self._head = head
                return
            self._head = None
        text = self._left + text
        whole = len(text) // 4 * 4
        self._left = text[whole:]
        if not whole:
            return
        try:
            data = binascii.a2b_base64(text[:whole], strict_mode=True)
        except (binascii.Error, ValueError):
            data = b""
        if not data or self._is_padded:
            raise RpcError(INVALID_PARAMS, NO_BASE64)
        self._is_padded = len(data) < whole // 4 * 3
        self.size += len(data)
        self._space.used += len(data)
        if self.size > limit:
            raise too_large(limit)
        if self._space.used > MAX_SPACE:
            raise RpcError(NOT_SUPPORTED, "too many attachments are being received: try again")
        if len(self.start) < START:
            self.start = (self.start + data)[:START]
        self._hash.update(data)
        self._text.receive(data)
        self._pieces.append(data)
        self._waiting += len(data)
        self._set_full(self._waiting > HIGH_WATER)
        self._changed.notify_all()

    def _fail(self, error: RpcError) -> None:
        self.error = error
        self.discard()
        self._changed.notify_all()

    def _set_full(self, is_full: bool) -> None:
        if is_full is not self._is_full:
            self._is_full = is_full
            self._on_full(is_full)

    def _wait_written(self) -> Flow[None]:
        while not self._path and self.error is None:
            yield from self._changed.wait(self._engine.now.mono + WAIT_TIMEOUT)
        if self.error is not None:
            raise self.error

    def _write(self) -> Flow[None]:
        engine = self._engine
        blob = yield from run_operation(engine, CreateBlob(engine.new_op(), ".attachment"))
        if isinstance(blob, Failure):
            self._fail(RpcError(NOT_SUPPORTED, NO_DISK))
            return
        path: str | Failure | None = None
        try:
            path = yield from self._fill(blob)
        finally:
            if not isinstance(path, str):
                engine.emit(DiscardBlob(blob))
        if isinstance(path, Failure):
            self._fail(RpcError(NOT_SUPPORTED, NO_DISK))
        else:
            self._path = path
            self._changed.notify_all()

    def _fill(self, blob: int) -> Flow[str | Failure]:
        """Write the content to the new file, and close it; return its path, or the failure."""
        engine = self._engine
        while self._pieces or not self._is_complete:
            if not self._pieces:
                yield from self._changed.wait(engine.now.mono + WAIT_TIMEOUT)
                continue
            data, self._pieces = b"".join(self._pieces), []
            written = yield from run_operation(engine, WriteBlob(engine.new_op(), blob, data))
            if isinstance(written, Failure):
                return written
            self._waiting -= len(data)
            self._set_full(self._waiting > HIGH_WATER)
        return (yield from run_operation(engine, FinishBlob(engine.new_op(), blob)))


@frozen
class UploadCall(RpcCall):
    """A call whose parameter `name` was received as an upload; in `params` it is an empty text."""

    name: str = field(kw_only=True)
    upload: AttachmentUpload = field(kw_only=True)
