"""Rotation of the API server's key, in every place where the chain of wire core 2.7 finds an old one.

A running API server on this home is notified with the old key, and uses the new one at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from attrs import field, frozen

from svc_proto.basics.entropy import new_api_key
from svc_proto.cli.errors import CliError, failure_reason
from svc_proto.commands import Compute, WriteConfig
from svc_proto.engine.core import Engine
from svc_proto.engine.files import read_file
from svc_proto.engine.flow import Flow, run_operation
from svc_proto.facts import Failure, FailureKind
from svc_proto.relay_config import RelayConfig
from svc_proto.service_clients.api_client import ApiClient
from svc_proto.service_clients.local_api import find_local_api, with_key
from svc_proto.service_clients.service_client import ServiceCallError

__all__ = ["KeyRotationResult", "rotate_key"]

NAME = "API_SERVER_KEY"
ENV_FILE = ".env"


@frozen(kw_only=True)
class KeyRotationResult:
    """The new key, the file that holds it, and whether the environment has a key of its own, which servers prefer.

    `also` is the configuration file, where that had a key that `.env` overrides; it has the new one as well.

    `kept` is the reason why the running API server still uses the old key; empty if it does not, or none runs.
    """

    key: str = field(repr=False)
    path: str
    in_environment: bool
    runs: bool
    also: str = ""
    kept: str = ""


def rotate_key(engine: Engine, config: RelayConfig) -> Flow[KeyRotationResult]:
    """Make a key and store it in each file that has one, else in `.env`. Raises `CliError`.

    Nothing is written before all files were read. Servers prefer `.env`, so it is written last.
    """
    key = new_api_key(engine.entropy)
    old = (yield from find_local_api(engine, config)).key
    settings = yield from _text(engine, config.config_path)
    found = (yield from run_operation(engine, Compute(engine.new_op(), "yaml.load", (settings,)))) if settings else None
    if not isinstance(found, dict | None):
        raise CliError(f"{config.config_path} is not valid YAML: mend it by hand")
    lines = yield from _text(engine, f"{config.home}/{ENV_FILE}")
    dotenv = (yield from run_operation(engine, Compute(engine.new_op(), "dotenv.load", (lines,)))) if lines else {}
    if isinstance(dotenv, Failure):
        raise CliError(f"{config.home}/{ENV_FILE} cannot be read ({dotenv.detail}): mend it by hand")
    named_in_file = NAME in cast("Mapping[str, str]", dotenv)
    files: dict[str, str] = {}
    if change := with_key(found or {}, key):
        edited = yield from run_operation(engine, Compute(engine.new_op(), "yaml.edit", (settings, change)))
        if not isinstance(edited, str):
            raise CliError(f"{config.config_path} holds the key and cannot be edited: change it there by hand")
        if not config.config_path.startswith(f"{config.home}/"):
            raise CliError(
                f"{config.config_path} holds the key and is not in the service home: change it there by hand"
            )
        files[config.config_path.removeprefix(f"{config.home}/")] = edited
    if named_in_file or not files:
        if config.api_key and not named_in_file:
            raise CliError(f"the key is {NAME} of the environment: set a new one there, and start the servers anew")
        edited = yield from run_operation(engine, Compute(engine.new_op(), "dotenv.set", (lines, NAME, key)))
        if not isinstance(edited, str):
            raise CliError(f"{config.home}/{ENV_FILE} cannot be edited: mend it by hand")
        files[ENV_FILE] = edited
    for name, text in files.items():
        written = yield from run_operation(engine, WriteConfig(engine.new_op(), name, text))
        if isinstance(written, Failure):
            raise CliError(f"{config.home}/{name} cannot be written ({failure_reason(written)}): the old key stays")
    *also, path = (f"{config.home}/{name}" for name in files)
    there = config.webapi_inside
    kept = "" if there is None else (yield from _reload_api_key(engine, there, old))
    return KeyRotationResult(
        key=key,
        path=path,
        also="".join(also),
        in_environment=bool(config.api_key),
        runs=there is not None,
        kept=kept,
    )


def _reload_api_key(engine: Engine, url: str, old: str) -> Flow[str]:
    """Request the API server to read its files again; return the reason if it does not use the new key."""
    try:
        answer = yield from ApiClient("the API server", url, old).request(engine, "POST", "/api/key/reload", {})
    except ServiceCallError as error:
        return failure_reason(cast("Failure", error.failure))
    match answer.status, answer.members:
        case 200, {"changed": True}:
            return ""
        case 200, {"changed": False}:
            return "its files do not give it the new one"
        case 409, {"error": {"message": str(why)}}:
            return why
        case _:
            return f"it answered {answer.status}"


def _text(engine: Engine, path: str) -> Flow[str]:
    data = yield from read_file(engine, path)
    if isinstance(data, Failure):
        if data.kind is FailureKind.NOT_FOUND:
            return ""
        raise CliError(f"{path} cannot be read ({failure_reason(data)}): the old key stays")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise CliError(f"{path} is not UTF-8: mend it by hand") from None
