"""Header validation of Streamable HTTP, and the HTTP status of errors.

Versions with the handshake may omit `MCP-Protocol-Version`. From 2026-07-28 on the headers repeat parts of the body,
for routing, and both must agree.
"""

from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Final

from svc_proto.basics.errors import Refused
from svc_proto.engine.message import Request
from svc_proto.mcp.pending_request import (
    CAPABILITIES,
    STATELESS_VERSION,
    RequestContext,
    modern_context,
    unsupported_version_error,
)
from svc_proto.mcp.pending_request import VERSION as OF_BODY
from svc_proto.schema.json_rpc import INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR, RpcError
from svc_proto.schema.mcp_messages import (
    HANDSHAKE_VERSIONS,
    HEADER_MISMATCH,
    NOTHING,
    UNSUPPORTED_VERSION,
    Message,
    RpcRequest,
    RpcResponse,
    meta_of,
)
from svc_proto.wire.events import Headers

__all__ = [
    "EVENT_STREAM",
    "JSON",
    "SESSION_ID",
    "STATUSES",
    "USUAL",
    "require_accept",
    "stateless_context",
    "require_session_version",
]

SESSION_ID: Final = b"mcp-session-id"
VERSION: Final = b"mcp-protocol-version"
METHOD: Final = b"mcp-method"
NAME: Final = b"mcp-name"
JSON: Final = b"application/json"
EVENT_STREAM: Final = b"text/event-stream"
_A_NOTE = RequestContext(STATELESS_VERSION, elicits=False, modern=True)
AGAIN = (VERSION, METHOD, NAME)  # headers that repeat parts of the body
STATELESS_VERSION_BYTES: Final = STATELESS_VERSION.encode("ascii")
WITH_SESSIONS = frozenset(version.encode("ascii") for version in HANDSHAKE_VERSIONS)
USUAL: Final = JSON + b", " + EVENT_STREAM  # the usual value of MCP clients
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}  # the parameter that `Mcp-Name` repeats
# HTTP status by error code, in the stateless mode and for requests that are invalid as such; other errors have 200.
STATUSES = {
    PARSE_ERROR: 400,
    INVALID_REQUEST: 400,
    INVALID_PARAMS: 400,
    HEADER_MISMATCH: 400,
    UNSUPPORTED_VERSION: 400,
    METHOD_NOT_FOUND: 404,
}
ENCODED = ("=?base64?", "?=")  # around a name that is no valid header value


def require_accept(headers: Headers, *types: bytes) -> None:
    """Raise `Refused` 406 unless the client accepts all media types in `types` (RFC 9110 section 12.5.1).

    A client without an Accept field takes any type. Weights (`q`) are ignored.
    """
    if headers.get(b"accept") is None:
        return
    taken = {token.partition(b";")[0].strip() for token in headers.tokens(b"accept")}
    for wanted in types:
        if not taken & {wanted, wanted.partition(b"/")[0] + b"/*", b"*/*"}:
            raise Refused(406, "not_acceptable", f"Accept must have {b' and '.join(types).decode()}")


def require_session_version(headers: Headers) -> None:
    """Raise `Refused` for a version without sessions (405), or an unknown one (400)."""
    version = headers.get(VERSION)
    if version == STATELESS_VERSION_BYTES:
        raise Refused(405, "method_not_allowed", "this version takes POST", headers=((b"allow", b"POST"),))
    if version is not None and version not in WITH_SESSIONS:
        raise Refused(400, "unsupported_version", "this MCP-Protocol-Version is not spoken here")


def stateless_context(request: Request, message: Message) -> RequestContext | None:
    """Return the context of a message in the version without sessions; None for a message of a version with sessions.

    It is None if `_meta` of a request names no version, and the header names none or one with sessions. Otherwise
    raises `RpcError` for an unsupported version, for a response, for an incomplete `_meta`, and for headers of a
    request that are repeated or disagree with its body.
    """
    fields = request.fields
    version = fields.get(VERSION)
    asked = meta_of(message.params) if isinstance(message, RpcRequest) else NOTHING
    if OF_BODY not in asked and (version is None or version in WITH_SESSIONS):
        return None
    if isinstance(message, RpcRequest):
        if len(fields) < len(request.headers):
            _refuse_repeated(request.headers)
        _check(fields, message, asked)
        return modern_context(asked)
    if isinstance(message, RpcResponse):
        raise RpcError(INVALID_REQUEST, "there is nothing to answer in this version")
    if version != STATELESS_VERSION_BYTES:
        raise unsupported_version_error((version or b"").decode("latin-1"))
    return _A_NOTE


def _check(fields: Mapping[bytes, bytes], message: RpcRequest, meta: Mapping[str, object]) -> None:
    method = message.method
    if CAPABILITIES not in meta or OF_BODY not in meta:
        raise RpcError(INVALID_PARAMS, f"_meta needs {OF_BODY} and {CAPABILITIES}")
    version, said = fields.get(VERSION), fields.get(METHOD)
    if version is None or version.decode("latin-1") != meta[OF_BODY]:
        raise RpcError(HEADER_MISMATCH, "MCP-Protocol-Version is not what _meta says")
    if said is None or said.decode("latin-1") != method:
        raise RpcError(HEADER_MISMATCH, "Mcp-Method is not the method")
    named = NAMED.get(method)
    if named is not None and named in message.params:
        name = fields.get(NAME)
        if name is None or _decoded(name.decode("latin-1")) != message.params[named]:
            raise RpcError(HEADER_MISMATCH, f"Mcp-Name is not the {named}")


def _refuse_repeated(headers: Headers) -> None:
    for field in AGAIN:
        if len(headers.all(field)) > 1:
            raise RpcError(HEADER_MISMATCH, f"{field.decode()} is there twice")


def _decoded(value: str) -> str | None:
    """Return a header's value, decoded if it is marked as base64; None if that encoding is invalid."""
    start, end = ENCODED
    if not (value.startswith(start) and value.endswith(end)):
        return value
    payload = value[len(start) : -len(end)]
    try:
        data = b64decode(payload, validate=True)
        return data.decode("utf-8") if b64encode(data).decode("ascii") == payload else None
    except ValueError:
        return None
