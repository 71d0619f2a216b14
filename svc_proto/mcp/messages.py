"""JSON-RPC 2.0 as the Model Context Protocol speaks it: one message, read strictly.

Batches are refused: they were in one version of the protocol only (2025-03-26), and no client sent them.
"""

from __future__ import annotations

from typing import TypeAlias

from attrs import frozen

from svc_proto.schema.json_rpc import INVALID_PARAMS, INVALID_REQUEST, RpcError, read_object
from svc_proto.schema.members import Members

__all__ = [
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
    "parse",
    "request_id",
]

INTERNAL = -32603
TOO_MANY = -32000  # ours
NOT_FOUND = -32002  # of a resource, until 2025-11-25; INVALID_PARAMS since
UNSUPPORTED_VERSION = -32022  # since 2026-07-28
HEADER_MISMATCH = -32020  # the same: head and body disagree

RequestId: TypeAlias = "int | str"


@frozen
class RpcRequest:
    """A request, which is answered under its number."""

    identity: RequestId
    method: str
    params: Members


@frozen
class RpcNotification:
    """A notification: there is no answer."""

    method: str
    params: Members


@frozen
class RpcResponse:
    """What a request of ours has led to; an error has no members."""

    identity: RequestId
    result: Members


Message: TypeAlias = RpcRequest | RpcNotification | RpcResponse


def parse(data: bytes) -> Message:
    """Read one message. Raises `RpcError`."""
    members = read_object(data)
    identity = request_id(members.get("id"))
    method, params = members.get("method"), members.get("params", {})
    if members.get("jsonrpc") != "2.0":
        raise RpcError(INVALID_REQUEST, 'jsonrpc must be "2.0"', identity=identity)
    if "id" in members and identity is None:
        raise RpcError(INVALID_REQUEST, "id must be a string or a whole number")
    if "method" not in members and identity is not None and ("result" in members or "error" in members):
        return RpcResponse(identity, members.inner("result"))
    if not isinstance(method, str):
        raise RpcError(INVALID_REQUEST, "method must be a string", identity=identity)
    if not isinstance(params, dict):
        raise RpcError(INVALID_PARAMS, "params must be an object", identity=identity)
    given = Members.of(params)
    return RpcNotification(method, given) if identity is None else RpcRequest(identity, method, given)


def request_id(value: object) -> RequestId | None:
    """What may name a request, or its progress: text or a whole number; None for anything else."""
    return value if isinstance(value, int | str) and not isinstance(value, bool) else None
