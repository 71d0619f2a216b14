"""Messages of authenticated clients, by channel (wire core 1.7, wire bridge 1).

A message on an unknown channel is answered with `system/error` under its id. A phone's answers and notifications grant
nothing, so those that are not strict JSON are read leniently: an app may have cut a text in the middle of an emoji
(wire bridge 1.4). A response that cannot be read fails its command at once, with the reason, if its request id is
found. On all other channels such a message is ignored.
"""

import re
from collections.abc import Callable
from typing import Protocol

from svc_proto.basics.strict_json import JsonError
from svc_proto.commands import Level
from svc_proto.engine.core import Engine
from svc_proto.engine.lenient_reader import LenientReader
from svc_proto.engine.sync import Condition
from svc_proto.machines.grants import NOTIFICATIONS
from svc_proto.machines.owner_messages import OwnerMessages
from svc_proto.machines.paired_session import PairedSession
from svc_proto.relay import change_notifier
from svc_proto.relay.ports import PhonesPort
from svc_proto.relay.terminals.terminal_channel import TerminalChannelHandler
from svc_proto.relay.terminals.tui_channel import TuiChannelHandler, TuiClient, TuiPort
from svc_proto.schema.envelope import Envelope, to_envelope
from svc_proto.schema.json_object import JsonObject, as_object

__all__ = ["DispatchPort", "dispatch", "read_deviating_message"]

NO_CHAT = "this relay passes no chat on: talk to the API server, on port 8642 of its host unless it says otherwise"
LENIENT_CHANNELS = ("bridge", "notifications")
UNREADABLE = 502  # status of a response that cannot be read
_RESPONSE = re.compile(r'"type"\s*:\s*"bridge\.response"')
_REQUEST_ID = re.compile(r'"request_id"\s*:\s*"([^"\\]{1,100})"')


class DispatchPort(PhonesPort, TuiPort, Protocol):
    """Members of the relay that the handlers of clients' messages use."""

    owner_messages: OwnerMessages
    owner_replied: Condition

    def phone_reported(self, number: int, session: PairedSession, payload: JsonObject) -> None:
        """Record a client's `bridge.status`; first register the client as a phone if it is none.

        If its device is registered with another socket, do nothing.
        """

    def remove_phone(self, socket: int) -> None:
        """Unregister a phone; pending commands to it fail at once."""


class DispatchClient(TuiClient, Protocol):
    """Members of a client's connection that the handlers of its messages use."""

    terminals: TerminalChannelHandler | None

    @property
    def relay(self) -> DispatchPort:
        """The relay that the client is connected to."""


def dispatch(client: DispatchClient, envelope: Envelope) -> None:
    """Dispatch a message to the handler of its channel; an unknown channel is answered with `system/error`."""
    CHANNEL_HANDLERS.get(envelope.channel, _unknown)(client, envelope)


def read_deviating_message(engine: Engine, text: str) -> Envelope | None:
    """Return the message in a text that the strict reader refuses, or an error response instead; None to ignore it."""
    try:
        value = as_object(LenientReader(engine, "phone").read(text))
    except JsonError as error:
        return _unreadable_response(text, str(error))
    envelope = None if value is None else to_envelope(value, len(text))
    return envelope if envelope is not None and envelope.channel in LENIENT_CHANNELS else None


def _unknown(client: DispatchClient, envelope: Envelope) -> None:
    client.send_error(f"channel {envelope.channel[:40]!r} is not served here", "unknown_channel", envelope.id)


def _system(client: DispatchClient, envelope: Envelope) -> None:
    if envelope.type != "ping":
        return
    sent = envelope.payload.get("ts")
    client.send("system", "pong", {"ts": client.relay.engine.now.wall if sent is None else sent}, envelope.id)


def _bridge(client: DispatchClient, envelope: Envelope) -> None:
    relay, session = client.relay, client.session
    if session is None or not session.holds("bridge", relay.engine.now.wall):
        relay.remove_phone(client.number)
        client.send_error("this session holds no live bridge grant", "grant_required", envelope.id)
        return
    payload = envelope.payload
    if envelope.type == "bridge.response" and payload:
        request_id, now = payload.get("request_id"), relay.engine.now
        if relay.bridge.answer(request_id, client.number, payload, now, envelope.size) is None:
            relay.coordinator.forward_answer(client.number, payload)
    elif envelope.type == "bridge.status" and payload:
        relay.phone_reported(client.number, session, payload)
    else:  # a type that phones do not send, or an empty or invalid payload (wire bridge 1.4)
        relay.engine.log(Level.DEBUG, "ignored bridge message", device=session.device_name)


def _terminal(client: DispatchClient, envelope: Envelope) -> None:
    if client.terminals is None:
        client.terminals = TerminalChannelHandler(client, client.relay.shells)
    if client.has_grant("terminal"):
        client.terminals.handle(envelope)
    else:
        client.terminals.grant_expired(envelope.id)


def _tui(client: DispatchClient, envelope: Envelope) -> None:
    if client.tui is None:
        client.tui = TuiChannelHandler(client)
    if client.has_grant("tui"):
        client.tui.handle(envelope)
    else:
        client.tui.grant_expired(envelope.id)


def _chat(client: DispatchClient, envelope: Envelope) -> None:
    """Answer `chat.send` with `chat.error`, since chat belongs to the API server; answer others with `system/error`."""
    if envelope.type == "chat.send":
        client.send("chat", "chat.error", {"message": NO_CHAT, "error": "unknown_channel"}, envelope.id)
    else:
        _unknown(client, envelope)


def _notifications(client: DispatchClient, envelope: Envelope) -> None:
    """Store a posted notification and publish it to other nodes, without an answer (wire core 7.2).

    An empty or too large notification, and any other message, is ignored. If the session lacks the right, send an
    error instead.
    """
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


def _proactive(client: DispatchClient, envelope: Envelope) -> None:
    """Handle a message of the channel `proactive`: subscribe, unsubscribe, cancel a message, or store a reply.

    If the session holds no live `chat` grant, unsubscribe the client and send an error.
    """
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


CHANNEL_HANDLERS: dict[str, Callable[[DispatchClient, Envelope], None]] = {
    "system": _system,
    "bridge": _bridge,
    "notifications": _notifications,
    "terminal": _terminal,
    "tui": _tui,
    "chat": _chat,
    "proactive": _proactive,
}


def _unreadable_response(text: str, problem: str) -> Envelope | None:
    """Return an error response in place of an unreadable one; None if the text is no response with a request id."""
    found = _REQUEST_ID.search(text)
    if found is None or _RESPONSE.search(text) is None:
        return None
    result = {"ok": False, "error": f"the phone's answer cannot be read: {problem}"}
    payload = JsonObject(request_id=found[1], status=UNREADABLE, result=result)
    return Envelope("bridge", "bridge.response", "", payload, len(text))
