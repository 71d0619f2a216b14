"""JSON-RPC 2.0: the error, the reader and the writers that all uses share.

Each use decides how strictly it reads a request.
"""

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
    """Error response to a request; `identity` is None if it could not be read, or is known to the caller."""

    def __init__(self, code: int, text: str, *, data: object = None, identity: object = None) -> None:
        super().__init__(text)
        self.code = code
        self.data = data
        self.identity = identity


def parse_object(text: bytes | str) -> dict[str, object]:
    """Return the members of one message. Raise `RpcError` for other text and for a batch."""
    try:
        value = strict_json.loads(text)
    except strict_json.JsonError as error:
        raise RpcError(PARSE_ERROR, f"not JSON: {error}") from None
    if not isinstance(value, dict):
        raise RpcError(INVALID_REQUEST, "a request must be an object")
    return value


def write_result(identity: object, result: Mapping[str, object]) -> bytes:
    """Return the response to a request as JSON."""
    return write_result_text(identity, strict_json.dumps(result))


def write_result_text(identity: object, result: str) -> bytes:
    """Return the response with a result that `strict_json` has written already."""
    number = identity if type(identity) is int else strict_json.dumps(identity)
    return f'{{"jsonrpc":"2.0","id":{number},"result":{result}}}'.encode()


def write_error(error: RpcError, identity: object = None) -> bytes:
    """Return the error response to a request; `error` may have the id of the request itself."""
    told: dict[str, object] = {"code": error.code, "message": str(error)}
    if error.data is not None:
        told["data"] = error.data
    return _write({"id": identity if error.identity is None else error.identity, "error": told})


def write_notification(method: str, params: Mapping[str, object]) -> bytes:
    """Return a notification as JSON."""
    return _write({"method": method, "params": params})


def write_request(identity: object, method: str, params: Mapping[str, object]) -> bytes:
    """Return a request as JSON."""
    return _write({"id": identity, "method": method, "params": params})


def _write(members: Mapping[str, object]) -> bytes:
    return strict_json.dumps_bytes({"jsonrpc": "2.0", **members})
