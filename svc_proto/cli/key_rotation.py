"""Rotation of the API server's key, in the files that set it (wire core 2.7).

A running API server of this home is then requested, with the old key, to read its files again.
"""

from typing import cast

from attrs import field, frozen

from svc_proto.cli.errors import CliError
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.facts import Failure
from svc_proto.relay_config import RelayConfig
from svc_proto.service_clients.api_client import ApiClient
from svc_proto.service_clients.failure_text import failure_reason
from svc_proto.service_clients.key_files import HostFileError, write_new_key
from svc_proto.service_clients.local_api import find_local_api
from svc_proto.service_clients.service_client import ServiceCallError

__all__ = ["KeyRotationResult", "rotate_key"]


@frozen(kw_only=True)
class KeyRotationResult:
    """The new key, the file that holds it, and whether the environment has a key of its own, which servers prefer.

    `also` is the configuration file, where that had a key that `.env` overrides; it has the new one as well.

    `kept` is the reason why the running API server is not known to use the new key; empty if it uses it, or none runs.
    """

    key: str = field(repr=False)
    path: str
    in_environment: bool
    runs: bool
    also: str = ""
    kept: str = ""


def rotate_key(engine: Engine, config: RelayConfig) -> Flow[KeyRotationResult]:
    """Make a key, store it in each file that has one, else in `.env`, and let a running API server read it.

    Raises `CliError` if a file cannot be changed, or if only the environment sets the key.
    """
    old = (yield from find_local_api(engine, config)).key
    try:
        made = yield from write_new_key(engine, config.home, config.config_path, configured_key=config.api_key)
    except HostFileError as error:
        raise CliError(str(error)) from None
    *also, path = made.paths
    there = config.webapi_inside
    kept = "" if there is None else (yield from _reload_api_key(engine, there, old))
    return KeyRotationResult(
        key=made.key,
        path=path,
        also="".join(also),
        in_environment=bool(config.api_key),
        runs=there is not None,
        kept=kept,
    )


def _reload_api_key(engine: Engine, url: str, old: str) -> Flow[str]:
    """Request the API server to read its files again; return why it is not known to use the new key, else ""."""
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
