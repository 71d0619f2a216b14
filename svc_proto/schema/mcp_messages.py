"""JSON-RPC messages of the Model Context Protocol, and the strict reader of servers, which refuses batches.

Clients read the messages of a server with `schema.mcp_server_messages`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from svc_proto.basics.fast_frozen import fast_frozen
from svc_proto.schema.json_object import JsonObject
from svc_proto.schema.json_rpc import INVALID_PARAMS, INVALID_REQUEST, RpcError, parse_object

__all__ = [
    "HANDSHAKE_VERSIONS",
    "HEADER_MISMATCH",
    "INTERNAL",
    "NOT_FOUND",
    "TOO_MANY",
    "UNSUPPORTED_VERSION",
    "RpcResponse",
    "Message",
    "RpcNotification",
    "RpcRequest",
    "RequestId",
    "meta_of",
    "parse_mcp_message",
    "progress_token_of",
    "request_id",
]

# Versions whose sessions begin with a handshake.
HANDSHAKE_VERSIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
INTERNAL = -32603
TOO_MANY = -32000  # ours
NOT_FOUND = -32002  # of a resource, until 2025-11-25; INVALID_PARAMS since
UNSUPPORTED_VERSION = -32022  # since 2026-07-28
HEADER_MISMATCH = -32020  # the same: head and body disagree

NOTHING: Final[Mapping[str, object]] = {}

RequestId: TypeAlias = "int | str"


@fast_frozen
class RpcRequest:
    """A request, which is answered with its id."""

    identity: RequestId
    method: str
    params: JsonObject


@fast_frozen
class RpcNotification:
    """A notification, which is not answered."""

    method: str
    params: JsonObject


@fast_frozen
class RpcResponse:
    """Response to our request; with an `error`, `result` is empty."""

    identity: RequestId
    result: JsonObject
    error: str | None = None  # error message


Message: TypeAlias = RpcRequest | RpcNotification | RpcResponse


def parse_mcp_message(data: bytes | str) -> Message:
    """Parse one request, notification or response. Raises `RpcError` for anything else."""
    members = parse_object(data)
    number, method, params = members.get("id"), members.get("method"), members.get("params")
    params = {} if params is None else params
    ours = members.get("jsonrpc") == "2.0"
    if ours and (type(number) is int or type(number) is str) and type(method) is str and type(params) is dict:
        return RpcRequest(number, method, JsonObject(params))
    identity = request_id(number)
    if not ours:
        raise RpcError(INVALID_REQUEST, 'jsonrpc must be "2.0"', identity=identity)
    if "id" in members and identity is None:
        raise RpcError(INVALID_REQUEST, "id must be a string or a whole number")
    if "method" not in members and identity is not None and ("result" in members or "error" in members):
        error = JsonObject.of(members["error"]).text("message") if "error" in members else None
        return RpcResponse(identity, JsonObject.of(None if error is not None else members["result"]), error)
    if not isinstance(method, str):
        raise RpcError(INVALID_REQUEST, "method must be a string", identity=identity)
    if not isinstance(params, dict):
        raise RpcError(INVALID_PARAMS, "params must be an object", identity=identity)
    return RpcNotification(method, JsonObject(params))


def meta_of(params: JsonObject) -> Mapping[str, object]:
    """Return the metadata of a request (`_meta`); empty without any."""
    meta = params.get("_meta")
    return meta if isinstance(meta, dict) else NOTHING


def progress_token_of(params: JsonObject) -> RequestId | None:
    """Return the token for progress notifications of a request; None if not requested."""
    meta = params.get("_meta")
    return request_id(meta.get("progressToken")) if isinstance(meta, dict) else None


def request_id(value: object) -> RequestId | None:
    """Return a valid request or progress id (text or a whole number); None for anything else."""
    return value if isinstance(value, int | str) and not isinstance(value, bool) else None
