"""A phone's WebSocket in memory."""

import json
from collections.abc import Mapping
from typing import Any, cast

from attrs import define

from svc_proto.relay.openapi.message_types import SERVER_MESSAGES
from svc_proto.wire.events import BinaryMessage, CloseWebSocket, Event, TextMessage, WebSocketAccepted, WebSocketClosed
from tests.support.http_harness import FIRST, HttpCall

ENVELOPE = '{"channel":'
MEMBERS = {name: ({*kind.__annotations__}, kind.__required_keys__) for name, kind in SERVER_MESSAGES.items()}  # type: ignore[attr-defined]  # of a TypedDict
OWN = {"tui tui.rpc.response", "tui tui.rpc.event"}  # messages with the gateway's own members


@define(eq=False)
class PhoneClient(HttpCall):
    """Client of the relay's WebSocket."""

    seen: int = 0  # messages

    @property
    def is_open(self) -> bool:
        accepted = any(isinstance(event, WebSocketAccepted) for event in self.events)
        return accepted and self.closed is None and not self.gone

    @property
    def closed(self) -> WebSocketClosed | None:
        return next((event for event in self.events if isinstance(event, WebSocketClosed)), None)

    @property
    def close_code(self) -> int | None:
        """Return the code of the relay's close frame; None while none has arrived."""
        return None if self.closed is None else self.closed.code

    def on_event(self, event: Event) -> None:
        """Record an event; fail if an envelope's payload lacks a required member or has an undocumented one.

        Payloads of the types in `OWN` may have any members; an undocumented type raises KeyError.
        """
        super().on_event(event)
        if isinstance(event, TextMessage) and event.text.startswith(ENVELOPE):
            said = json.loads(event.text)
            name = f"{said['channel']} {said['type']}"
            named, required = MEMBERS[name]
            assert name in OWN or required <= said["payload"].keys() <= named, event.text

    def envelopes(self) -> list[dict[str, Any]]:
        """Return the envelopes that were not returned before."""
        texts = [event.text for event in self.events if isinstance(event, TextMessage)]
        fresh, self.seen = texts[self.seen :], len(texts)
        return [json.loads(text) for text in fresh]

    def only(self) -> dict[str, Any]:
        (envelope,) = self.envelopes()
        return envelope

    def send(self, channel: str, kind: str, payload: object = None, identity: str | None = "e-1") -> None:
        members: dict[str, object] = {"channel": channel, "type": kind}
        if identity is not None:
            members["id"] = identity
        if payload is not None:
            members["payload"] = payload
        self.text(json.dumps(members))

    def text(self, text: str) -> None:
        self.send_events(TextMessage(FIRST, text))

    def binary(self, data: bytes) -> None:
        self.send_events(BinaryMessage(FIRST, data))

    def auth(self, **payload: object) -> dict[str, Any]:
        """Send `system/auth` and return the one envelope that answers."""
        self.send("system", "auth", payload, "auth-1")
        return self.only()

    def close(self) -> None:
        self.send_events(CloseWebSocket(FIRST))

    def command(self) -> dict[str, Any]:
        """Return the payload of the one new bridge command."""
        envelope = self.only()
        assert (envelope["channel"], envelope["type"]) == ("bridge", "bridge.command")
        assert envelope["id"] == envelope["payload"]["request_id"]
        return cast("dict[str, Any]", envelope["payload"])

    def reply(self, command: Mapping[str, Any], status: object = 200, result: object = None, **more: object) -> None:
        payload = {"request_id": command["request_id"], "status": status, "result": result, **more}
        self.send("bridge", "bridge.response", payload, "r-1")
