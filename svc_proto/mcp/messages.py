"""JSON-RPC 2.0 as the Model Context Protocol speaks it: one message, read strictly and written.

Batches are refused: they were in one version of the protocol only (2025-03-26), and no client sent them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias, cast

from attrs import frozen

from svc_proto.basics import strict_json

__all__ = [
    "HEADER_MISMATCH",
    "INTERNAL",
    "INVALID_PARAMS",
    "INVALID_REQUEST",
    "METHOD_NOT_FOUND",
    "NOT_FOUND",
    "PARSE_ERROR",
    "TOO_MANY",
    "UNSUPPORTED_VERSION",
    "Answer",
    "Members",
    "Message",
    "Note",
    "Request",
    "RequestId",
    "RpcError",
    "members_of",
    "parse",
    "write_error",
    "write_note",
    "write_request",
    "write_result",
]

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL = -32603
TOO_MANY = -32000  # ours
NOT_FOUND = -32002  # of a resource, until 2025-11-25; INVALID_PARAMS since
UNSUPPORTED_VERSION = -32022  # since 2026-07-28
HEADER_MISMATCH = -32020  # the same: head and body disagree

RequestId: TypeAlias = "int | str"
Members: TypeAlias = "Mapping[str, object]"


class RpcError(Exception):
    """A request that is answered with an error; `identity` is None where none could be read."""

    def __init__(self, code: int, text: str, *, data: object = None, identity: RequestId | None = None) -> None:
        super().__init__(text)
        self.code = code
        self.data = data
        self.identity = identity


@frozen
class Request:
    """It will be answered, under its number."""

    identity: RequestId
    method: str
    params: Members


@frozen
class Note:
    """A notification: there is no answer."""

    method: str
    params: Members


@frozen
class Answer:
    """What a request of ours has led to; `result` is None for an error."""

    identity: RequestId
    result: Members | None


Message: TypeAlias = Request | Note | Answer


def parse(data: bytes) -> Message:
    """Read one message. Raises `RpcError`."""
    try:
        value = strict_json.loads(data)
    except strict_json.JsonError as error:
        raise RpcError(PARSE_ERROR, f"not JSON: {error}") from None
    if not isinstance(value, dict):
        raise RpcError(INVALID_REQUEST, "a message is an object")
    members = cast("dict[str, object]", value)
    found = members.get("id")
    identity = found if isinstance(found, int | str) and not isinstance(found, bool) else None
    method, params = members.get("method"), members.get("params", {})
    if members.get("jsonrpc") != "2.0":
        raise RpcError(INVALID_REQUEST, 'jsonrpc must be "2.0"', identity=identity)
    if "id" in members and identity is None:
        raise RpcError(INVALID_REQUEST, "id must be a string or a whole number")
    if "method" not in members and identity is not None and ("result" in members or "error" in members):
        result = members.get("result")
        return Answer(identity, cast("Members", result) if isinstance(result, dict) else None)
    if not isinstance(method, str):
        raise RpcError(INVALID_REQUEST, "method must be a string", identity=identity)
    if not isinstance(params, dict):
        raise RpcError(INVALID_PARAMS, "params must be an object", identity=identity)
    given = cast("Members", params)
    return Note(method, given) if identity is None else Request(identity, method, given)


def members_of(value: object) -> Members:
    """Those of an object; none of anything else."""
    return cast("Members", value) if isinstance(value, dict) else {}


def write_result(identity: RequestId, result: Members) -> bytes:
    """The answer to a request."""
    return _write({"id": identity, "result": result})


def write_error(error: RpcError, identity: RequestId | None = None) -> bytes:
    """The other one."""
    told: dict[str, object] = {"code": error.code, "message": str(error)}
    if error.data is not None:
        told["data"] = error.data
    return _write({"id": identity if error.identity is None else error.identity, "error": told})


def write_note(method: str, params: Members) -> bytes:
    """A notification of ours."""
    return _write({"method": method, "params": params})


def write_request(identity: RequestId, method: str, params: Members) -> bytes:
    """A request of ours."""
    return _write({"id": identity, "method": method, "params": params})


def _write(members: Members) -> bytes:
    return strict_json.dumps_bytes({"jsonrpc": "2.0", **members})
