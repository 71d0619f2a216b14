"""Messages of an MCP server as its client reads them: leniently, so that most unusual answers reach their requests.

Servers in use leave `jsonrpc` out, write the id of a request as text or as a float, add `"error": null` to a result,
and send batches. `parse_mcp_message` is the strict reader of our own servers.
"""

from __future__ import annotations

import re
from typing import TypeAlias

from svc_proto.basics.fast_frozen import fast_frozen
from svc_proto.schema.json_object import JsonObject, as_array, error_text
from svc_proto.schema.mcp_messages import Message, RequestId, RpcNotification, RpcRequest, RpcResponse, request_id

__all__ = ["MalformedResponse", "ServerMessage", "find_malformed_response", "read_server_messages"]

NOTHING = JsonObject()
MAX_EDGE = 4096  # bytes at the start and the end of an unreadable text that are searched for an id
MAX_DIGITS = 15  # of an id in text that counts as a number
_START = re.compile(rb'(?:\xef\xbb\xbf)?[ \t\r]*(?:\[[ \t\r]*)?(?:\{|"id"[ \t]*:)')  # what no log record begins with
_KIND = re.compile(rb'"(method|result|error)"\s*:')
_ID = re.compile(rb'"id"\s*:\s*"?(\d{1,15})(?!\d)')


@fast_frozen
class MalformedResponse:
    """A response that cannot be used; `identity` is that of the request, None if the response does not name it."""

    identity: RequestId | None
    problem: str


ServerMessage: TypeAlias = Message | MalformedResponse


def read_server_messages(value: object) -> list[ServerMessage]:
    """Return the messages in a JSON value: one object, or a batch of them. Values that are no messages are left out."""
    batch = as_array(value)
    found = (_message(JsonObject.of(each)) for each in (batch if batch is not None else [value]))
    return [message for message in found if message is not None]


def find_malformed_response(data: bytes | str, problem: str) -> MalformedResponse | None:
    """Return the response in a text that is not JSON, with the id that it shows; None if it does not look like one."""
    raw = data if isinstance(data, bytes) else data.encode("utf-8", "replace")
    if not _START.match(raw):
        return None
    head, tail = raw[:MAX_EDGE], raw[-MAX_EDGE:]
    kind = _KIND.search(head)
    if kind is not None and kind[1] == b"method":
        return None
    ids = _ID.findall(head[: None if kind is None else kind.start()]) or (_ID.findall(tail) if kind else [])
    if kind is None and not ids:
        return None
    return MalformedResponse(int(ids[-1]) if ids else None, problem)


def _message(members: JsonObject) -> ServerMessage | None:
    method = members.text("method")
    if method:
        identity, params = request_id(members.get("id")), members.get_object("params")
        return RpcNotification(method, params) if identity is None else RpcRequest(identity, method, params)
    named = _answered_id(members.get("id"))
    error, result = members.get("error"), members.object_or_none("result")
    if error or (error is not None and "result" not in members):
        said = error_text(error)
        return MalformedResponse(None, f"it refuses: {said}") if named is None else RpcResponse(named, NOTHING, said)
    if named is None:
        return None
    if result is None:
        problem = "its result is no object" if "result" in members else "it has neither a result nor an error"
        return MalformedResponse(named, problem)
    return RpcResponse(named, result)


def _answered_id(value: object) -> RequestId | None:
    """Return the id of a response, None if invalid.

    A float that is a whole number becomes that number, and so does text of at most `MAX_DIGITS` digits.
    """
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= MAX_DIGITS:
        return int(value)
    return request_id(value)
