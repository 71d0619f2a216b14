"""Requests of `svc message` to the relay on this host: send a message to the owner's phone, wait for replies."""

from __future__ import annotations

from svc_proto.cli.error_text import with_explanation
from svc_proto.cli.operator_requests import LOCAL
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.schema.json_object import JsonObject
from svc_proto.service_clients.relay_client import RelayClient
from svc_proto.service_clients.service_client import ServiceFault

__all__ = ["message_line", "send_message", "wait_for_replies"]

ROUND = 25  # s of one request for replies; the relay permits 30
MARGIN = 5.0  # s that a request may take beyond that


def send_message(engine: Engine, relay: RelayClient, text: str, title: str | None) -> Flow[JsonObject]:
    """Send a message to the owner's phone through the relay; return the relay's answer. Raises `CliError`."""
    asked = relay.json(engine, "POST", "/phone/message", {"text": text, "title": title})
    where = f"{LOCAL} at {relay.url}"
    return (
        yield from with_explanation(
            asked, {ServiceFault.FORBIDDEN: f"{where} accepts this only from its own host: {{said}}"}
        )
    )


def wait_for_replies(engine: Engine, relay: RelayClient, within: float) -> Flow[list[JsonObject]]:
    """Return the next replies of the owner, or none after about `within` seconds. Raises `CliError`.

    The relay returns all stored replies at once, and each one once only.
    """
    until = engine.now.mono + within
    while (left := until - engine.now.mono) > 0:
        wait = max(1, min(ROUND, int(left)))
        asked = relay.json(engine, "GET", f"/phone/replies?timeout={wait}", within=wait + MARGIN)
        replies = (yield from with_explanation(asked, {})).objects("replies")
        if replies:
            return replies
    return []


def message_line(sent: JsonObject) -> str:
    """Return the line for people about a sent message."""
    if sent.get("delivered") is True:
        return "Delivered to the phone."
    count = sent.integer("buffered") or 1
    return f"No phone listens: the message waits in the queue ({count}) until one connects."
