"""Socket to a realtime provider, for flows: send actions, receive events (wire terminal-voice 6.11).

    link = yield from connect_realtime(engine, dialect, provider="xai_realtime")
    try:
        link.send(ReadAloud("Hello."))
        event = yield from link.next_event(within=60.0)
    finally:
        link.close()

Every failure is a `ProviderError`, without the key or a whole response in its text.
"""

from __future__ import annotations

from collections import deque

from svc_proto.basics import strict_json
from svc_proto.commands import Level
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.engine.http_client import HttpResult, fetch, websocket_upgrade
from svc_proto.engine.lenient_reader import LenientReader
from svc_proto.engine.sync import Condition
from svc_proto.engine.websocket import WebSocketConnection, WebSocketHandler
from svc_proto.facts import Failure
from svc_proto.schema.json_object import JsonObject
from svc_proto.voice.provider_interface import AudioDelta, ProviderError, ProviderEvent
from svc_proto.voice.providers.realtime_dialects import RealtimeDialect
from svc_proto.voice.realtime.actions import ProviderAction

__all__ = ["RealtimeConnection", "connect_realtime"]

CONNECT_TIMEOUT = 60.0  # s, wire terminal-voice 6.11
PING_INTERVAL = 20.0  # s, wire terminal-voice 6.11
REFUSALS = {  # by status
    401: "does not accept the configured API key",
    429: "takes no more sessions for now (429)",
}
MAX_EVENTS = 4096  # that wait for a slow client: past it the connection is closed
MAX_BYTES = 16 * 1024 * 1024  # of sound in them, more than five minutes at 24 kHz: the same


def connect_realtime(
    engine: Engine, dialect: RealtimeDialect, *, provider: str, within: float = CONNECT_TIMEOUT
) -> Flow[RealtimeConnection]:
    """Connect to a realtime provider; raise `ProviderError` if the upgrade fails."""
    link = RealtimeConnection(engine, dialect)
    outcome = yield from fetch(
        engine, "GET", dialect.url, into=websocket_upgrade(link), headers=dialect.headers, within=within
    )
    if isinstance(outcome, Failure):
        raise ProviderError(f"{provider} cannot be reached: {outcome.kind.value}")
    if isinstance(outcome, HttpResult):
        raise ProviderError(f"{provider} {REFUSALS.get(outcome.status, f'declined the socket with {outcome.status}')}")
    return link


class RealtimeConnection(WebSocketHandler):
    """`WebSocketHandler` of a provider's socket; made by `connect_realtime`."""

    _socket: WebSocketConnection  # from `on_open` on

    def __init__(self, engine: Engine, dialect: RealtimeDialect) -> None:
        self._engine = engine
        self._dialect = dialect
        self._reader = LenientReader(engine, "provider")
        self._events: deque[ProviderEvent] = deque()
        self._size = 0  # bytes of sound in them
        self._bell = Condition(engine)  # of the flow that waits for an event
        self._problem: str | None = None  # why no more events come

    # --- for flows ---

    def send(self, *orders: ProviderAction) -> None:
        """Send actions to the provider; do nothing once its socket is closed."""
        for order in orders:
            if (words := self._dialect.encode(order)) is not None:
                self._socket.send_text(strict_json.dumps(words))

    def next_event(self, *, within: float) -> Flow[ProviderEvent]:
        """Return the next event; raise `ProviderError` if there is none in time, or the connection has ended."""
        if not self._events and self._problem is None:
            yield from self._bell.wait(self._engine.now.mono + within)
        if self._events:
            event = self._events.popleft()
            self._size -= _size(event)
            return event
        raise ProviderError(self._problem or "the provider says nothing any more")

    def close(self) -> None:
        """Close the connection to the provider."""
        self._end("closed")
        self._socket.close(1000)

    # --- WebSocketHandler ---

    def on_open(self, socket: WebSocketConnection) -> None:
        """Send the provider the message that sets up the session."""
        self._socket = socket
        socket.set_ping_interval(PING_INTERVAL)
        socket.send_text(strict_json.dumps(self._dialect.setup()))

    def on_text(self, text: str) -> None:
        """Queue the events of a message, which is read leniently; ignore a message that is not a JSON object.

        Close the connection if more than `MAX_EVENTS` events or `MAX_BYTES` of sound wait.
        """
        try:
            message = JsonObject.of_or_none(self._reader.read(text))
        except strict_json.JsonError as error:
            self._engine.log(Level.WARNING, "ignored message of a provider", problem=str(error))
            return
        if message is not None and self._problem is None:
            for event in self._dialect.parse(message):
                self._events.append(event)
                self._size += _size(event)
            if len(self._events) > MAX_EVENTS or self._size > MAX_BYTES:
                self._events.clear()
                self._end("the provider is too far ahead of the listener")
                self._socket.close(1008)
            self._wake()

    def on_closed(self, code: int, reason: str) -> None:
        """Record the end of the provider's socket."""
        self._end(f"the provider closed the connection with code {code}")

    def _end(self, problem: str) -> None:
        self._problem = self._problem or problem
        self._wake()

    def _wake(self) -> None:
        if self._events or self._problem is not None:
            self._bell.notify_all()


def _size(event: ProviderEvent) -> int:
    return len(event.data) if isinstance(event, AudioDelta) else 0
