"""One request and its answer: policy before the body, limits while it comes, the handler, exactly one response.

| state    | trigger  | next     |
|----------|----------|----------|
| READING  | BODY_END | RUNNING  | the handler runs, as a plain function or as a flow
| READING  | ANSWER   | DRAINING | refused early: the rest of the body is read and thrown away
| RUNNING  | ANSWER   | DONE     |
| DRAINING | BODY_END | DONE     |
| any      | LOST     | DONE     | the connection went away, or became a WebSocket
"""

from __future__ import annotations

from collections.abc import Generator
from enum import IntEnum
from typing import TYPE_CHECKING

from svc_proto.basics.errors import Refused, RemoteProtocolError
from svc_proto.commands import Level
from svc_proto.engine.date import http_date
from svc_proto.engine.flow import Task
from svc_proto.engine.message import Request, Response, refused_for
from svc_proto.engine.router import Kind, Route
from svc_proto.engine.socket import Socket, SocketHandler
from svc_proto.machines.table import Table, step
from svc_proto.wire.events import (
    AcceptSocket,
    Headers,
    Informational,
    RequestHead,
    ResponseData,
    ResponseEnd,
    ResponseHead,
)
from svc_proto.wire.handshake import handshake_problem
from svc_proto.wire.urls import split_target

if TYPE_CHECKING:
    from svc_proto.engine.server import ServerChannel

__all__ = ["LIFE", "Exchange", "ExchangeState", "ExchangeTrigger"]

BODILESS = (204, 304)
CLOSE = (b"connection", b"close")
SPILL = 16 * 1024  # bytes of a body that are written at once, so that requests behind it may have to wait


class ExchangeState(IntEnum):
    """Where an exchange is."""

    READING = 1
    RUNNING = 2
    DRAINING = 3
    DONE = 4


class ExchangeTrigger(IntEnum):
    """What moves it."""

    BODY_END = 1
    ANSWER = 2
    LOST = 3


LIFE: Table[ExchangeState, ExchangeTrigger] = {
    (ExchangeState.READING, ExchangeTrigger.BODY_END): ExchangeState.RUNNING,
    (ExchangeState.READING, ExchangeTrigger.ANSWER): ExchangeState.DRAINING,
    (ExchangeState.RUNNING, ExchangeTrigger.ANSWER): ExchangeState.DONE,
    (ExchangeState.DRAINING, ExchangeTrigger.BODY_END): ExchangeState.DONE,
    (ExchangeState.READING, ExchangeTrigger.LOST): ExchangeState.DONE,
    (ExchangeState.RUNNING, ExchangeTrigger.LOST): ExchangeState.DONE,
    (ExchangeState.DRAINING, ExchangeTrigger.LOST): ExchangeState.DONE,
    (ExchangeState.DONE, ExchangeTrigger.LOST): ExchangeState.DONE,
}

UNANSWERED = (ExchangeState.READING, ExchangeState.RUNNING)


class Exchange:
    """One request on a server channel."""

    __slots__ = (
        "_body",
        "_channel",
        "_head",
        "_length",
        "_pattern",
        "_request",
        "_route",
        "_task",
        "begun",
        "received",
        "state",
        "stream",
    )

    _route: Route  # these two from the admission on
    _request: Request

    def __init__(self, channel: ServerChannel, head: RequestHead) -> None:
        self.stream = head.stream
        self.state = ExchangeState.READING
        self.received = 0  # bytes of body so far
        self.begun = channel.engine.now.mono
        self._channel = channel
        self._head = head
        self._length = 0  # bytes of body that were announced
        self._pattern = "none"  # of the route, for the log
        self._body: list[bytes] = []
        self._task: Task | None = None

    # --- events, called by the channel ---

    def begin(self) -> None:
        """The head is here: find the route and ask the policy before a byte of the body is read."""
        try:
            self._admit()
        except Exception as error:
            self._failed(error)
            if self._head.expects_continue:
                self._channel.shut()  # the body may or may not follow now: only a close is clear

    def data(self, data: bytes) -> None:
        """A piece of the body."""
        self.received += len(data)
        if self.state is ExchangeState.DRAINING:
            if self.received > self._channel.limits.max_drain:
                self._channel.shut()
            return
        limit = self._route.body_limit
        if self.received > limit:
            self._body = []
            self._failed(_too_large(limit))
            return
        self._body.append(data)

    def end(self) -> None:
        """The request is complete: run its handler, or be done with a refused one."""
        self._step(ExchangeTrigger.BODY_END)
        if self.state is ExchangeState.DONE:
            self._channel.finished(self)
            return
        try:
            self._run()
        except Exception as error:
            self._failed(error)

    def lost(self) -> None:
        """The connection is gone: stop working for it."""
        self._step(ExchangeTrigger.LOST)
        if self._task is not None:
            self._task.cancel()

    def fail(self, refused: Refused) -> None:
        """The peer broke a rule: answer if nothing was answered yet, and stop working for it."""
        if self.state in UNANSWERED:
            self._send(self._channel.app.refusal(refused), closing=True)
        self.lost()

    # --- the course of a request ---

    def _admit(self) -> None:
        head, channel = self._head, self._channel
        length = head.headers.get(b"content-length")
        if length is not None:
            self._length = int(length)  # the wire lets nothing but digits pass
        path, query = split_target(head.target)
        route, params = channel.app.router.match(head.method, path)
        self._route, self._pattern = route, route.pattern
        request = self._request = Request(
            method=head.method,
            path=path,
            raw_query=query,
            headers=head.headers,
            peer=channel.peer,
            secure=channel.secure,
            params=params,
        )
        request.principal = channel.app.authorize(route.access, request)
        if self._length > route.body_limit:
            raise _too_large(route.body_limit)
        if route.kind is Kind.WEBSOCKET and not head.websocket:
            status, problem, headers = handshake_problem(head) or (400, "this path speaks WebSocket", ())
            raise Refused(status, "upgrade_required", problem, headers=tuple(headers))
        if head.expects_continue:
            channel.put(Informational(self.stream, 100))

    def _run(self) -> None:
        request = self._request
        if self._body:
            request.body = b"".join(self._body)  # a single piece is not copied
            self._body = []
        result = self._route.handler(request)
        if isinstance(result, Response):
            self._respond(result)
        elif isinstance(result, Generator):
            self._task = self._channel.engine.spawn(
                result, name=self._pattern, on_done=self._answered, on_error=self._failed
            )
        else:
            self._open_socket(result)

    def _open_socket(self, handler: SocketHandler) -> None:
        channel = self._channel
        channel.put(AcceptSocket(self.stream))
        self._step(ExchangeTrigger.LOST)
        del channel.exchanges[self.stream]
        socket = channel.sockets[self.stream] = Socket(channel, self.stream, handler)
        socket.opened()

    def _failed(self, error: Exception) -> None:
        """Refusals and broken rules are answered as they deserve; anything else is a bug."""
        try:
            if isinstance(error, RemoteProtocolError):
                error = refused_for(error)
            if isinstance(error, Refused):
                self._respond(self._channel.app.refusal(error))
                return
        except Exception as bug:
            error = bug
        self._crash(error)

    def _crash(self, error: Exception) -> None:
        engine = self._channel.engine
        reference = engine.bug(error)
        try:
            if self.state in UNANSWERED:
                problem = Refused(500, "internal_error", f"internal error, reference {reference}")
                self._send(self._channel.app.refusal(problem), closing=True)
            self.lost()
            self._channel.shut()
        except Exception as another:
            engine.bug(another)
            self._channel.drop()

    def _answered(self, result: Response) -> None:
        try:
            self._respond(result)
        except Exception as error:
            self._crash(error)

    def _respond(self, response: Response) -> None:
        channel = self._channel
        no_more = channel.engine.stopping or (channel.eof and not channel.conn.paused)
        endless = self.state is ExchangeState.READING and self._length > channel.limits.max_drain
        self._send(response, closing=no_more or endless)
        self._step(ExchangeTrigger.ANSWER)
        if self.state is ExchangeState.DONE:
            channel.finished(self)

    def _send(self, response: Response, *, closing: bool) -> None:
        channel, stream, status = self._channel, self.stream, response.status
        fields = [(b"date", http_date(channel.engine.now.wall)), *response.headers]
        body = b"" if status in BODILESS else response.body
        if status not in BODILESS:
            fields.append((b"content-length", b"%d" % len(body)))
        if closing and stream:  # the answer on stream 0 closes by itself
            fields.append(CLOSE)
        channel.put(ResponseHead(stream, status, Headers(fields)))
        if body:
            channel.conn.send(ResponseData(stream, body))
        channel.conn.send(ResponseEnd(stream))
        if len(body) >= SPILL:
            channel.spill()
        if channel.engine.log_level <= Level.DEBUG:
            channel.engine.log(Level.DEBUG, "request", method=self._head.method, route=self._pattern, status=status)

    def _step(self, trigger: ExchangeTrigger) -> None:
        self.state = step(LIFE, self.state, trigger)


def _too_large(limit: int) -> Refused:
    return Refused(413, "body_too_large", f"the body may have at most {limit} bytes", extra={"limit": limit})
