"""Content of attachments: base64 to bytes and bytes to text, both in parts.

The content of a short message is in memory, as `ContentParts`; the first one of a long message is an
`AttachmentUpload`.
"""

import binascii
from codecs import getincrementaldecoder
from hashlib import sha256
from typing import Protocol

from attrs import frozen

from svc_proto.engine.core import Engine
from svc_proto.engine.files import spool_file
from svc_proto.engine.flow import Flow
from svc_proto.facts import Failure
from svc_proto.schema.gateway_rpc import NOT_SUPPORTED
from svc_proto.schema.json_rpc import INVALID_PARAMS, RpcError

__all__ = [
    "MAX_FILE",
    "NO_BASE64",
    "NO_DISK",
    "AttachmentContent",
    "ContentParts",
    "TextReader",
    "decode_base64",
    "too_large",
]

MAX_FILE = 50 * 1024 * 1024  # bytes of one content
NO_BASE64 = "the content must be base64"
NO_DISK = "the attachment could not be stored: the disk may be full"
PART = 1024 * 1024  # characters of base64 that are decoded at a time; a multiple of four


def decode_base64(content: str, limit: int, start: int = 0) -> list[bytes]:
    """Decode the base64 in `content` from the index `start` on, into parts of at most 768 KiB.

    Raises `RpcError` if it is empty or no base64, or has more than `limit` bytes.
    """
    size = len(content) - start
    if size > limit * 4 // 3 + 4:  # before the work of decoding
        raise too_large(limit)
    parts: list[bytes] = []
    try:
        for place in range(start, len(content), PART):
            piece = content[place : place + PART]
            parts.append(binascii.a2b_base64(piece, strict_mode=True))
            if len(piece) == PART and len(parts[-1]) < PART // 4 * 3 and place + PART < len(content):
                raise binascii.Error("padding is at the end only")
    except (binascii.Error, ValueError):
        parts = []
    if not any(parts):
        raise RpcError(INVALID_PARAMS, NO_BASE64)
    if sum(map(len, parts)) > limit:
        raise too_large(limit)
    return parts


def too_large(limit: int) -> RpcError:
    """Return the error for a content of more than `limit` bytes."""
    return RpcError(INVALID_PARAMS, f"more than {limit // (1024 * 1024)} MB")


class TextReader:
    """Decoder of UTF-8 with or without a byte order mark, which keeps at most `limit` characters.

    A content that is not UTF-8 or has a NUL character is no text.
    """

    def __init__(self, limit: int) -> None:
        self._decoder = getincrementaldecoder("utf-8-sig")()
        self._limit = limit
        self._kept: list[str] = []
        self._total = 0  # characters
        self._is_text = True

    def receive(self, data: bytes, *, is_last: bool = False) -> None:
        """Decode a part of the content; do nothing once it has turned out to be no text."""
        if not self._is_text:
            return
        try:
            text = self._decoder.decode(data, final=is_last)
        except UnicodeDecodeError:
            text = "\0"
        self._is_text = "\0" not in text
        if self._total < self._limit:
            self._kept.append(text[: self._limit - self._total])
        self._total += len(text)

    def finish(self) -> tuple[str, int] | None:
        """Return the text up to the limit and the number of all characters, after the last part; None if no text."""
        self.receive(b"", is_last=True)
        return ("".join(self._kept), self._total) if self._is_text else None


class AttachmentContent(Protocol):
    """Content of an attachment, in memory or in a file."""

    @property
    def size(self) -> int:
        """Number of bytes."""

    @property
    def start(self) -> bytes:
        """First bytes, at least 1 KiB of a longer content."""

    def digest(self) -> bytes:
        """Return the SHA-256 of the content."""

    def text(self) -> tuple[str, int] | None:
        """Return the beginning of the content as text, and the number of all characters; None if it is no text."""

    def store(self) -> Flow[str]:
        """Return the path of a file with the content, which the caller has to delete. Raises `RpcError`."""

    def read(self) -> Flow[bytes]:
        """Return the whole content. Raises `RpcError`."""


@frozen
class ContentParts:
    """Content that is in memory, in parts."""

    engine: Engine
    parts: list[bytes]
    text_limit: int

    @property
    def size(self) -> int:
        """Number of bytes."""
        return sum(map(len, self.parts))

    @property
    def start(self) -> bytes:
        """The first part."""
        return self.parts[0]

    def digest(self) -> bytes:
        """Return the SHA-256 of the content."""
        hashed = sha256()
        for part in self.parts:
            hashed.update(part)
        return hashed.digest()

    def text(self) -> tuple[str, int] | None:
        """Return the beginning of the content as text, and the number of all characters; None if it is no text."""
        reader = TextReader(self.text_limit)
        for part in self.parts:
            reader.receive(part)
        return reader.finish()

    def store(self) -> Flow[str]:
        """Write the content to a file and return its path; the caller has to delete the file. Raises `RpcError`."""
        path = yield from spool_file(self.engine, ".image", *self.parts)
        if isinstance(path, Failure):
            raise RpcError(NOT_SUPPORTED, NO_DISK)
        return path

    def read(self) -> Flow[bytes]:
        """Return the parts joined."""
        yield from ()
        return b"".join(self.parts)
