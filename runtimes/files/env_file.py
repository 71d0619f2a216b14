"""Parsing and editing of `.env` files by python-dotenv, without interpolation.

Reading a file with a line that cannot be read is an error with the line's number: the line may hold the API's key.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from svc_proto.basics.dotenv import EnvFileError

if TYPE_CHECKING:
    from dotenv.parser import Binding

__all__ = ["EnvFileError", "parse_env_file", "read_env_file", "set_env_line"]

BYTE_ORDER_MARK = "\ufeff"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")  # of a shell, and the dots and dashes of other programs
_LINE_BREAK = re.compile(r"\r\n|\n|\r")
_EXPORTED = re.compile(r"\s*export\s")


def read_env_file(path: Path) -> dict[str, str]:
    """Return the variables of a file that have a value; empty if there is no such file. Raises `EnvFileError`."""
    try:
        text = path.read_text("utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except UnicodeDecodeError as error:
        raise EnvFileError(f"cannot read {path}: not UTF-8") from error
    except OSError as error:
        raise EnvFileError(f"cannot read {path}: {error.strerror}") from error
    found, problem = _parse(text) if text else ({}, "")
    if problem:
        raise EnvFileError(f"cannot read {path}: {problem}")
    return found


def parse_env_file(text: str) -> dict[str, str]:
    """Return the variables that the lines set to a value that is not empty; of several such values, the last counts.

    Raises `HostError` INVALID with the number of the first line that cannot be read.
    """
    from runtimes.failures import HostError  # noqa: PLC0415, RUF100 - loads `ssl`, and `svc status` reads the file, too
    from svc_proto.facts import FailureKind  # noqa: PLC0415, RUF100

    found, problem = _parse(text)
    if problem:
        raise HostError(FailureKind.INVALID, problem)
    return found


def set_env_line(text: str, name: str, value: str) -> str:
    """Return the text of an `.env` file with `name` set to `value`, a text that needs no quotes.

    Lines that set the name are replaced; without any, a line is added at the end.
    """
    parts, found = list[str](), False
    for binding in _bindings(text):
        part = binding.original.string
        if binding.key == name and binding.value is not None:
            empty = part[: len(_leading(part).rstrip(" \t"))]
            exported = "export " if _EXPORTED.match(part) else ""
            part, found = f"{empty}{exported}{name}={value}\n", True
        parts.append(part)
    whole = "".join(parts)
    if whole and not whole.endswith(("\n", "\r")):
        whole += "\n"
    return whole if found else f"{whole}{name}={value}\n"


def _parse(text: str) -> tuple[dict[str, str], str]:
    """Return the variables with a value before the first unreadable line, and that line's problem (empty if none)."""
    found: dict[str, str] = {}
    for binding in _bindings(text):
        problem = _problem(binding)
        if problem:
            return found, f"line {_line(binding)}: {problem}"
        if binding.key is not None and binding.value:
            found[binding.key] = binding.value
    return found, ""


def _bindings(text: str) -> Iterator[Binding]:
    from io import StringIO  # noqa: PLC0415, RUF100 - loaded when first needed: many homes have no such file

    from dotenv.parser import parse_stream  # noqa: PLC0415, RUF100

    return parse_stream(StringIO(text.removeprefix(BYTE_ORDER_MARK), newline=""))


def _problem(binding: Binding) -> str:
    """Return why a line cannot be read; empty if it can. The text never quotes the line, which may hold a secret."""
    if binding.error:
        return "neither NAME=value nor a comment, or a quote without its end"
    if binding.key is None:
        return ""
    if _NAME.fullmatch(binding.key) is None:
        return "the name in front of = has characters that no variable has"
    if binding.value is None and _EXPORTED.match(binding.original.string) is None:
        return "neither NAME=value nor a comment"
    return ""


def _line(binding: Binding) -> int:
    """Return the number of the line that a binding is on; the parser reports that of the first empty line before it."""
    return binding.original.line + len(_LINE_BREAK.findall(_leading(binding.original.string)))


def _leading(text: str) -> str:
    return text[: len(text) - len(text.lstrip())]
