"""Requests of gunicorn's test corpus: raw bytes, and gunicorn's reading of them.

`tests/requests/{valid,invalid}/NAME.http` has a request in a notation of its own, `NAME.py` its parsed form or the
error. The corpus is read from gunicorn's source distribution (MIT licence) and is not stored here.
"""

import re
import sys
import types
from pathlib import Path
from typing import Any, cast

from attrs import frozen

HOST = b"Host: corpus.example\r\n"
ESCAPE = re.compile(rb"\\(?:x([0-9A-Fa-f]{2})|(r\\n)|([nt0]))")
PLAIN = {b"n": b"\n", b"t": b"\t", b"0": b"\x00"}
CURRENT = re.compile(rb"[^\r\n]* HTTP/1\.1\r\n")
NAMED = re.compile(rb"\r\nhost[ \t]*:", re.IGNORECASE)
LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*([0-9]+)[ \t]*\r\n", re.IGNORECASE)
CODED = re.compile(rb"\r\ntransfer-encoding:", re.IGNORECASE)


@frozen
class Expected:
    """A request as gunicorn parses it; field names are in lower case."""

    method: str
    target: str
    version: str
    headers: tuple[tuple[bytes, bytes], ...]
    trailers: tuple[tuple[bytes, bytes], ...]
    body: bytes


@frozen
class Case:
    """A file of the corpus.

    `expected` is None for a request that must be refused; then `error` is gunicorn's name for the reason.
    """

    name: str
    data: bytes
    expected: tuple[Expected, ...] | None
    error: str
    settings: dict[str, Any]


def load(folder: Path) -> list[Case]:
    """Return the cases in gunicorn's folder `tests/requests`: the valid ones by name, then the invalid ones."""
    files = sorted((folder / "valid").glob("*.http")) + sorted((folder / "invalid").glob("*.http"))
    return [_case(path) for path in files]


def with_host(data: bytes) -> bytes:
    """Return the data with a `Host` in each HTTP/1.1 head that lacks one, as RFC 9112 section 3.2 requires."""
    out, at = b"", 0
    while (line := CURRENT.match(data, at)) is not None or data.startswith(b"\r\n", at):
        if line is None:
            out, at = out + b"\r\n", at + 2
            continue
        end = data.find(b"\r\n\r\n", at)
        if end < 0:
            break
        head, at = data[at : end + 4], end + 4
        if NAMED.search(head) is None:
            head = line[0] + HOST + head[len(line[0]) :]
        length = LENGTH.search(head)
        if length is not None:
            end = at + int(length[1])
        elif CODED.search(head) is not None:
            end = data.find(b"\r\n\r\n", at) + 4
            end = end if end >= 4 else len(data)
        else:
            end = at
        out, at = out + head + data[at:end], end
    return out + data[at:]


def _case(path: Path) -> Case:
    names = _evaluate(path.with_suffix(".py"))
    request, settings = names["request"], dict(names["cfg"].settings)
    name = f"{path.parent.name}/{path.stem}"
    if path.parent.name == "invalid":
        errors = request if isinstance(request, tuple) else (request,)
        return Case(name, _decode(path.read_bytes()), None, " or ".join(error.__name__ for error in errors), settings)
    requests = request if isinstance(request, list) else [request]
    return Case(name, _decode(path.read_bytes()), tuple(_expected(each) for each in requests), "", settings)


def _decode(text: bytes) -> bytes:
    def plain(found: re.Match[bytes]) -> bytes:
        if found[1] is not None:
            return bytes.fromhex(found[1].decode())
        return b"\r\n" if found[2] is not None else PLAIN[found[3]]

    return ESCAPE.sub(plain, text.replace(b"\n", b""))


def _expected(request: dict[str, Any]) -> Expected:
    major, minor = request["version"]
    return Expected(
        request["method"],
        request["uri"],
        f"{major}.{minor}",
        _fields(request["headers"]),
        _fields(request.get("trailers", [])),
        request["body"] or b"",  # an empty one may be written as text
    )


def _fields(fields: list[tuple[str, str]]) -> tuple[tuple[bytes, bytes], ...]:
    return tuple((name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in fields)


# --- replacements of gunicorn's modules, which the descriptions import ------------------------------------------------


class _Config:
    """Stand-in for gunicorn's configuration class; it records the settings of a case."""

    def __init__(self) -> None:
        self.settings: dict[str, Any] = {}

    def set(self, name: str, value: object) -> None:
        self.settings[name] = value


class _Errors(types.ModuleType):
    """Stand-in for gunicorn's module of errors: each name that does not begin with `__` is an error class."""

    def __getattr__(self, name: str) -> type[Exception]:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (Exception,), {})


def _evaluate(path: Path) -> dict[str, Any]:
    config = types.ModuleType("gunicorn.config")
    vars(config)["Config"] = _Config
    stand_ins = {
        "gunicorn": types.ModuleType("gunicorn"),
        "gunicorn.http": types.ModuleType("gunicorn.http"),
        "gunicorn.config": config,
        "gunicorn.http.errors": _Errors("gunicorn.http.errors"),
    }
    kept = {name: sys.modules.get(name) for name in stand_ins}
    names: dict[str, Any] = {"cfg": _Config(), "uri": lambda target: cast("str", target)}
    sys.modules.update(stand_ins)
    try:
        exec(compile(path.read_text(), str(path), "exec"), names)
    finally:
        for name, module in kept.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module
    return names
