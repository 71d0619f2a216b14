"""Routes of messages to the owner, for programs on the relay's host; phones use the channel `proactive`.

A session with the right `notifications` may list the threads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from svc_proto.basics.entropy import new_uuid
from svc_proto.engine.flow import Flow
from svc_proto.engine.message import JsonResponse, Request, json_response
from svc_proto.engine.router import Route
from svc_proto.engine.sync import Condition
from svc_proto.machines.owner_messages import OwnerMessages, parse_message, parse_message_id, parse_wait
from svc_proto.relay.access import RelayAccess
from svc_proto.relay.ports import RelayPort
from svc_proto.relay.websocket.client_connection import ClientConnection

if TYPE_CHECKING:
    from svc_proto.schema import relay_types as types

__all__ = ["routes"]


class OwnerMessagesPort(RelayPort, Protocol):
    """Members of the relay that the routes of messages to the owner use."""

    owner_messages: OwnerMessages
    owner_replied: Condition
    clients: dict[int, ClientConnection]


def routes(relay: OwnerMessagesPort) -> list[Route]:
    """Return the routes of messages to the owner."""
    view = _OwnerMessageRoutes(relay)
    local = RelayAccess.LOOPBACK
    return [
        Route(method="POST", pattern="/phone/message", access=local, handler=view.post),
        Route(method="GET", pattern="/phone/replies", access=local, handler=view.replies),
        Route(method="GET", pattern="/phone/outbound", access=local, handler=view.outbound),
        Route(method="DELETE", pattern="/phone/outbound", access=local, handler=view.clear),
        Route(method="GET", pattern="/phone/threads", access=RelayAccess.LOCAL_OR_NOTIFICATIONS, handler=view.threads),
    ]


class _OwnerMessageRoutes:
    def __init__(self, relay: OwnerMessagesPort) -> None:
        self._relay = relay

    def post(self, request: Request) -> JsonResponse[types.OwnerMessageSentJson]:
        relay, message = self._relay, parse_message(request.json_object())
        identity = new_uuid(relay.engine.entropy)
        for number in sorted(relay.owner_messages.subscribers):
            if not relay.clients[number].has_grant("chat"):
                relay.owner_messages.unsubscribe(number)
        payload = relay.owner_messages.post(message, identity, relay.engine.now)
        if payload is None:
            buffered = len(relay.owner_messages.outbound())
            return json_response(
                200, {"ok": True, "delivered": False, "queued": True, "buffered": buffered, "message_id": identity}
            )
        for number in sorted(relay.owner_messages.subscribers):
            relay.clients[number].send("proactive", "phone.message", payload)
        return json_response(200, {"ok": True, "delivered": True, "message_id": identity})

    def replies(self, request: Request) -> Flow[JsonResponse[types.OwnerRepliesJson]]:
        relay, message_id = self._relay, parse_message_id(request.query.get("message_id"))
        until = relay.engine.now.mono + parse_wait(request.query.get("timeout"))
        found = relay.owner_messages.take_replies(message_id)
        while not found and relay.engine.now.mono < until:
            yield from relay.owner_replied.wait(until)
            found = relay.owner_messages.take_replies(message_id)
        return json_response(200, {"ok": True, "replies": found, "count": len(found)})

    def outbound(self, request: Request) -> JsonResponse[types.OwnerOutboundJson]:
        found = self._relay.owner_messages.outbound()
        return json_response(200, {"ok": True, "messages": found, "count": len(found)})

    def clear(self, request: Request) -> JsonResponse[types.OwnerOutboundDroppedJson]:
        return json_response(200, {"ok": True, "deleted": self._relay.owner_messages.clear()})

    def threads(self, request: Request) -> JsonResponse[types.OwnerThreadsJson]:
        return json_response(200, {"ok": True, "threads": self._relay.owner_messages.threads()})
