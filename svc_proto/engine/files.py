"""Flows for small files: read configuration, state and secrets, edit YAML, create spool files."""

from collections.abc import Callable, Mapping
from typing import cast

from svc_proto import commands
from svc_proto.basics.errors import Refused
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, run_operation
from svc_proto.facts import Failure, FailureKind
from svc_proto.schema.json_object import JsonObject, as_object

__all__ = [
    "MISSING_FILE_KINDS",
    "update_yaml",
    "ensure_secret",
    "read_env_file",
    "read_file",
    "read_json_state",
    "read_state",
    "read_yaml",
    "spool_file",
]

MAX_CONFIG = 1024 * 1024  # bytes of a configuration file
NOT_TEXT = "not UTF-8"
MISSING_FILE_KINDS = (FailureKind.NOT_FOUND, FailureKind.UNSUPPORTED)  # the latter of a host without a service home


def read_file(engine: Engine, path: str, *, limit: int = MAX_CONFIG) -> Flow[bytes | Failure]:
    """Return the content of a regular file, or a `Failure` if it cannot be read or has more than `limit` bytes."""
    opened = yield from run_operation(engine, commands.OpenFile(engine.new_op(), path))
    if isinstance(opened, Failure):
        return opened
    try:
        if not opened.regular:
            return Failure(FailureKind.INVALID, "not a regular file")
        if opened.size > limit:
            return Failure(FailureKind.TOO_LARGE, f"more than {limit} bytes")
        return (yield from run_operation(engine, commands.ReadFile(engine.new_op(), opened.handle, 0, limit)))
    finally:
        engine.emit(commands.ReleaseFile(opened.handle))


def read_env_file(engine: Engine, path: str) -> Flow[Mapping[str, str] | Failure]:
    """Return the variables set in a file of lines `NAME=value`, or a `Failure`."""
    text = yield from _read_text(engine, path)
    if isinstance(text, Failure):
        return text
    found = yield from run_operation(engine, commands.Compute(engine.new_op(), "dotenv.load", (text,)))
    return found if isinstance(found, Failure) else cast("Mapping[str, str]", found)


def read_yaml(engine: Engine, path: str) -> Flow[JsonObject | Failure]:
    """Return the mapping in a YAML file; an empty file is an empty mapping.

    Return a `Failure` if the file cannot be read, or has other content.
    """
    text = yield from _read_text(engine, path)
    if isinstance(text, Failure):
        return text
    value = yield from run_operation(engine, commands.Compute(engine.new_op(), "yaml.load", (text,)))
    if isinstance(value, Failure):
        return value
    found = as_object({} if value is None else value)
    if found is None:
        return Failure(FailureKind.INVALID, "not a mapping")
    return JsonObject({str(key): member for key, member in found.items()})


def update_yaml(
    engine: Engine,
    path: str,
    change: Callable[[object], Mapping[str, object]],
    refused: Callable[[str], Refused],
    *,
    name: str = "",
    unfit: str = "cannot be edited: do it by hand",
) -> Flow[None]:
    """Set members of a YAML file and replace the file as a whole; comments and order are kept.

    A missing file counts as empty. `change` returns the new members for the parsed content, or for the `Failure` if it
    is no YAML. `refused` makes the error to raise, from a problem text that follows the file's name; `unfit` is that
    text if the content cannot be edited. `name` is the file to write, if not `path`.
    """
    text = yield from _read_text(engine, path)
    if isinstance(text, Failure):
        if text.kind is not FailureKind.NOT_FOUND:
            raise refused("is not UTF-8: mend it by hand" if text.detail == NOT_TEXT else "could not be read")
        text = ""
    found = yield from run_operation(engine, commands.Compute(engine.new_op(), "yaml.load", (text,)))
    edited = yield from run_operation(engine, commands.Compute(engine.new_op(), "yaml.edit", (text, change(found))))
    if not isinstance(edited, str):
        raise refused(unfit)
    written = yield from run_operation(engine, commands.WriteConfig(engine.new_op(), name or path, edited))
    if isinstance(written, Failure):
        engine.log(commands.Level.ERROR, "configuration not written", path=path, problem=written.kind.value)
        raise refused("could not be written")


def read_state(engine: Engine, name: str) -> Flow[str | Failure | None]:
    """Return the text of a file of the state folder; None if it is missing, or the host has no such folder.

    Return a `Failure` if it exists but cannot be read: the caller must not overwrite it then.
    """
    text = yield from run_operation(engine, commands.ReadConfig(engine.new_op(), name))
    return None if isinstance(text, Failure) and text.kind in MISSING_FILE_KINDS else text


def read_json_state(engine: Engine, name: str) -> Flow[JsonObject]:
    """Return the JSON object in a file of the state folder; an empty one if there is none that can be read."""
    text = yield from read_state(engine, name)
    return JsonObject.parse_or_empty(text) if isinstance(text, str) else JsonObject()


def ensure_secret(engine: Engine, name: str, size: int = 32) -> Flow[bytes | Failure]:
    """Return a secret of the state folder, or a `Failure`. A missing one is created with `size` random bytes."""
    return (yield from run_operation(engine, commands.EnsureSecret(engine.new_op(), name, engine.entropy(size))))


def spool_file(engine: Engine, suffix: str, *parts: bytes) -> Flow[str | Failure]:
    """Create a private file in the spool folder, write `parts` to it in order, and return its path, or a `Failure`.

    The caller has to delete the file (`DeleteBlob`).
    """
    blob = yield from run_operation(engine, commands.CreateBlob(engine.new_op(), suffix))
    if isinstance(blob, Failure):
        return blob
    path: str | Failure | None = None
    try:
        for part in filter(None, parts):
            written = yield from run_operation(engine, commands.WriteBlob(engine.new_op(), blob, part))
            if isinstance(written, Failure):
                path = written
                return path
        path = yield from run_operation(engine, commands.FinishBlob(engine.new_op(), blob))
        return path
    finally:
        if not isinstance(path, str):
            engine.emit(commands.DiscardBlob(blob))


def _read_text(engine: Engine, path: str) -> Flow[str | Failure]:
    data = yield from read_file(engine, path)
    try:
        return data if isinstance(data, Failure) else data.decode("utf-8")
    except UnicodeDecodeError:
        return Failure(FailureKind.INVALID, NOT_TEXT)
