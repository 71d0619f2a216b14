"""A new key for this host's API server, in every place where the chain of wire core 2.7 finds an old one.

The API that runs on this home is told, by whoever still has the old one, and takes the new one at once.
"""

from __future__ import annotations

from typing import cast

from attrs import field, frozen

from svc_proto.basics.dotenv import parse_dotenv, set_dotenv
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
    """The new key, the file that holds it, and whether the environment names a key of its own, which servers prefer.

    `also` is the configuration file, where that held a key behind the one of `.env`, and has the new one as well.

    `kept` says why the API that runs has the old key still; empty: it has not, or none runs.
    """

    key: str = field(repr=False)
    path: str
    in_environment: bool
    runs: bool
    also: str = ""
    kept: str = ""


def rotate_key(engine: Engine, config: RelayConfig) -> Flow[KeyRotationResult]:
    """Make a key and put it wherever one is: in the configuration file and `.env`, else into `.env`. Raises `CliError`.

    Nothing is written before all of it is known. `.env` goes first for servers, so it is written last.
    """
    key = new_api_key(engine.entropy)
    old = (yield from find_local_api(engine, config)).key
    settings = yield from _text(engine, config.config_path)
    found = (yield from run_operation(engine, Compute(engine.new_op(), "yaml.load", (settings,)))) if settings else None
    if not isinstance(found, dict | None):
        raise CliError(f"{config.config_path} is not valid YAML: mend it by hand")
    lines = yield from _text(engine, f"{config.home}/{ENV_FILE}")
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
    if NAME in parse_dotenv(lines) or not files:
        if config.api_key and NAME not in parse_dotenv(lines):
            raise CliError(f"the key is {NAME} of the environment: set a new one there, and start the servers anew")
        files[ENV_FILE] = set_dotenv(lines, NAME, key)
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
    """Have the API read its files; why it has not."""
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
