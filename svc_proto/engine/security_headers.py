"""The header fields of a page of ours: what it may load and run, and that nobody frames it or hears where it leads."""

from __future__ import annotations

__all__ = ["page_security_headers"]


def page_security_headers(policy: bytes) -> tuple[tuple[bytes, bytes], ...]:
    """Content Security Policy 3 as `policy` has it, and what goes with each."""
    return (
        (b"content-security-policy", policy),
        (b"x-content-type-options", b"nosniff"),
        (b"x-frame-options", b"DENY"),
        (b"referrer-policy", b"no-referrer"),
        (b"cross-origin-opener-policy", b"same-origin"),
        (b"cross-origin-resource-policy", b"same-origin"),
    )
