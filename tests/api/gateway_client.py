"""A client of the API's gateway in memory.

book, phone, session = open_chat("Hi")    # a new session, whose first turn has begun
phone.kinds()                             # types of the events since the last call
"""

import json
from typing import Any, TypeVar

from attrs import define, field

from svc_proto.wire.events import CloseWebSocket, Event, Headers, RequestHead, TextMessage, WebSocketAccepted
from tests.api.harness import ApiHarness
from tests.api.scripted_agent import TurnHarness
from tests.support.http_harness import FIRST, HttpCall
from tests.support.playbook import PEER

__all__ = ["GatewayClient", "open_chat", "open_gateway", "open_socket"]

Client = TypeVar("Client", bound="GatewayClient")


@define(eq=False)
class GatewayClient(HttpCall):
    """Client of the gateway's WebSocket: it sends calls, and records answers and events."""

    answers: dict[object, dict[str, Any]] = field(factory=dict)  # by the id of the call
    happened: list[dict[str, Any]] = field(factory=list)  # parameters of the events
    calls: int = 0
    seen: int = 0

    @property
    def is_open(self) -> bool:
        return any(isinstance(event, WebSocketAccepted) for event in self.events) and not self.gone

    def on_event(self, event: Event) -> None:
        super().on_event(event)
        if isinstance(event, TextMessage):
            message = json.loads(event.text)
            if message.get("method") == "event":
                self.happened.append(message["params"])
            else:
                self.answers[message["id"]] = message

    def begin(self, method: str, **params: object) -> int:
        """Send a call and return its id."""
        self.calls += 1
        self.text(json.dumps({"jsonrpc": "2.0", "id": self.calls, "method": method, "params": params}))
        return self.calls

    def call(self, method: str, **params: object) -> dict[str, Any]:
        """Send a call and return its result."""
        answer = self.answers[self.begin(method, **params)]
        assert "result" in answer, answer
        result: dict[str, Any] = answer["result"]
        return result

    def refusal(self, method: str, **params: object) -> tuple[int, str]:
        """Send a call and return the code and the text of its error."""
        error = self.answers[self.begin(method, **params)]["error"]
        return error["code"], error["message"]

    def text(self, text: str) -> None:
        self.send_events(TextMessage(FIRST, text))

    def take(self) -> list[dict[str, Any]]:
        """Return the events that were not returned before."""
        fresh, self.seen = self.happened[self.seen :], len(self.happened)
        return fresh

    def kinds(self) -> list[str]:
        """Return the types of the events that were not returned before."""
        return [event["type"] for event in self.take()]

    def last(self, kind: str) -> dict[str, Any]:
        """Return the payload of the last event of a type."""
        payload: dict[str, Any] = [event for event in self.happened if event["type"] == kind][-1].get("payload", {})
        return payload

    def new_session(self, **params: object) -> str:
        """Create a session and return its id."""
        identity: str = self.call("session.create", **params)["session_id"]
        return identity

    def close(self) -> None:
        self.send_events(CloseWebSocket(FIRST))


def open_gateway(
    book: ApiHarness, *, key: str | None = None, fields: tuple[tuple[bytes, bytes], ...] = ()
) -> GatewayClient:
    """Open a WebSocket of the gateway; its first event, `gateway.ready`, is consumed."""
    return open_socket(GatewayClient, book, key=key, more=fields)


def open_socket(
    kind: type[Client], book: ApiHarness, *, key: str | None = None, more: tuple[tuple[bytes, bytes], ...] = ()
) -> Client:
    """Open a WebSocket for a kind of client; its first event, `gateway.ready`, is consumed."""
    phone = book.connect_http1(kind, PEER)
    token = book.config.key if key is None else key
    fields = [(b"host", book.host_name), *([(b"authorization", b"Bearer " + token.encode())] if token else []), *more]
    phone.send_events(RequestHead(FIRST, "GET", "/api/ws", Headers(fields), websocket=True))
    assert phone.is_open, phone.events
    assert phone.kinds() == ["gateway.ready"]
    return phone


def open_chat(prompt: str = "", **options: Any) -> tuple[TurnHarness, GatewayClient, str]:
    """Open a new session on a new API server; if `prompt` is given, start its first turn."""
    book = TurnHarness(**options)
    phone = open_gateway(book)
    session = phone.new_session()
    if prompt:
        phone.call("prompt.submit", session_id=session, text=prompt)
    return book, phone, session
