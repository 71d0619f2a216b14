"""JSON-RPC 2.0: what all who speak it here have in common. How strictly a request is read is theirs."""

from __future__ import annotations

from collections.abc import Mapping

from svc_proto.basics import strict_json

__all__ = [
    "INVALID_PARAMS",
    "INVALID_REQUEST",
    "METHOD_NOT_FOUND",
    "PARSE_ERROR",
    "RpcError",
    "parse_object",
    "write_error",
    "write_notification",
    "write_request",
    "write_result",
    "write_result_text",
]

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602


class RpcError(Exception):
    """A request that is answered with an error; `identity` is None where none could be read, or it is known anyhow."""

    def __init__(self, code: int, text: str, *, data: object = None, identity: object = None) -> None:
        super().__init__(text)
        self.code = code
        self.data = data
        self.identity = identity


def parse_object(text: bytes | str) -> dict[str, object]:
    """The members of one message. Raises `RpcError`; batches are refused."""
    try:
        value = strict_json.loads(text)
    except strict_json.JsonError as error:
        raise RpcError(PARSE_ERROR, f"not JSON: {error}") from None
    if not isinstance(value, dict):
        raise RpcError(INVALID_REQUEST, "a request must be an object")
    return value


def write_result(identity: object, result: Mapping[str, object]) -> bytes:
    """The answer to a request."""
    return write_result_text(identity, strict_json.dumps(result))


def write_result_text(identity: object, result: str) -> bytes:
    """The same, of a result that was written by `strict_json` already."""
    number = identity if type(identity) is int else strict_json.dumps(identity)
    return f'{{"jsonrpc":"2.0","id":{number},"result":{result}}}'.encode()


def write_error(error: RpcError, identity: object = None) -> bytes:
    """The answer to a request that cannot be done; `error` may name the request by itself."""
    told: dict[str, object] = {"code": error.code, "message": str(error)}
    if error.data is not None:
        told["data"] = error.data
    return _write({"id": identity if error.identity is None else error.identity, "error": told})


def write_notification(method: str, params: Mapping[str, object]) -> bytes:
    """A notification of ours."""
    return _write({"method": method, "params": params})


def write_request(identity: object, method: str, params: Mapping[str, object]) -> bytes:
    """A request of ours."""
    return _write({"id": identity, "method": method, "params": params})


def _write(members: Mapping[str, object]) -> bytes:
    return strict_json.dumps_bytes({"jsonrpc": "2.0", **members})
