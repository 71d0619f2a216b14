"""Removal of secrets from JSON values before they reach a log, a record or an inspector.

Spec "Bridge command record": values of keys `password`, `token`, `secret`, `otp`, `bearer` are redacted, other keys are
stored verbatim. The whole key is compared without regard to case, so `access_token` is not one (wire bridge 4.2).
Records also leave out the values of `MORE_SECRET_KEYS`, and of parameters of URLs that are named like a secret.
"""

import json
import re
from collections.abc import Mapping, Sequence
from math import inf

from svc_proto.basics.strict_json import piecewise_encoder
from svc_proto.schema.json_object import as_text

__all__ = [
    "MAX_DEPTH",
    "REDACTED",
    "SECRET_KEYS",
    "TEXT_KEYS",
    "TOO_DEEP",
    "abridge",
    "needs_no_redaction",
    "redact",
    "summary",
    "unredacted_text",
]

SECRET_KEYS = ("password", "token", "secret", "otp", "bearer")
MORE_SECRET_KEYS = ("api_key", "authorization", "cookie", "pin")
URL_SECRETS = ("access_token", "refresh_token", "key", "code", "sig", "signature")  # parameters
RECORD_KEYS = (*SECRET_KEYS, *MORE_SECRET_KEYS)
TEXT_KEYS = ("text", "body")  # text that a person typed, or a message to another person
REDACTED = "[redacted]"
_URL_SECRET = re.compile(rf"([?&#](?:{'|'.join((*RECORD_KEYS, *URL_SECRETS))})=)[^&#\s\"']+", re.IGNORECASE)
_marked = re.compile(f'"(?:{"|".join((*RECORD_KEYS, *TEXT_KEYS))})"').search
_compact = piecewise_encoder(json.JSONEncoder(separators=(",", ":"), default=lambda _: "[not JSON]"))
TOO_DEEP = "[too deep]"
MAX_DEPTH = 32  # levels of containers; deeper values are replaced by `TOO_DEEP`


def redact(value: object, *, hide_text: bool = False) -> object:
    """Return a copy of a JSON value in which the values of `SECRET_KEYS` are replaced by `REDACTED`.

    With `hide_text` a text in a member of `TEXT_KEYS` is replaced by its length, any other value by `[hidden]`.
    Containers below `MAX_DEPTH` levels are replaced by `TOO_DEEP`.
    """
    return _Redaction(hide_text).of(value, MAX_DEPTH)


def summary(value: object, limit: int, *, hide_text: bool = False) -> str:
    """Return the redacted ASCII JSON of `abridge`; longer JSON is cut to `limit` characters, with `...` at the end.

    Stops when it has enough, so the cost is that of the summary, not of the value.
    """
    return abridge(value, limit, hide_text=hide_text)[1]


def unredacted_text(value: dict[str, object], limit: int, size: int) -> str:
    """Return the compact JSON of an object that needs no redaction and has at most `limit` characters; else empty.

    It is also empty if a text of the object needs a `\\u` escape. `size` is that of the JSON that the object was read
    from, in characters: a large one is not even tried.
    """
    if size > 2 * limit:
        return ""
    text = "".join(_compact(value, 0))
    return text if len(text) <= limit and "\\u" not in text and needs_no_redaction(text) else ""


def needs_no_redaction(text: str) -> bool:
    """Report whether our JSON text has nothing to redact, in either use of `hide_text`; in doubt False."""
    short = len(text) < 2 * MAX_DEPTH  # each opened container is closed
    return (
        _marked(text.lower()) is None
        and _URL_SECRET.search(text) is None
        and (short or text.count("{") + text.count("[") <= MAX_DEPTH)
    )


def abridge(value: object, limit: int, *, hide_text: bool = False) -> tuple[object, str]:
    """Return a copy without the values of `RECORD_KEYS` and URL secrets, and its compact JSON.

    Longer JSON is cut to `limit` characters; the copy, too, ends soon after them.
    """
    shown = _Redaction(hide_text, limit, RECORD_KEYS).of(value, MAX_DEPTH)
    text = "".join(_compact(shown, 0))
    return shown, text if len(text) <= limit else text[: limit - 3] + "..."


class _Redaction:
    """Builder of a redacted copy; with a `limit`, the copy ends soon after its JSON has more characters."""

    __slots__ = ("_hide_text", "_limit", "_names", "_room")

    def __init__(self, hide_text: bool, limit: int | None = None, names: tuple[str, ...] = SECRET_KEYS) -> None:
        self._hide_text = hide_text
        self._names = names
        self._limit = limit
        self._room: float = inf if limit is None else limit

    def of(self, value: object, depth: int) -> object:
        if isinstance(value, str):
            self._room -= len(value)
            if self._names is RECORD_KEYS and "=" in value:
                value = _URL_SECRET.sub(rf"\1{REDACTED}", value[: 2 * (self._limit or len(value))])
            return value[: self._limit]  # longer than `limit` with its quotes, so the cut falls inside
        if type(value) is dict or isinstance(value, Mapping):  # the ABC check alone takes ten times as long
            return self._members(value, depth - 1) if depth else TOO_DEEP
        if isinstance(value, list | tuple):
            return self._items(value, depth - 1) if depth else TOO_DEEP
        return value

    def _members(self, value: Mapping[str, object], depth: int) -> dict[str, object]:
        shown: dict[str, object] = {}
        for key, member in value.items():
            if self._room < 0:
                break
            self._room -= len(name := str(key)[: self._limit]) + 3
            instead = _replacement(name, member, self._names, self._hide_text)
            shown[name] = self.of(member, depth) if instead is None else instead
        return shown

    def _items(self, value: Sequence[object], depth: int) -> list[object]:
        shown: list[object] = []
        for member in value:
            if self._room < 0:
                break
            self._room -= 1
            shown.append(self.of(member, depth))
        return shown


def _replacement(name: str, member: object, names: tuple[str, ...], hide_text: bool) -> str | None:
    word = name.lower()
    if word in names:
        return REDACTED
    if hide_text and word in TEXT_KEYS:
        return "[hidden]" if (text := as_text(member)) is None else f"[{len(text)} characters]"
    return None
