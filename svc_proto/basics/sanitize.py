"""Sanitizing of untrusted text, for header fields and terminals."""

import re

__all__ = ["is_printable_ascii", "sanitize_line", "sanitize_text"]

MAX_LINE_CHARS = 200  # characters of a server's text that are shown (wire core 0.4)
_UNPRINTABLE = re.compile(
    r"[^\S ]+|[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]+"
)


def is_printable_ascii(text: str) -> bool:
    """Report whether a text is empty or only printable ASCII without spaces (VCHAR of RFC 5234)."""
    return text.isascii() and text.isprintable() and " " not in text


def sanitize_line(text: str, limit: int = MAX_LINE_CHARS) -> str:
    """Return a peer's text on one line, with a blank for characters that control a terminal, cut to `limit`."""
    return _UNPRINTABLE.sub(" ", text).strip()[:limit]


def sanitize_text(text: str) -> str:
    """Return a peer's text with its lines, and a blank for other characters that control a terminal or are invisible.

    A tab becomes four blanks.
    """
    return "\n".join(_UNPRINTABLE.sub(" ", line) for line in text.replace("\t", "    ").splitlines())
