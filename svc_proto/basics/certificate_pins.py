"""Certificate pins: SHA-256 over the SubjectPublicKeyInfo of a certificate (wire core 10.8).

The few lines of DER here find that one structure (RFC 5280 section 4.1) and validate nothing else.
"""

import base64
import hashlib

__all__ = ["PIN_CHANGED", "is_pin", "pin_of"]

PIN_CHANGED = "the certificate is not the one that was pinned"  # detail of a `Failure`
PREFIX = "sha256/"
LENGTH = len(PREFIX) + 44  # characters: 32 bytes in padded base64
SEQUENCE, EXPLICIT_0 = 0x30, 0xA0
BEFORE_KEY = 5  # serial number, signature algorithm, issuer, validity, subject


def pin_of(certificate: bytes) -> str:
    """Return the pin of a DER certificate. Raises ValueError for bytes without its structure up to the key."""
    content, _ = _element(certificate, 0, SEQUENCE)
    at, _ = _element(certificate, content, SEQUENCE)  # tbsCertificate
    if certificate[at : at + 1] == bytes([EXPLICIT_0]):  # the version
        at = _element(certificate, at)[1]
    for _ in range(BEFORE_KEY):
        at = _element(certificate, at)[1]
    end = _element(certificate, at, SEQUENCE)[1]
    digest = hashlib.sha256(certificate[at:end]).digest()
    return PREFIX + base64.b64encode(digest).decode("ascii")


def is_pin(value: str) -> bool:
    """Report whether a text has the prefix and the length of a pin."""
    return value.startswith(PREFIX) and len(value) == LENGTH


def _element(data: bytes, at: int, tag: int | None = None) -> tuple[int, int]:
    """Return the start of the content of the element at `at`, and the end of the element.

    Raise ValueError if its tag is not `tag`, where given, or it is incomplete.
    """
    if at + 2 > len(data) or (tag is not None and data[at] != tag):
        raise ValueError("not a certificate")
    length, content = data[at + 1], at + 2
    if length & 0x80:
        count = length & 0x7F
        length = int.from_bytes(data[content : content + count], "big")
        content += count
    end = content + length
    if end > len(data):
        raise ValueError("not a whole certificate")
    return content, end
