"""What the head of a request has to say for Streamable HTTP, and which status an error has there.

Versions with the handshake may leave `MCP-Protocol-Version` out. From 2026-07-28 on the head says again what the body
says, for those who route by it, and the two must agree.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Final

from svc_proto.basics.errors import Refused
from svc_proto.mcp.conversation import HANDSHAKES, META, MODERN, unsupported
from svc_proto.schema.json_rpc import INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR, RpcError
from svc_proto.schema.mcp_messages import HEADER_MISMATCH, UNSUPPORTED_VERSION, Message, RpcRequest, RpcResponse
from svc_proto.wire.events import Headers

__all__ = ["EVENT_STREAM", "JSON", "SESSION_ID", "STATUSES", "accept", "is_stateless", "with_handshake"]

SESSION_ID: Final = b"mcp-session-id"
VERSION: Final = b"mcp-protocol-version"
METHOD: Final = b"mcp-method"
NAME: Final = b"mcp-name"
JSON: Final = b"application/json"
EVENT_STREAM: Final = b"text/event-stream"
AGAIN = frozenset({VERSION, METHOD, NAME})  # what the head says again of the body
OF_BODY: Final = f"{META}protocolVersion"
NEEDED = (OF_BODY, f"{META}clientCapabilities")
NOTHING: Mapping[str, object] = {}
USUAL: Final = JSON + b", " + EVENT_STREAM  # what clients of MCP say as a rule
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}  # what `Mcp-Name` says again
STATUSES = {
    PARSE_ERROR: 400,
    INVALID_REQUEST: 400,
    INVALID_PARAMS: 400,
    HEADER_MISMATCH: 400,
    UNSUPPORTED_VERSION: 400,
    METHOD_NOT_FOUND: 404,
}  # of an error that answers in the stateless way, or is about the request as such; others have 200
ENCODED = ("=?base64?", "?=")  # around a name that no header could carry


def accept(headers: Headers, *types: bytes) -> None:
    """Refuse with 406 whoever does not take these types of answer."""
    if headers.get(b"accept") == USUAL:
        return
    taken = {token.partition(b";")[0].strip() for token in headers.tokens(b"accept")}
    for wanted in types:
        if not taken & {wanted, wanted.partition(b"/")[0] + b"/*", b"*/*"}:
            raise Refused(406, "not_acceptable", f"Accept must have {b' and '.join(types).decode()}")


def with_handshake(headers: Headers) -> None:
    """Refuse a version that has no sessions (405), or that is not known (400)."""
    version = _text(headers, VERSION)
    if version == MODERN:
        raise Refused(405, "method_not_allowed", "this version takes POST", headers=((b"allow", b"POST"),))
    if version is not None and version not in HANDSHAKES:
        raise Refused(400, "unsupported_version", "this MCP-Protocol-Version is not spoken here")


def is_stateless(headers: Headers, message: Message) -> bool:
    """Whether it speaks the version without sessions. Raises `RpcError` where head and body disagree."""
    version = _text(headers, VERSION)
    meta = NOTHING if isinstance(message, RpcResponse) else message.params.get("_meta")
    asked = meta if isinstance(message, RpcRequest) and isinstance(meta, dict) else NOTHING
    if (version is None or version in HANDSHAKES) and OF_BODY not in asked:
        return False
    if isinstance(message, RpcResponse):
        raise RpcError(INVALID_REQUEST, "there is nothing to answer in this version")
    if isinstance(message, RpcRequest):
        _check(headers, message, asked)
    if version != MODERN:
        raise unsupported(version)
    return True


def _check(headers: Headers, request: RpcRequest, meta: Mapping[str, object]) -> None:
    for needed in NEEDED:
        if needed not in meta:
            raise RpcError(INVALID_PARAMS, f"_meta needs {needed}")
    said: dict[bytes, str] = {}
    for field, value in headers:
        if field in AGAIN:
            if field in said:
                raise RpcError(HEADER_MISMATCH, f"{field.decode()} is there twice")
            said[field] = value.decode("latin-1")
    if said.get(VERSION) != meta[OF_BODY]:
        raise RpcError(HEADER_MISMATCH, "MCP-Protocol-Version is not what _meta says")
    if said.get(METHOD) != request.method:
        raise RpcError(HEADER_MISMATCH, "Mcp-Method is not the method")
    named = NAMED.get(request.method)
    if named is not None and named in request.params and _decoded(said.get(NAME)) != request.params[named]:
        raise RpcError(HEADER_MISMATCH, f"Mcp-Name is not the {named}")


def _text(headers: Headers, name: bytes) -> str | None:
    value = headers.get(name)
    return None if value is None else value.decode("latin-1")


def _decoded(value: str | None) -> str | None:
    """None for what was not encoded as it should have been, which is like nothing in a body."""
    start, end = ENCODED
    if value is None or not (value.startswith(start) and value.endswith(end)):
        return value
    payload = value[len(start) : -len(end)]
    try:
        data = b64decode(payload, validate=True)
        return data.decode("utf-8") if b64encode(data).decode("ascii") == payload else None
    except ValueError:
        return None
