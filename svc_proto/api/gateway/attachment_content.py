"""Decoding of attachments in parts: base64 to bytes, and bytes to text."""

from __future__ import annotations

import binascii
from codecs import getincrementaldecoder
from collections.abc import Iterable
from hashlib import sha256

from svc_proto.schema.json_rpc import INVALID_PARAMS, RpcError

__all__ = ["decode_base64", "decode_text", "digest"]

PART = 1024 * 1024  # characters of base64 that are decoded at a time; a multiple of four


def decode_base64(content: str, limit: int, start: int = 0) -> list[bytes]:
    """Decode the base64 in `content` from the index `start` on, into parts of at most 768 KiB.

    Raises `RpcError` if it is empty or no base64, or is too long for `limit` bytes.
    """
    size = len(content) - start
    if size > limit * 4 // 3 + 4:
        raise RpcError(INVALID_PARAMS, f"more than {limit // (1024 * 1024)} MB")
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
        raise RpcError(INVALID_PARAMS, "the content must be base64")
    return parts


def decode_text(parts: Iterable[bytes], limit: int) -> tuple[str, int] | None:
    """Decode UTF-8 with or without a byte order mark; None if the bytes are not UTF-8 or contain a NUL.

    Return at most `limit` characters, and the number of all characters.
    """
    decoder = getincrementaldecoder("utf-8-sig")()
    kept: list[str] = []
    total = 0
    try:
        for part in (*parts, b""):
            text = decoder.decode(part, final=not part)
            if "\0" in text:
                return None
            if total < limit:
                kept.append(text[: limit - total])
            total += len(text)
    except UnicodeDecodeError:
        return None
    return "".join(kept), total


def digest(parts: Iterable[bytes]) -> bytes:
    """Return the SHA-256 hash of the joined parts."""
    hashed = sha256()
    for part in parts:
        hashed.update(part)
    return hashed.digest()
