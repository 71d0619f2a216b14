"""The other end of the wire: HTTP calls and phones that speak through the client role of our own wire layer."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Protocol, cast

from attrs import define, field, frozen

from svc_proto.facts import ChannelId, Closed, Fact, Received
from svc_proto.wire.events import (
    BinaryMessage,
    CloseSocket,
    Event,
    Headers,
    RequestEnd,
    RequestHead,
    ResponseData,
    ResponseEnd,
    ResponseHead,
    SocketAccepted,
    SocketClosed,
    StreamId,
    TextMessage,
)
from svc_proto.wire.http1 import Http1Connection

__all__ = ["FIRST", "Answer", "Book", "Call", "Peer", "Phone", "Upstream"]

FIRST = StreamId(1)


class Book(Protocol):
    """Whoever runs the server at this end."""

    def feed(self, fact: Fact) -> None:
        """Something happened."""
        ...


@frozen
class Answer:
    """One HTTP answer."""

    status: int
    headers: Headers
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@define(eq=False)
class Peer:
    """The other end of one connection."""

    book: Book
    ch: ChannelId
    conn: Http1Connection
    inbox: bytearray = field(factory=bytearray)  # everything that the relay said, as bytes
    events: list[Event] = field(factory=list)
    aborted: bool = False
    gone: bool = False
    mute: bool = False  # says nothing back by itself, no pong and no close frame

    def receive(self, data: bytes) -> bytes:
        """Take bytes of the relay; what must be said back at once (pongs, close frames)."""
        self.inbox += data
        self.conn.receive_data(data)
        while (event := self.conn.next_event()) is not None:
            self.events.append(event)
        return self.conn.data_to_send()

    def say(self, *events: Event) -> None:
        for event in events:
            self.conn.send(event)
        self.say_bytes(self.conn.data_to_send())

    def say_bytes(self, data: bytes) -> None:
        if data:
            self.book.feed(Received(self.ch, data))

    def vanish(self) -> None:
        """The connection breaks without a word."""
        self.book.feed(Closed(self.ch, "reset"))


@define(eq=False)
class Upstream(Peer):
    """A server that the relay has called; `answer` gives the status and the body for a request."""

    answer: Callable[[RequestHead], tuple[int, bytes]] = field(kw_only=True)

    def receive(self, data: bytes) -> bytes:
        known = len(self.events)
        super().receive(data)
        for event in self.events[known:]:
            if isinstance(event, RequestEnd):
                (head,) = [event for event in self.events if isinstance(event, RequestHead)]
                status, body = self.answer(head)
                length = Headers([(b"content-length", b"%d" % len(body))])
                for said in (ResponseHead(FIRST, status, length), ResponseData(FIRST, body), ResponseEnd(FIRST)):
                    self.conn.send(said)
        return self.conn.data_to_send()


class Call(Peer):
    """An HTTP request whose answer may still be to come."""

    @property
    def answer(self) -> Answer | None:
        if not any(isinstance(event, ResponseEnd) for event in self.events):
            return None
        (head,) = [event for event in self.events if isinstance(event, ResponseHead)]
        body = b"".join(event.data for event in self.events if isinstance(event, ResponseData))
        return Answer(head.status, head.headers, body)

    @property
    def result(self) -> Answer:
        answer = self.answer
        assert answer is not None, "there is no answer yet"
        return answer


class Phone(Call):
    """A client's WebSocket."""

    seen: int = 0

    @property
    def is_open(self) -> bool:
        accepted = any(isinstance(event, SocketAccepted) for event in self.events)
        return accepted and self.closed is None and not self.gone

    @property
    def closed(self) -> SocketClosed | None:
        return next((event for event in self.events if isinstance(event, SocketClosed)), None)

    def envelopes(self) -> list[dict[str, Any]]:
        """What came since the last call."""
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
        self.say(TextMessage(FIRST, text))

    def binary(self, data: bytes) -> None:
        self.say(BinaryMessage(FIRST, data))

    def auth(self, **payload: object) -> dict[str, Any]:
        """Send `system/auth`; the one envelope that answers it."""
        self.send("system", "auth", payload, "auth-1")
        return self.only()

    def close(self) -> None:
        self.say(CloseSocket(FIRST))

    def command(self) -> dict[str, Any]:
        """The payload of the one command that came since the last look."""
        envelope = self.only()
        assert (envelope["channel"], envelope["type"]) == ("bridge", "bridge.command")
        assert envelope["id"] == envelope["payload"]["request_id"]
        return cast("dict[str, Any]", envelope["payload"])

    def reply(self, command: Mapping[str, Any], status: object = 200, result: object = None, **more: object) -> None:
        payload = {"request_id": command["request_id"], "status": status, "result": result, **more}
        self.send("bridge", "bridge.response", payload, "r-1")
