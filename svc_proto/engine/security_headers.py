"""Security header fields of our pages: what a page may load and run, no framing, no referrer."""

__all__ = ["page_security_headers"]


def page_security_headers(policy: bytes) -> tuple[tuple[bytes, bytes], ...]:
    """Return the security header fields of a page whose Content Security Policy (level 3) is `policy`."""
    return (
        (b"content-security-policy", policy),
        (b"x-content-type-options", b"nosniff"),
        (b"x-frame-options", b"DENY"),
        (b"referrer-policy", b"no-referrer"),
        (b"cross-origin-opener-policy", b"same-origin"),
        (b"cross-origin-resource-policy", b"same-origin"),
    )
