"""Writer of a new API key into the settings files that have one, else `.env` (wire core 2.7), and of other settings."""

from typing import cast

from attrs import field

from svc_proto.basics.entropy import new_api_key
from svc_proto.basics.fast_frozen import fast_frozen
from svc_proto.commands import Compute, WriteConfig
from svc_proto.engine.core import Engine
from svc_proto.engine.files import read_file
from svc_proto.engine.flow import Flow, run_operation
from svc_proto.facts import Failure, FailureKind
from svc_proto.schema.json_object import as_object
from svc_proto.service_clients.failure_text import failure_reason
from svc_proto.service_clients.local_api import with_key

__all__ = ["ENV_FILE", "HostFileError", "NewKey", "read_text", "set_variables", "write_new_key"]

NAME = "API_SERVER_KEY"
ENV_FILE = ".env"


class HostFileError(Exception):
    """Error: a settings file cannot be read, edited or written, or only the environment has the key.

    The text is for people.
    """


@fast_frozen
class NewKey:
    """The new key, and the paths of the files that hold it; servers prefer the last one."""

    key: str = field(repr=False)
    paths: tuple[str, ...]


def write_new_key(engine: Engine, home: str, config_path: str, *, configured_key: str) -> Flow[NewKey]:
    """Make a key and store it in each file that has one, else in `.env`.

    Nothing is written before all files were read. Servers prefer `.env`, so it is written last; if that fails, the
    other file gets its former text again. Raises `HostFileError` for an unusable file, and if no file has a key but
    the environment has one, `configured_key`.
    """
    key = new_api_key(engine.entropy)
    settings = yield from read_text(engine, config_path)
    loaded = (
        (yield from run_operation(engine, Compute(engine.new_op(), "yaml.load", (settings,)))) if settings else None
    )
    found = as_object({} if loaded is None else loaded)
    if found is None:
        raise HostFileError(f"{config_path} is not valid YAML: mend it by hand")
    lines = yield from read_text(engine, f"{home}/{ENV_FILE}")
    variables = yield from _variables(engine, home, lines)
    named_in_file = bool(variables.get(NAME, "").strip())
    files: dict[str, str] = {}
    if change := with_key(found, key):
        edited = yield from run_operation(engine, Compute(engine.new_op(), "yaml.edit", (settings, change)))
        if not isinstance(edited, str):
            raise HostFileError(f"{config_path} holds the key and cannot be edited: change it there by hand")
        if not config_path.startswith(f"{home}/"):
            raise HostFileError(f"{config_path} holds the key and is not in the service home: change it there by hand")
        files[config_path.removeprefix(f"{home}/")] = edited
    if named_in_file or not files:
        if configured_key and not named_in_file:
            raise HostFileError(
                f"the key is {NAME} of the environment: set a new one there, and start the servers anew"
            )
        files[ENV_FILE] = yield from _with_variable(engine, home, lines, NAME, key)
    written: list[str] = []
    for name, text in files.items():
        try:
            yield from _write(engine, home, name, text, "the old key stays")
        except HostFileError:
            for earlier in written:  # the configuration file; if that fails too, `.env` still has the old key
                yield from run_operation(engine, WriteConfig(engine.new_op(), earlier, settings))
            raise
        written.append(name)
    return NewKey(key, tuple(f"{home}/{name}" for name in files))


def set_variables(engine: Engine, home: str, values: dict[str, str]) -> Flow[None]:
    """Set variables in `.env`; the other lines stay. The values need no quotes. Raises `HostFileError`."""
    lines = yield from read_text(engine, f"{home}/{ENV_FILE}")
    yield from _variables(engine, home, lines)
    for name, value in values.items():
        lines = yield from _with_variable(engine, home, lines, name, value)
    yield from _write(engine, home, ENV_FILE, lines, "nothing has changed")


def read_text(engine: Engine, path: str) -> Flow[str]:
    """Read a text file; a missing one counts as empty. Raises `HostFileError`."""
    data = yield from read_file(engine, path)
    if isinstance(data, Failure):
        if data.kind is FailureKind.NOT_FOUND:
            return ""
        raise HostFileError(f"{path} cannot be read ({failure_reason(data)}): nothing has changed")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise HostFileError(f"{path} is not UTF-8: mend it by hand") from None


def _variables(engine: Engine, home: str, lines: str) -> Flow[dict[str, str]]:
    found = (yield from run_operation(engine, Compute(engine.new_op(), "dotenv.load", (lines,)))) if lines else {}
    if isinstance(found, Failure):
        raise HostFileError(f"{home}/{ENV_FILE} cannot be read ({found.detail}): mend it by hand")
    return cast("dict[str, str]", found)


def _with_variable(engine: Engine, home: str, lines: str, name: str, value: str) -> Flow[str]:
    edited = yield from run_operation(engine, Compute(engine.new_op(), "dotenv.set", (lines, name, value)))
    if not isinstance(edited, str):
        raise HostFileError(f"{home}/{ENV_FILE} cannot be edited: mend it by hand")
    return edited


def _write(engine: Engine, home: str, name: str, text: str, effect: str) -> Flow[None]:
    written = yield from run_operation(engine, WriteConfig(engine.new_op(), name, text))
    if isinstance(written, Failure):
        raise HostFileError(f"{home}/{name} cannot be written ({failure_reason(written)}): {effect}")
