"""Excerpts of an untrusted server's text, for people and logs: one short line, with likely keys redacted."""

import re

__all__ = ["MAX_QUOTED", "safe_excerpt"]

MAX_QUOTED = 200  # characters of a server's own words
_SECRET = re.compile(r"\b(?:(?:sk|pk|key|xai)[-_]|bearer )[A-Za-z0-9._~+/=*-]{6,}", re.IGNORECASE)


def safe_excerpt(text: str, secret: str = "") -> str:
    """Return a server's text as one line of about `MAX_QUOTED` characters, with `secret` and likely keys redacted."""
    if secret:
        text = text.replace(secret, "[redacted]")
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in text[: 10 * MAX_QUOTED]).split())
    line = _SECRET.sub("[redacted]", line)
    return line if len(line) <= MAX_QUOTED else f"{line[:MAX_QUOTED]}…"
