"""Envelope of the messages on the relay's WebSocket: `{"channel", "type", "id", "payload"}` (wire core 1.2)."""

from collections.abc import Mapping

from attrs import field

from svc_proto.basics import strict_json
from svc_proto.basics.errors import RemoteProtocolError
from svc_proto.basics.fast_frozen import fast_frozen
from svc_proto.schema.json_object import JsonObject, json_object

__all__ = ["Envelope", "parse_envelope", "parse_message", "to_envelope", "write_envelope"]


@fast_frozen
class Envelope:
    """A message of the relay's WebSocket. `id` is empty if the peer sent none; `payload` is always an object."""

    channel: str
    type: str
    id: str
    payload: JsonObject
    size: int = field(default=0, eq=False)  # characters of the message, if it was read


def parse_message(text: str) -> object:
    """Parse a WebSocket message as JSON.

    Raise `JsonError`, or `RemoteProtocolError` (1009) if parsing would take too long.
    """
    try:
        return strict_json.loads(text)
    except strict_json.JsonTooLarge as error:
        raise _too_big(error) from None


def parse_envelope(text: str) -> Envelope | None:
    """Parse a message of the relay's WebSocket; None if it is no JSON object.

    Members of a wrong type count as absent. Raises `RemoteProtocolError` (1009) if parsing would take too long.
    """
    value = json_object(text, _too_big)
    return None if value is None else to_envelope(value, len(text))


def to_envelope(value: Mapping[str, object], size: int) -> Envelope:
    """Return the envelope in a JSON object that was read from `size` characters."""
    channel, kind, identity, payload = value.get("channel"), value.get("type"), value.get("id"), value.get("payload")
    return Envelope(
        channel if isinstance(channel, str) else "",
        kind if isinstance(kind, str) else "",
        identity if isinstance(identity, str) else "",
        JsonObject(payload) if isinstance(payload, dict) else JsonObject(),
        size,
    )


def write_envelope(channel: str, kind: str, identity: str, payload: Mapping[str, object], **beside: object) -> str:
    """Write a message of the relay's WebSocket; `beside` are further members of the envelope."""
    return strict_json.dumps({"channel": channel, "type": kind, "id": identity, "payload": payload, **beside})


def _too_big(error: Exception) -> RemoteProtocolError:
    return RemoteProtocolError(f"the message is too big: {error}", close_code=1009)
