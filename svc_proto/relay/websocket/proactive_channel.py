"""The channel `proactive`: messages of this host to the owner's client, and replies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc_proto.commands import Level
from svc_proto.schema.envelope import Envelope

if TYPE_CHECKING:
    from svc_proto.relay.websocket.client_connection import ClientConnection

__all__ = ["handle_proactive"]


def handle_proactive(client: ClientConnection, envelope: Envelope) -> None:
    """Handle a message of a client; the session needs a live `chat` grant."""
    relay, session = client.relay, client.session
    if session is None or not client.has_grant("chat"):
        relay.owner_messages.unsubscribe(client.number)
        client.send_error("this session holds no live chat grant", "grant_required", envelope.id)
        return
    messages, wall, payload = relay.owner_messages, relay.engine.now.wall, envelope.payload
    match envelope.type:
        case "proactive.subscribe":
            client.send("proactive", "proactive.subscribed", {"ts": wall}, envelope.id)
            backlog = messages.subscribe(client.number)
            for message in backlog:
                client.send("proactive", "phone.message", message)
            if backlog:
                client.send("proactive", "proactive.backlog.complete", {"count": len(backlog), "ts": wall})
        case "proactive.unsubscribe":
            messages.unsubscribe(client.number)
        case "proactive.cancel":
            messages.cancel(payload.text("message_id"))
        case "proactive.reply":
            stored = messages.add_reply(payload, session.device_name, relay.engine.now)
            relay.owner_replied.notify_all()
            status = "accepted" if stored else "rejected"
            ack = {"client_msg_id": payload.get("client_msg_id"), "status": status, "ts": wall}
            client.send("proactive", "proactive.reply.ack", ack, envelope.id)
        case _:
            relay.engine.log(Level.DEBUG, "ignored proactive message", type=envelope.type[:40])
