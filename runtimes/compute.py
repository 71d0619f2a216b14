"""Blocking host work by name: what a core can order with `Compute`.

A function gets the arguments of the command and returns plain values; what it raises becomes a `Failure`.
"""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Callable, Mapping
from datetime import date
from typing import Any

from runtimes.failures import HostError
from runtimes.pump import Pump
from runtimes.workers import Workers
from svc_proto.commands import Compute
from svc_proto.facts import FailureKind

__all__ = ["COMPUTE", "ComputeService", "executable", "lan_address", "list_folders", "load_yaml", "which"]

YAML_NODES = 100_000  # values in one document, aliases counted each time: INVALID
FOLDERS = 1_000  # names that `list_folders` gives at the most
YAML_DEPTH = 64  # levels of one document: INVALID


class ComputeService:
    """The service for `Compute`."""

    def __init__(self, pump: Pump, workers: Workers, table: Mapping[str, Callable[..., object]]) -> None:
        self._pump = pump
        self._workers = workers
        self._table = table
        pump.serve({Compute: self._compute})

    def _compute(self, command: Compute) -> None:
        function = self._table.get(command.name)
        if function is None:
            self._pump.refuse(command.op, FailureKind.UNSUPPORTED, f"no host work named {command.name}")
            return
        self._pump.work(command.op, self._workers, lambda: function(*command.args))


def load_yaml(text: str) -> dict[str, object]:
    """A YAML document whose top is a mapping (or empty) as plain JSON types; dates become ISO text."""
    import yaml  # noqa: PLC0415, RUF100 - loaded when first wanted: start-up is a user's time

    try:
        loaded = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f" at line {mark.line + 1}" if mark is not None else ""
        raise HostError(FailureKind.INVALID, f"not YAML{where}") from error
    if loaded is None:
        return {}
    if not isinstance(loaded, dict):
        raise HostError(FailureKind.INVALID, "the top of the YAML document is not a mapping")
    plain: dict[str, object] = _Plain().value(loaded, YAML_DEPTH)
    return plain


def lan_address() -> str:
    """This host's address on its network, as its default route has it; 127.0.0.1 when there is none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            sock.connect(("192.0.2.1", 9))  # RFC 5737 TEST-NET-1; connecting a datagram socket sends nothing
            host: str = sock.getsockname()[0]
        except OSError:
            return "127.0.0.1"
    return "127.0.0.1" if host == "0.0.0.0" else host


def which(name: str) -> str | None:
    """The path of a program by its name, as this process's PATH has it."""
    return shutil.which(name)


def executable(path: str) -> bool:
    """Whether a path leads to a file that may be run."""
    return os.path.isfile(path) and os.access(path, os.X_OK)


def list_folders(path: str) -> tuple[str, ...]:
    """The names of the folders in a folder, sorted, the first `FOLDERS` of them; none when there is no such folder."""
    try:
        with os.scandir(os.path.expanduser(path)) as entries:
            return tuple(sorted(entry.name for entry in entries if entry.is_dir())[:FOLDERS])
    except FileNotFoundError:
        return ()


COMPUTE: Mapping[str, Callable[..., object]] = {
    "yaml.load": load_yaml,
    "lan_address": lan_address,
    "which": which,
    "executable": executable,
    "list_folders": list_folders,
}


class _Plain:
    """Turns loaded YAML into JSON types, within limits that aliases cannot get around."""

    def __init__(self) -> None:
        self._nodes = 0

    def value(self, value: Any, depth: int) -> Any:
        self._nodes += 1
        if not depth or self._nodes > YAML_NODES:
            raise HostError(FailureKind.INVALID, "the YAML document is too large or too deep")
        if isinstance(value, dict):
            return {str(key): self.value(inner, depth - 1) for key, inner in value.items()}
        if isinstance(value, list):
            return [self.value(inner, depth - 1) for inner in value]
        if value is None or isinstance(value, str | bool | int | float):
            return value
        if isinstance(value, date):
            return value.isoformat()
        raise HostError(FailureKind.INVALID, f"the YAML document holds a {type(value).__name__}")
