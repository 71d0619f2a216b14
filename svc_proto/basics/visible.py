"""What a token or a key is made of: a header field carries it as it stands."""

from __future__ import annotations

__all__ = ["is_visible"]


def is_visible(text: str) -> bool:
    """Whether all of it, if there is anything, is printable ASCII without spaces (VCHAR of RFC 5234)."""
    return text.isascii() and text.isprintable() and " " not in text
