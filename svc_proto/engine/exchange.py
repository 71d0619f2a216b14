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
from enum import Enum
from typing import TYPE_CHECKING

from svc_proto.basics.errors import LocalProtocolError, Refused, RemoteProtocolError
from svc_proto.commands import Level
from svc_proto.engine.date import http_date
from svc_proto.engine.flow import Task
from svc_proto.engine.message import Request, Response
from svc_proto.engine.router import Kind, Match
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


class ExchangeState(Enum):
    """Where an exchange is."""

    READING = "reading"
    RUNNING = "running"
    DRAINING = "draining"
    DONE = "done"


class ExchangeTrigger(Enum):
    """What moves it."""

    BODY_END = "body end"
    ANSWER = "answer"
    LOST = "lost"


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


class Exchange:
    """One request on a server channel."""

    __slots__ = ("_body", "_channel", "_head", "_match", "_request", "_task", "begun", "received", "state", "stream")

    def __init__(self, channel: ServerChannel, head: RequestHead) -> None:
        self.stream = head.stream
        self.state = ExchangeState.READING
        self.received = 0  # bytes of body so far
        self.begun = channel.engine.now.mono
        self._channel = channel
        self._head = head
        self._match: Match | None = None
        self._request: Request | None = None
        self._body: list[bytes] = []
        self._task: Task | None = None

    # --- events, called by the channel ---

    def begin(self) -> None:
        """The head is here: find the route and ask the policy before a byte of the body is read."""
        try:
            self._admit()
        except Refused as refused:
            self._refuse(refused)
        except RemoteProtocolError as error:
            self._refuse(Refused(error.status, "bad_request", str(error)))
        except Exception as error:
            self._crash(error)

    def data(self, data: bytes) -> None:
        """A piece of the body."""
        self.received += len(data)
        if self.state is ExchangeState.DRAINING:
            if self.received > self._channel.limits.max_drain:
                self._channel.shut()
            return
        if self._match is not None and self.received > self._match.route.body_limit:
            self._refuse(_too_large(self._match.route.body_limit))
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
        except Refused as refused:
            self._refuse(refused)
        except Exception as error:
            self._crash(error)

    def lost(self) -> None:
        """The connection is gone: stop working for it."""
        self._step(ExchangeTrigger.LOST)
        if self._task is not None:
            self._task.cancel()

    def fail(self, refused: Refused) -> None:
        """The peer broke a rule: answer if nothing was answered yet, and stop working for it."""
        if self.state in (ExchangeState.READING, ExchangeState.RUNNING):
            self._send(self._channel.app.refusal(refused), closing=True)
        self.lost()

    # --- the course of a request ---

    def _admit(self) -> None:
        head, channel = self._head, self._channel
        path, query = split_target(head.target)
        match = self._match = channel.app.router.match(head.method, path)
        request = self._request = Request(
            method=head.method,
            path=path,
            raw_query=query,
            headers=head.headers,
            peer=channel.peer,
            secure=channel.secure,
            params=match.params,
        )
        request.principal = channel.app.authorize(match.route.access, request)
        length = head.headers.get(b"content-length")
        if length is not None and int(length) > match.route.body_limit:
            raise _too_large(match.route.body_limit)
        if match.route.kind is Kind.WEBSOCKET and not head.websocket:
            status, problem, headers = handshake_problem(head) or (400, "this path speaks WebSocket", ())
            raise Refused(status, "upgrade_required", problem, headers=tuple(headers))
        if head.expects_continue:
            channel.put(Informational(self.stream, 100))

    def _run(self) -> None:
        match, request = self._match, self._request
        if match is None or request is None:
            raise LocalProtocolError("a request that was not admitted cannot run")
        if self._body:
            request.body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
            self._body = []
        result = match.route.handler(request)
        if isinstance(result, Response):
            self._respond(result)
        elif isinstance(result, Generator):
            self._task = self._channel.engine.spawn(
                result, name=match.route.pattern, on_done=self._respond, on_error=self._failed
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
        if isinstance(error, Refused):
            self._refuse(error)
        else:
            self._crash(error)

    def _crash(self, error: Exception) -> None:
        reference = self._channel.engine.bug(error)
        if self.state in (ExchangeState.READING, ExchangeState.RUNNING):
            problem = Refused(500, "internal_error", f"internal error, reference {reference}")
            self._send(self._channel.app.refusal(problem), closing=True)
        self.lost()
        self._channel.shut()

    def _refuse(self, refused: Refused) -> None:
        self._respond(self._channel.app.refusal(refused))

    def _respond(self, response: Response) -> None:
        # A peer that waits for 100 (Continue) may or may not send its body after a refusal: only a close is clear.
        self._send(response, closing=self._channel.engine.stopping or self._channel.eof)
        self._step(ExchangeTrigger.ANSWER)
        if self.state is ExchangeState.DONE:
            self._channel.finished(self)

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
        if channel.engine.log_level <= Level.DEBUG:
            route = self._match.route.pattern if self._match is not None else "none"
            channel.engine.log(Level.DEBUG, "request", method=self._head.method, route=route, status=status)

    def _step(self, trigger: ExchangeTrigger) -> None:
        self.state = step(LIFE, self.state, trigger)


def _too_large(limit: int) -> Refused:
    return Refused(413, "body_too_large", f"the body may have at most {limit} bytes", extra={"limit": limit})
