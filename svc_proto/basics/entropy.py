"""Identifiers and secrets made from injected entropy, so that the same seed gives the same bytes."""

import base64
import hashlib
import hmac
from binascii import hexlify
from collections.abc import Callable, Iterator
from struct import Struct
from typing import TypeAlias

__all__ = [
    "CODE_ALPHABET",
    "Entropy",
    "SECRET_LENGTH",
    "new_api_key",
    "new_code",
    "new_media_token",
    "new_secret",
    "new_uuid",
    "secrets_equal",
    "sha256_hex",
    "uuid_stream",
]

Entropy: TypeAlias = Callable[[int], bytes]
"""Function that returns that many random bytes; `os.urandom` in a runtime, a seeded generator in a simulation."""

CODE_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
SECRET_LENGTH = 43  # characters
BATCH_SIZE = 64  # UUIDs
CODE_LENGTH = 6  # characters, spec "Pairing code"
_VERSION = bytes(0x40 | byte & 0x0F for byte in range(256))  # mapping of the seventh byte, RFC 9562 section 4.2
_VARIANT = bytes(0x80 | byte & 0x3F for byte in range(256))  # and of the ninth, section 4.1
_PARTS = Struct("8s4s4s4s12s")  # of the digits
_UNBIASED = 256 - 256 % len(CODE_ALPHABET)  # bytes at or above would favour the first letters


def new_uuid(entropy: Entropy) -> str:
    """Return a random UUID (RFC 9562 version 4) as text of 36 characters."""
    return next(uuid_stream(entropy, 1))


def uuid_stream(entropy: Entropy, at_once: int = BATCH_SIZE) -> Iterator[str]:
    """Yield random UUIDs without end, for non-secret ids: one entropy call makes many."""
    while True:
        block = bytearray(entropy(16 * at_once))
        block[6::16], block[8::16] = block[6::16].translate(_VERSION), block[8::16].translate(_VARIANT)
        for parts in _PARTS.iter_unpack(hexlify(block)):
            yield b"-".join(parts).decode("ascii")


def new_code(entropy: Entropy) -> str:
    """Return a pairing code: six independent uniform picks from `CODE_ALPHABET` (wire core 2.1)."""
    picks: list[str] = []
    while len(picks) < CODE_LENGTH:
        picks.extend(CODE_ALPHABET[byte % 36] for byte in entropy(CODE_LENGTH) if byte < _UNBIASED)
    return "".join(picks[:CODE_LENGTH])


def new_api_key(entropy: Entropy, size: int = 24) -> str:
    """Return an API key: `sk-` and `size` bytes as unpadded base64url; 24 bytes make 35 characters."""
    return f"sk-{base64.urlsafe_b64encode(entropy(size)).rstrip(b'=').decode('ascii')}"


def new_media_token(entropy: Entropy) -> str:
    """Return an opaque handle: 16 bytes as unpadded base64url, 22 characters (wire core 0.1)."""
    return base64.urlsafe_b64encode(entropy(16)).rstrip(b"=").decode("ascii")


def new_secret(entropy: Entropy) -> str:
    """Return a secret: 32 bytes as unpadded base64url, `SECRET_LENGTH` characters."""
    return base64.urlsafe_b64encode(entropy(32)).rstrip(b"=").decode("ascii")


def sha256_hex(secret: str) -> str:
    """Return the stored form of a secret: lower-case SHA-256 hex of its UTF-8."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def secrets_equal(left: str, right: str) -> bool:
    """Report whether two secrets are equal, in constant time."""
    return hmac.compare_digest(left.encode("utf-8", "surrogatepass"), right.encode("utf-8", "surrogatepass"))
