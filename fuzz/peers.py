"""Peers of a simulated world that wait for nothing: they are called when something comes, and say what came of it.

`Caller` asks one thing over HTTP; `Talker` is a WebSocket. Each is a rider of a carrier: of its own over HTTP/1.1, of
one that it shares over HTTP/2.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from attrs import frozen

from fuzz.carriers import Carrier, Http2Carrier
from fuzz.lines import Line, Target
from runtimes.sim.host import Host
from svc_proto.wire.events import (
    CloseSocket,
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
    TextMessage,
)

__all__ = ["Answer", "Caller", "Pairs", "Party", "Speaker", "Talker"]

Pairs: TypeAlias = Mapping[str, str]


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


class Speaker:
    """Somebody on a stream of a carrier."""

    def __init__(self, carrier: Carrier, target: Target) -> None:
        self.carrier = carrier
        self.host: Host = carrier.host
        self.began = self.host.world.now
        self.over = False
        self.slow = False
        self.broken = ""  # how the peer broke the protocol
        self._authority = target.authority
        self.stream = carrier.board(self)

    @property
    def opened(self) -> bool:
        """Whether there is a connection."""
        return self.carrier.opened

    def hang_up(self, *, reset: bool = False) -> None:
        """Leave: at once, or behind what was said."""
        if not self.over:
            self.over = True
            self.carrier.leave(self.stream, reset=reset)
            self.on_over()

    def read_slowly(self, slow: bool) -> None:
        """Stop taking what comes, or go on: on the stream if it has a window of its own, else on the connection."""
        self.slow = slow
        carrier = self.carrier
        if not isinstance(carrier, Http2Carrier):
            carrier.read_slowly(slow)
        elif not slow:
            carrier.take_all(self.stream)

    def put(self, *events: Event) -> bool:
        """Say something; False when the connection does not take it any more."""
        return not self.over and self.carrier.put(*events)

    def lost(self, problem: str) -> None:
        """The carrier has nothing more for us."""
        if not self.over:
            self.over = True
            self.broken = problem
            self.on_over()

    def fields(self, headers: Pairs) -> list[tuple[bytes, bytes]]:
        """Header fields of a request."""
        named = {"host": self._authority, **headers}
        return [(key.lower().encode(), value.encode()) for key, value in named.items()]

    # --- for subclasses ---

    def hear(self, event: Event) -> None:
        """Something was said."""

    def on_over(self) -> None:
        """It is over, once."""


Party: TypeAlias = Line | Speaker


class Caller(Speaker):
    """One request, whose body is bytes, or JSON of what is given, or None.

    `on_done(self)` comes once; `answer.status` is 0 when there is none. `on_piece` hears a body.
    """

    def __init__(
        self,
        carrier: Carrier,
        target: Target,
        request: tuple[str, str, Pairs, object],
        *,
        on_done: Callable[[Caller], None],
        on_piece: Callable[[bytes], None] | None = None,
    ) -> None:
        self.method, self.path, headers, given = request
        body = given if isinstance(given, bytes) else b"" if given is None else json.dumps(given).encode()
        self.answer = NOTHING
        self.ended = 0.0
        self._head: ResponseHead | None = None
        self._body: list[bytes] = []
        self._on_done = on_done
        self._on_piece = on_piece
        super().__init__(carrier, target)
        pairs = self.fields(headers)
        if body or self.method in ("POST", "PATCH"):
            pairs.append((b"content-length", b"%d" % len(body)))
        stream = self.stream
        self.put(RequestHead(stream, self.method, self.path, Headers(pairs)))
        self.put(*([RequestData(stream, body)] if body else []), RequestEnd(stream))

    @property
    def status(self) -> int:
        """Of the answer; 0 while or when there is none."""
        return self.answer.status

    @property
    def head(self) -> ResponseHead | None:
        """What has come of the answer."""
        return self._head

    def hear(self, event: Event) -> None:
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


class Talker(Speaker):
    """A WebSocket. `on_message(self, envelope)` for each text, `on_end(self)` once; `status` is that of a refusal."""

    def __init__(
        self,
        carrier: Carrier,
        target: Target,
        *,
        path: str = "/ws",
        headers: Pairs,
        on_open: Callable[[Talker], None],
        on_message: Callable[[Talker, dict[str, Any]], None],
        on_end: Callable[[Talker], None],
    ) -> None:
        self.accepted = False
        self.status = 0
        self.refusal = b""  # what came with it
        self.close_code: int | None = None
        self.text = ""  # what it was told last
        self._on_open = on_open
        self._on_message = on_message
        self._on_end = on_end
        super().__init__(carrier, target)
        self.put(RequestHead(self.stream, "GET", path, Headers(self.fields(headers)), websocket=True))

    def read_slowly(self, slow: bool) -> None:
        """What comes on a WebSocket is taken at once: only the connection as a whole can be left unread."""
        self.slow = slow
        self.carrier.read_slowly(slow)

    def say(self, channel: str, kind: str, payload: object, identity: str = "i") -> bool:
        """Send an envelope."""
        return self.tell({"channel": channel, "type": kind, "id": identity, "payload": payload})

    def tell(self, message: Mapping[str, object]) -> bool:
        """Send a message of any form."""
        return self.put(TextMessage(self.stream, json.dumps(message)))

    def close(self, code: int) -> bool:
        """Begin the closing handshake; the end comes with its answer."""
        return self.put(CloseSocket(self.stream, code))

    def hear(self, event: Event) -> None:
        """Pass on what matters."""
        match event:
            case SocketAccepted():
                self.accepted = True
                self.status = 101
                self._on_open(self)
            case ResponseHead():
                self.status = event.status
            case ResponseData(data=data):
                self.refusal += data
            case ResponseEnd():
                self.hang_up()
            case TextMessage(text=text):
                self.text = text
                self._on_message(self, json.loads(text))
            case SocketClosed(code=code):
                self.close_code = code
                self.carrier.flush()
                self.hang_up()
            case _:
                pass

    def on_over(self) -> None:
        """Tell."""
        self._on_end(self)
