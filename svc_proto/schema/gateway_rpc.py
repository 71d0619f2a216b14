"""JSON-RPC 2.0 of the gateway, on a WebSocket or a TUI channel: an object on each line (wire terminal 2.4)."""

from collections.abc import Mapping

from attrs import frozen

from svc_proto.schema.json_object import JsonObject
from svc_proto.schema.json_rpc import INVALID_PARAMS, INVALID_REQUEST, RpcError, parse_object, write_notification

__all__ = [
    "ATTACHED_FILE",
    "BUSY",
    "INTERNAL",
    "NOT_STORED",
    "NOT_A_COMMAND",
    "NOT_SUPPORTED",
    "NO_SESSION",
    "NO_SUCH_ROW",
    "UPSTREAM",
    "RpcCall",
    "event_line",
    "parse_call",
]

INTERNAL = -32000
NO_SESSION = 4001  # this gateway has no such session open
NOT_SUPPORTED = 4002  # the server does not offer this setting or value
NO_SUCH_ROW = 4004  # the message to begin again from does not exist
NOT_A_COMMAND = 4018  # the command is none that the gateway performs itself: dispatch it
NOT_STORED = 4007  # the API server has no such session
BUSY = 4009  # a turn is in progress, or no request waits for that answer
UPSTREAM = 5001  # the API server is unreachable or fails
ATTACHED_FILE = "[The user attached the file "  # begins the text of an attached file in a stored message


@frozen
class RpcCall:
    """A JSON-RPC request; a notification gets no answer."""

    method: str
    params: JsonObject
    identity: object
    notification: bool = False

    def text(self, name: str) -> str:
        """Return a text parameter. Raise `RpcError` if it is missing or of another type."""
        value = self.params.string(name)
        if value is None:
            raise RpcError(INVALID_PARAMS, f"{name} must be a string")
        return value

    @property
    def session_id(self) -> str:
        """Return the id of the session as text. Raise `RpcError` if it is missing or invalid."""
        identity = self.params.identifier("session_id")
        if not identity:
            raise RpcError(INVALID_PARAMS, "session_id must be a string")
        return identity


def parse_call(line: bytes | str) -> RpcCall:
    """Parse one line of JSON as a call. Raises `RpcError`."""
    members = JsonObject.of(parse_object(line))
    text, method, params = members.string("id"), members.string("method"), members.object_or_none("params")
    identity = members.number("id") if text is None else text
    if identity != members.get("id"):
        raise RpcError(INVALID_REQUEST, "id must be a string or a number")
    if method is None:
        raise RpcError(INVALID_REQUEST, "method must be a string", identity=identity)
    if params != members.get("params"):
        raise RpcError(INVALID_PARAMS, "params must be an object", identity=identity)
    return RpcCall(method, JsonObject.of(params), identity, "id" not in members)


def event_line(kind: str, session_id: str | None = None, payload: Mapping[str, object] | None = None) -> bytes:
    """Return the JSON-RPC notification `event`, whose `params` are `{type, session_id?, payload?}`."""
    params: dict[str, object] = {"type": kind}
    if session_id is not None:
        params["session_id"] = session_id
    if payload is not None:
        params["payload"] = payload
    return write_notification("event", params)
