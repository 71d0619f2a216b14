"""JSON-RPC 2.0, one object a line, as clients of the TUI channel speak it (wire terminal 2.4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from attrs import frozen

from svc_proto.basics import strict_json

__all__ = [
    "BUSY",
    "INTERNAL",
    "INVALID_PARAMS",
    "NOT_STORED",
    "NO_SESSION",
    "UNKNOWN_METHOD",
    "UPSTREAM",
    "Call",
    "RpcError",
    "event_line",
    "parse_call",
    "result_line",
]

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
UNKNOWN_METHOD = -32601
INVALID_PARAMS = -32602
INTERNAL = -32000
NO_SESSION = 4001  # this gateway has no such session open
NOT_STORED = 4007  # the API server has no such session
BUSY = 4009  # a turn is under way, or nothing waits for that answer
UPSTREAM = 5001  # the API server cannot be reached, or fails


class RpcError(Exception):
    """A call that is answered with an error; `identity` is null where none could be read."""

    def __init__(self, code: int, message: str, identity: object = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.identity = identity

    def line(self) -> bytes:
        """The error as one line."""
        error = {"code": self.code, "message": self.message}
        return _line({"jsonrpc": "2.0", "id": self.identity, "error": error})


@frozen
class Call:
    """One request; a notification has no answer."""

    method: str
    params: Mapping[str, object]
    identity: object
    notification: bool = False

    def text(self, name: str) -> str:
        """A parameter that has to be text; `RpcError` otherwise."""
        value = self.params.get(name)
        if not isinstance(value, str):
            raise RpcError(INVALID_PARAMS, f"{name} must be a string")
        return value

    def word(self, name: str) -> str | None:
        """A parameter that may be text."""
        value = self.params.get(name)
        return value if isinstance(value, str) and value else None


def parse_call(line: bytes) -> Call:
    """Read one line. Raises `RpcError`."""
    try:
        message = strict_json.loads(line)
    except strict_json.JsonError as error:
        raise RpcError(PARSE_ERROR, f"not JSON: {error}") from None
    if not isinstance(message, dict):
        raise RpcError(INVALID_REQUEST, "a request must be an object")
    members = cast("dict[str, object]", message)
    identity, method = members.get("id"), members.get("method")
    if identity is not None and not isinstance(identity, str | int | float):
        raise RpcError(INVALID_REQUEST, "id must be a string or a number")
    if not isinstance(method, str):
        raise RpcError(INVALID_REQUEST, "method must be a string", identity)
    params = members.get("params")
    if params is not None and not isinstance(params, dict):
        raise RpcError(INVALID_PARAMS, "params must be an object", identity)
    return Call(method, cast("dict[str, object]", params or {}), identity, "id" not in members)


def result_line(call: Call, result: Mapping[str, object]) -> bytes:
    """The answer to a call."""
    return _line({"jsonrpc": "2.0", "id": call.identity, "result": result})


def event_line(kind: str, session_id: str | None = None, payload: Mapping[str, object] | None = None) -> bytes:
    """A notification: `params = {type, session_id?, payload?}`."""
    params: dict[str, object] = {"type": kind}
    if session_id is not None:
        params["session_id"] = session_id
    if payload is not None:
        params["payload"] = payload
    return _line({"jsonrpc": "2.0", "method": "event", "params": params})


def _line(message: Mapping[str, object]) -> bytes:
    return strict_json.dumps_bytes(message) + b"\n"
