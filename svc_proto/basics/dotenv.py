"""The `.env` file of the service home, as shells read its like: lines of `NAME=value`."""

from __future__ import annotations

__all__ = ["parse_dotenv"]

QUOTES = ("'", '"')


def parse_dotenv(text: str) -> dict[str, str]:
    """What the lines set; the last one counts. `export` and a pair of quotes are taken off.

    A line that is no assignment is a comment, and so is one that sets nothing.
    """
    found: dict[str, str] = {}
    for line in text.splitlines():
        name, equals, value = line.strip().removeprefix("export ").partition("=")
        name, value = name.strip(), value.strip()
        if value[:1] in QUOTES and value[-1:] == value[:1]:
            value = value[1:-1]
        if equals and value and name and not name.startswith("#"):
            found[name] = value
    return found
