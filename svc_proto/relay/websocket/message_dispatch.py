"""Messages of authenticated clients, by channel (wire core 1.7, wire bridge 1).

A channel that is not served here is answered with `system/error` under the same id, and the socket stays open. Clients
in use send such messages on every connection and ignore the error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from svc_proto.commands import Level
from svc_proto.machines.grants import NOTIFICATIONS
from svc_proto.relay import change_notifier
from svc_proto.relay.terminals.terminal_channel import TerminalChannelHandler
from svc_proto.relay.terminals.tui_channel import TuiChannelHandler
from svc_proto.relay.websocket.proactive_channel import handle_proactive
from svc_proto.schema.envelope import Envelope

if TYPE_CHECKING:
    from svc_proto.relay.websocket.client_connection import ClientConnection

__all__ = ["dispatch"]

NO_CHAT = "this relay passes no chat on: talk to the API server, on port 8642 of its host unless it says otherwise"


def dispatch(client: ClientConnection, envelope: Envelope) -> None:
    """Dispatch a message to the handler of its channel."""
    CHANNEL_HANDLERS.get(envelope.channel, _unknown)(client, envelope)


def _unknown(client: ClientConnection, envelope: Envelope) -> None:
    client.send_error(f"channel {envelope.channel[:40]!r} is not served here", "unknown_channel", envelope.id)


def _system(client: ClientConnection, envelope: Envelope) -> None:
    if envelope.type != "ping":
        return
    sent = envelope.payload.get("ts")
    client.send("system", "pong", {"ts": client.relay.engine.now.wall if sent is None else sent}, envelope.id)


def _bridge(client: ClientConnection, envelope: Envelope) -> None:
    relay, session = client.relay, client.session
    if session is None or not session.holds("bridge", relay.engine.now.wall):
        relay.remove_phone(client.number)
        client.send_error("this session holds no live bridge grant", "grant_required", envelope.id)
        return
    payload = envelope.payload
    if envelope.type == "bridge.response" and payload:
        request_id, now = payload.get("request_id"), relay.engine.now
        if relay.bridge.answer(request_id, client.number, payload, now, envelope.size) is None:
            relay.coordinator.forward_answer(client, payload)
    elif envelope.type == "bridge.status" and payload:
        relay.phone_reported(client, session, payload)
    else:  # a type that phones do not send, or an empty or invalid payload (wire bridge 1.4)
        relay.engine.log(Level.DEBUG, "ignored bridge message", device=session.device_name)


def _terminal(client: ClientConnection, envelope: Envelope) -> None:
    if client.terminals is None:
        client.terminals = TerminalChannelHandler(client, client.relay.shells)
    if client.has_grant("terminal"):
        client.terminals.handle(envelope)
    else:
        client.terminals.grant_expired(envelope.id)


def _tui(client: ClientConnection, envelope: Envelope) -> None:
    if client.tui is None:
        client.tui = TuiChannelHandler(client)
    if client.has_grant("tui"):
        client.tui.handle(envelope)
    else:
        client.tui.grant_expired(envelope.id)


def _chat(client: ClientConnection, envelope: Envelope) -> None:
    """Refuse chat, which belongs to the API server (spec "What" 3); a desktop waits for this answer."""
    if envelope.type == "chat.send":
        client.send("chat", "chat.error", {"message": NO_CHAT, "error": "unknown_channel"}, envelope.id)
    else:
        _unknown(client, envelope)


def _notifications(client: ClientConnection, envelope: Envelope) -> None:
    """Store a notification of a session with that right. It is never answered (wire core 7.2)."""
    relay, session, payload = client.relay, client.session, envelope.payload
    if session is None or not session.may(NOTIFICATIONS, relay.engine.now.wall):
        client.send_error(f"this session does not have the right {NOTIFICATIONS}", "grant_required", envelope.id)
        return
    source = session.token_prefix
    if envelope.type != "notification.posted" or not payload or not client.relay.notifications.post(source, payload):
        client.relay.engine.log(Level.DEBUG, "ignored notification", type=envelope.type[:40])
    else:
        client.relay.coordinator.notification_received(source, payload)
        client.relay.changes.notify(change_notifier.NOTIFICATIONS)


CHANNEL_HANDLERS: dict[str, Callable[[ClientConnection, Envelope], None]] = {
    "system": _system,
    "bridge": _bridge,
    "notifications": _notifications,
    "terminal": _terminal,
    "tui": _tui,
    "chat": _chat,
    "proactive": handle_proactive,
}
