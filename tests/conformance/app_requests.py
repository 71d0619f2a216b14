"""Requests of the phone's app, from `app_requests.yaml`, and the comparison of an answer with its shape."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml
from attrs import field, frozen

__all__ = ["REQUESTS", "AppRequest", "matches"]

KINDS: Mapping[str, Callable[[Any], bool]] = {
    "any": lambda value: value is not None,
    "filled": bool,
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "str": lambda value: isinstance(value, str),
    "str or null": lambda value: value is None or isinstance(value, str),
    "str or array": lambda value: isinstance(value, str | list),
    "bool": lambda value: isinstance(value, bool),
    "int": lambda value: isinstance(value, int),
    "number": lambda value: isinstance(value, int | float),
}


@frozen(kw_only=True)
class AppRequest:
    """A request over HTTP, a call on the socket (`live`: of the live session), or a message on the relay's WebSocket.

    `do` is method and path, method, or channel and type; `send` has the members of its body.
    """

    do: str
    send: Mapping[str, object] | None = None
    open: bool = False
    live: bool = False
    status: int = 200
    answer: Any = field(default=None)


def matches(value: Any, shape: Any) -> bool:
    """Report whether a JSON value has a shape of `app_requests.yaml`.

    A shape is a name of `KINDS`, `= TEXT` or `~ PART` (contained in the value), an object with shapes of members, or of
    the items of an array by their place, an array with the shape of each item, or another value, which must be equal.
    """
    if isinstance(shape, dict):
        items = dict(enumerate(value)) if isinstance(value, list) else value
        return isinstance(items, dict) and all(matches(items.get(name), each) for name, each in shape.items())
    if isinstance(shape, list):
        return isinstance(value, list) and (all(matches(each, shape[0]) for each in value) if shape else not value)
    if not isinstance(shape, str):
        return type(value) is type(shape) and value == shape
    if shape.startswith("~ "):
        return shape[2:] in (value or "")
    return value == shape[2:] if shape.startswith("= ") else KINDS[shape](value)


def _read() -> dict[str, tuple[AppRequest, ...]]:
    """Return the requests of each part, without the shapes that several of them share."""
    parts = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text("utf-8"))
    return {name: tuple(AppRequest(**row) for row in rows) for name, rows in parts.items() if isinstance(rows, list)}


REQUESTS = _read()
