"""Peers of a simulated world that wait for nothing: they are called when something comes, and say what came of it.

`Caller` asks one thing over HTTP on a connection of its own; `Talker` is a WebSocket. Both know only the client's role
of the wire layer, and go to an end exactly once, whatever the network does.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from attrs import frozen

from runtimes.sim.connection import Connection, End
from runtimes.sim.host import Host
from svc_proto.basics.entropy import Entropy
from svc_proto.basics.errors import LocalProtocolError, RemoteProtocolError
from svc_proto.facts import Failure
from svc_proto.wire.connection import Role
from svc_proto.wire.events import (
    Event,
    Headers,
    RequestData,
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
from svc_proto.wire.limits import Limits

__all__ = ["Answer", "Caller", "Line", "Talker", "Target", "Thrower"]

LAX = Limits(max_message=64 * 1024 * 1024, max_head=256 * 1024)  # a client that judges nothing by its size
STREAM = StreamId(1)

Pairs: TypeAlias = Mapping[str, str]


@frozen
class Target:
    """Where to connect, and what to write in `Host`."""

    address: str
    port: int
    authority: str


@frozen
class Answer:
    """A whole response, or `status` 0 when none came."""

    status: int
    headers: Headers
    body: bytes

    @property
    def json(self) -> Any:
        """The body, parsed; an empty object when it is no JSON."""
        try:
            return json.loads(self.body)
        except ValueError:
            return {}


NOTHING = Answer(0, Headers([]), b"")


class Line:
    """A connection of the simulated network from its beginning; the owner of its client's end."""

    def __init__(self, host: Host, target: Target) -> None:
        self.host = host
        self.began = host.world.now
        self.opened = False
        self.over = False
        self.slow = False
        self._end: End | None = None
        self._waiting: list[bytes] = []
        network = host.world.network
        self._attempt = network.connect(host, (target.address, target.port), tls=False, outcome=self._connected)

    @property
    def connection(self) -> Connection | None:
        """What lies between, once there is something."""
        return None if self._end is None else self._end.connection

    def write(self, data: bytes) -> None:
        """Send now, or as soon as there is a connection."""
        if self._end is None:
            self._waiting.append(data)
        elif not self._end.gone:
            self._end.send(data)

    def hang_up(self, *, reset: bool = False) -> None:
        """Leave: with a reset, or with a FIN and without looking back."""
        if self._end is None:
            self._attempt.cancel()
        elif reset:
            self._end.abort()
        else:
            self._end.vanish(reset=False)
        self._finish()

    def read_slowly(self, slow: bool) -> None:
        """Stop taking from the network, or go on."""
        self.slow = slow
        if self._end is not None and not self._end.gone:
            (self._end.pause if slow else self._end.resume)()

    # --- for subclasses ---

    def on_data(self, data: bytes) -> None:
        """Bytes came; empty for a FIN."""

    def on_over(self) -> None:
        """It is over, once."""

    # --- as the owner of an end ---

    def on_sent(self, n: int) -> None:
        """Nobody counts here."""

    def on_readable(self) -> None:
        """Take what there is."""
        end = self._end
        while end is not None and not self.over and (data := end.take()) is not None:
            self.on_data(data)

    def on_closed(self, why: str) -> None:
        """The end is gone."""
        self._finish()

    def _connected(self, outcome: End | Failure) -> None:
        if isinstance(outcome, Failure):
            self._finish()
            return
        self.opened = True
        self._end = outcome
        outcome.adopt(self)
        if self.slow:
            outcome.pause()
        for data in self._waiting:
            outcome.send(data)
        self._waiting = []

    def _finish(self) -> None:
        if not self.over:
            self.over = True
            self.on_over()


class Thrower(Line):
    """Somebody who writes bytes and listens to whatever comes back."""

    def __init__(self, host: Host, target: Target, data: bytes) -> None:
        self.heard = bytearray()
        super().__init__(host, target)
        self.write(data)

    def on_data(self, data: bytes) -> None:
        """Keep it."""
        self.heard += data
        if not data:
            self.hang_up()


class _Speaker(Line):
    """A line with the client's role of HTTP on it."""

    def __init__(self, host: Host, target: Target, entropy: Entropy, *, deflate: bool = False) -> None:
        self.conn = Http1Connection(Role.CLIENT, limits=LAX, entropy=entropy, deflate=deflate)
        self.broken = ""  # how the peer broke the protocol
        self._authority = target.authority
        super().__init__(host, target)

    def fields(self, headers: Pairs) -> list[tuple[bytes, bytes]]:
        named = {"host": self._authority, **headers}
        return [(key.lower().encode(), value.encode()) for key, value in named.items()]

    def put(self, *events: Event) -> bool:
        """Say something; False when the connection does not take it any more."""
        try:
            for event in events:
                self.conn.send(event)
        except LocalProtocolError:
            return False
        self.write(self.conn.data_to_send())
        return True

    def on_data(self, data: bytes) -> None:
        """Parse it."""
        try:
            if data:
                self.conn.receive_data(data)
            else:
                self.conn.receive_eof()
            while not self.over and (event := self.conn.next_event()) is not None:
                self.on_event(event)
        except RemoteProtocolError as error:
            # An end in the middle is the network's doing; anything else the server's.
            self.broken = "" if not data else str(error)
            self.hang_up(reset=True)
            return
        if self.over:
            return
        if reply := self.conn.data_to_send():
            self.write(reply)
        if not data:
            self.hang_up()

    def on_event(self, event: Event) -> None:
        """Something was said."""


class Caller(_Speaker):
    """One request. `on_done(self)` comes once; `answer.status` is 0 when there is none. `on_piece` hears a body."""

    def __init__(
        self,
        host: Host,
        target: Target,
        entropy: Entropy,
        request: tuple[str, str, Pairs, bytes],
        *,
        on_done: Callable[[Caller], None],
        on_piece: Callable[[bytes], None] | None = None,
    ) -> None:
        self.method, self.path, headers, body = request
        self.answer = NOTHING
        self.ended = 0.0
        self._head: ResponseHead | None = None
        self._body: list[bytes] = []
        self._on_done = on_done
        self._on_piece = on_piece
        super().__init__(host, target, entropy)
        pairs = self.fields(headers)
        if body or self.method in ("POST", "PATCH"):
            pairs.append((b"content-length", b"%d" % len(body)))
        self.put(RequestHead(STREAM, self.method, self.path, Headers(pairs)))
        self.put(*([RequestData(STREAM, body)] if body else []), RequestEnd(STREAM))

    @property
    def status(self) -> int:
        """Of the answer; 0 while or when there is none."""
        return self.answer.status

    @property
    def head(self) -> ResponseHead | None:
        """What has come of the answer."""
        return self._head

    def on_event(self, event: Event) -> None:
        """Gather the answer."""
        match event:
            case ResponseHead():
                self._head = event
            case ResponseData(data=data):
                self._body.append(bytes(data))
                if self._on_piece is not None:
                    self._on_piece(bytes(data))
            case ResponseEnd() if self._head is not None:
                self.answer = Answer(self._head.status, self._head.headers, b"".join(self._body))
                self.hang_up()
            case _:
                pass

    def on_over(self) -> None:
        """Tell."""
        self.ended = self.host.world.now
        self._on_done(self)


class Talker(_Speaker):
    """A WebSocket. `on_message(self, envelope)` for each text, `on_end(self)` once; `status` is that of a refusal."""

    def __init__(
        self,
        host: Host,
        target: Target,
        entropy: Entropy,
        *,
        headers: Pairs,
        deflate: bool,
        on_open: Callable[[Talker], None],
        on_message: Callable[[Talker, dict[str, Any]], None],
        on_end: Callable[[Talker], None],
    ) -> None:
        self.accepted = False
        self.status = 0
        self.close_code: int | None = None
        self._on_open = on_open
        self._on_message = on_message
        self._on_end = on_end
        super().__init__(host, target, entropy, deflate=deflate)
        self.put(RequestHead(STREAM, "GET", "/ws", Headers(self.fields(headers)), websocket=True))

    def say(self, channel: str, kind: str, payload: object, identity: str = "i") -> bool:
        """Send an envelope."""
        text = json.dumps({"channel": channel, "type": kind, "id": identity, "payload": payload})
        return not self.over and self.put(TextMessage(STREAM, text))

    def on_event(self, event: Event) -> None:
        """Pass on what matters."""
        match event:
            case SocketAccepted():
                self.accepted = True
                self.status = 101
                self._on_open(self)
            case ResponseHead():
                self.status = event.status
            case ResponseEnd():
                self.hang_up()
            case TextMessage(text=text):
                self._on_message(self, json.loads(text))
            case SocketClosed(code=code):
                self.close_code = code
                if reply := self.conn.data_to_send():
                    self.write(reply)
                self.hang_up()
            case _:
                pass

    def on_over(self) -> None:
        """Tell."""
        self._on_end(self)
