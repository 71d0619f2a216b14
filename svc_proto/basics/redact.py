"""Taking secrets out of JSON values before they reach a log, a record or an inspector.

Spec "Bridge command record": values of keys `password`, `token`, `secret`, `otp`, `bearer` are redacted, other keys
are stored verbatim. The whole key is compared without regard to case, so `access_token` is not one (wire bridge 4.2).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from svc_proto.basics.strict_json import in_pieces

__all__ = [
    "REDACTED",
    "SECRET_KEYS",
    "TEXT_KEYS",
    "TOO_DEEP",
    "abridge",
    "free_text",
    "is_harmless",
    "redact",
    "summary",
    "written",
]

SECRET_KEYS = ("password", "token", "secret", "otp", "bearer")
TEXT_KEYS = ("text", "body")  # what a person typed, or a message to somebody
REDACTED = "[redacted]"
_PLAIN = frozenset({str, int, float, bool, type(None)})
_MARKED = frozenset((*SECRET_KEYS, *TEXT_KEYS))
_marked = re.compile(f'"(?:{"|".join(sorted(_MARKED))})"').search
_compact = in_pieces(json.JSONEncoder(separators=(",", ":")))
TOO_DEEP = "[too deep]"
HUGE = 10**15
WORST = 32  # characters of JSON that one of a name, or a value, may take: `"":"",` and \\uXXXX\\uXXXX, or 24 digits
MAX_DEPTH = 32  # levels of containers; what lies deeper is replaced by `TOO_DEEP`


def redact(value: object, *, hide_text: bool = False) -> object:
    """A copy of a JSON value without secrets; with `hide_text` also without the values of `TEXT_KEYS`."""
    return _redact(value, hide_text, MAX_DEPTH)


def free_text(value: object) -> str:
    """What stands for a text that is nobody's business: its length."""
    return f"[{len(value)} characters]" if isinstance(value, str) else "[hidden]"


def summary(value: object, limit: int, *, hide_text: bool = False) -> str:
    """The redacted value as compact one-line ASCII JSON, cut to `limit` characters with `...` at the end.

    Stops when it has enough, so the cost is that of the summary, not of the value.
    """
    flat = _flat(value, limit, hide_text)
    if flat is not None:
        text = "".join(_compact(flat, 0))
        if len(text) <= limit:
            return text
    return _cut(value, limit, hide_text)


def written(value: object, limit: int, size: int) -> str:
    """The compact JSON of an object that is its own summary, in either use of `hide_text`; else empty.

    `size` is that of the JSON that it was read from, in characters: a large one is not even tried.
    """
    if size > 2 * limit or type(value) is not dict:
        return ""
    text = "".join(_compact(value, 0))
    return text if len(text) <= limit and "\\u" not in text and is_harmless(text) else ""


def is_harmless(text: str) -> bool:
    """Whether nothing is redacted of what this JSON of ours says, in either use of `hide_text`; in doubt False."""
    short = len(text) < 2 * MAX_DEPTH  # what is opened is closed
    return _marked(text.lower()) is None and (short or text.count("{") + text.count("[") <= MAX_DEPTH)


def abridge(value: object, limit: int, *, hide_text: bool = False) -> tuple[object, str]:
    """The redacted copy and its summary; None in place of the copy where the summary has more than `limit`, or all.

    The summary of a copy may be left out: it is there to be shown instead.
    """
    flat = _flat(value, limit // WORST - 1, hide_text) if limit >= WORST else None
    if flat is not None:
        return flat, ""
    start = _cut(value, limit, hide_text)
    return (_redact(value, hide_text, MAX_DEPTH) if len(start) < limit else None), start


def _cut(value: object, limit: int, hide_text: bool) -> str:
    pieces: list[str] = []
    size = 0
    for piece in _write(value, limit, hide_text, MAX_DEPTH):
        pieces.append(piece)
        size += len(piece)
        if size > limit:
            return "".join(pieces)[: limit - 3] + "..."
    return "".join(pieces)


def _redact(value: object, hide_text: bool, depth: int) -> object:
    if isinstance(value, Mapping):
        if depth == 0:
            return TOO_DEEP
        return {
            key: item
            if (item := _replacement(key, member, hide_text)) is not None
            else _redact(member, hide_text, depth - 1)
            for key, member in value.items()
        }
    if isinstance(value, list | tuple):
        if depth == 0:
            return TOO_DEEP
        return [_redact(member, hide_text, depth - 1) for member in value]
    return value


def _flat(value: object, limit: int, hide_text: bool) -> dict[str, object] | None:
    """A small object of plain values, as most are, redacted; None for any other.

    Each character counts for one, and so does a value that is no text.
    """
    if type(value) is not dict:
        return None
    room, shown = limit, dict[str, object]()
    for key, member in value.items():
        if type(key) is not str or type(member) not in _PLAIN:
            return None
        if type(member) is str:
            room -= len(key) + len(member)
        elif type(member) is int and not -HUGE < member < HUGE:
            return None
        else:
            room -= len(key) + 1
        if room < 0:
            return None
        instead = _replacement(key, member, hide_text) if key.lower() in _MARKED else None
        shown[key] = member if instead is None else instead
    return shown


def _replacement(key: object, member: object, hide_text: bool) -> str | None:
    word = str(key).lower()
    if word in SECRET_KEYS:
        return REDACTED
    if hide_text and word in TEXT_KEYS:
        return free_text(member)
    return None


def _write(value: object, limit: int, hide_text: bool, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        yield json.dumps(value[:limit])  # longer than `limit` with its quotes, so the cut falls inside
    elif isinstance(value, Mapping | list | tuple) and depth == 0:
        yield json.dumps(TOO_DEEP)
    elif isinstance(value, Mapping):
        yield "{"
        for index, (key, member) in enumerate(value.items()):
            yield ("," if index else "") + json.dumps(str(key)[:limit]) + ":"
            shown = _replacement(key, member, hide_text)
            yield from _write(member if shown is None else shown, limit, hide_text, depth - 1)
        yield "}"
    elif isinstance(value, list | tuple):
        yield "["
        for index, member in enumerate(value):
            if index:
                yield ","
            yield from _write(member, limit, hide_text, depth - 1)
        yield "]"
    else:
        yield json.dumps(value, default=lambda _: "[not JSON]")
