"""One request and its answer: policy before the body, limits while it comes, the handler, exactly one response.

| state     | trigger  | next      |
|-----------|----------|-----------|
| READING   | ASK      | ADMITTING | the policy has to ask somebody: until then nothing more of the request is taken
| ADMITTING | ADMIT    | READING   | it has decided; a refusal is answered from there
| READING   | BODY_END | RUNNING   | the handler runs, as a plain function or as a flow
| READING   | STREAM   | STREAMING | the handler runs, and reads the body while it comes
| READING   | ANSWER   | DRAINING  | refused early: the rest of the body is read and thrown away
| STREAMING | BODY_END | RUNNING   | the handler's next read tells it
| STREAMING | ANSWER   | DRAINING  | the same as refused early
| STREAMING | SEND     | DUPLEX    | the head is out while the body still comes; whoever writes may go on reading
| DUPLEX    | BODY_END | SENDING   |
| DUPLEX    | ANSWER   | DRAINING  | the answer is out; what is left of the body is thrown away
| RUNNING   | SEND     | SENDING   | the head is out; the body is a file, or written by a flow
| RUNNING   | ANSWER   | DONE      |
| SENDING   | ANSWER   | DONE      | the body is out. One that cannot be completed cuts the connection
| DRAINING  | BODY_END | DONE      |
| any       | LOST     | DONE      | the connection went away, or became a WebSocket
"""

from __future__ import annotations

from enum import IntEnum, auto
from types import GeneratorType
from typing import TYPE_CHECKING, cast

from svc_proto.basics.errors import Refused, RemoteProtocolError
from svc_proto.commands import Level, ReadFile, ReleaseFile
from svc_proto.engine.date import http_date
from svc_proto.engine.flow import Flow, Task, TaskState, ask
from svc_proto.engine.message import STRANGER, FilePart, Request, Response, Streamed, refused_for
from svc_proto.engine.router import Kind, Route
from svc_proto.engine.socket import Socket, SocketHandler
from svc_proto.engine.stream import BodyStream, ResponseWriter, send_file
from svc_proto.facts import Failure, FailureKind
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

if TYPE_CHECKING:
    from svc_proto.engine.server import ServerChannel

__all__ = ["LIFE", "Exchange", "ExchangeState", "ExchangeTrigger"]

BODILESS = (204, 304)
CLOSE = (b"connection", b"close")
PIECE = 64 * 1024  # bytes of a file that are read at once where it passes the core
SPILL = 16 * 1024  # bytes of a body that are written at once, so that requests behind it may have to wait
PEERS_FAULT = (FailureKind.CANCELLED, FailureKind.UNREACHABLE, FailureKind.TIMED_OUT)


class ExchangeState(IntEnum):
    """Where an exchange is."""

    READING = auto()
    STREAMING = auto()
    RUNNING = auto()
    SENDING = auto()
    DRAINING = auto()
    DONE = auto()
    ADMITTING = auto()
    DUPLEX = auto()


class ExchangeTrigger(IntEnum):
    """What moves it."""

    BODY_END = auto()
    STREAM = auto()
    SEND = auto()
    ANSWER = auto()
    LOST = auto()
    ASK = auto()
    ADMIT = auto()


LIFE: Table[ExchangeState, ExchangeTrigger] = {
    (ExchangeState.READING, ExchangeTrigger.ASK): ExchangeState.ADMITTING,
    (ExchangeState.ADMITTING, ExchangeTrigger.ADMIT): ExchangeState.READING,
    (ExchangeState.READING, ExchangeTrigger.BODY_END): ExchangeState.RUNNING,
    (ExchangeState.READING, ExchangeTrigger.STREAM): ExchangeState.STREAMING,
    (ExchangeState.READING, ExchangeTrigger.ANSWER): ExchangeState.DRAINING,
    (ExchangeState.STREAMING, ExchangeTrigger.BODY_END): ExchangeState.RUNNING,
    (ExchangeState.STREAMING, ExchangeTrigger.ANSWER): ExchangeState.DRAINING,
    (ExchangeState.STREAMING, ExchangeTrigger.SEND): ExchangeState.DUPLEX,
    (ExchangeState.DUPLEX, ExchangeTrigger.BODY_END): ExchangeState.SENDING,
    (ExchangeState.DUPLEX, ExchangeTrigger.ANSWER): ExchangeState.DRAINING,
    (ExchangeState.RUNNING, ExchangeTrigger.SEND): ExchangeState.SENDING,
    (ExchangeState.RUNNING, ExchangeTrigger.ANSWER): ExchangeState.DONE,
    (ExchangeState.SENDING, ExchangeTrigger.ANSWER): ExchangeState.DONE,
    (ExchangeState.DRAINING, ExchangeTrigger.BODY_END): ExchangeState.DONE,
    **{(state, ExchangeTrigger.LOST): ExchangeState.DONE for state in ExchangeState},
}

KIB = 1024
UNANSWERED = (ExchangeState.READING, ExchangeState.STREAMING, ExchangeState.RUNNING)
COMING = (ExchangeState.READING, ExchangeState.STREAMING, ExchangeState.DUPLEX, ExchangeState.DRAINING)
KEEPING = (ExchangeState.READING, ExchangeState.STREAMING, ExchangeState.RUNNING, ExchangeState.DUPLEX)
HALF_SAID = (ExchangeState.DUPLEX, ExchangeState.SENDING)  # nothing but a cut can say that something went wrong


class Exchange:
    """One request on a server channel."""

    __slots__ = (
        "_answered_at",
        "_body",
        "_channel",
        "_full_since",
        "_head",
        "_holder",
        "_incoming",
        "_length",
        "_outgoing",
        "_pattern",
        "_request",
        "_route",
        "_task",
        "begun",
        "heard",
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
        self.begun = self.heard = channel.engine.now.mono  # when its head came, and the last piece of its body
        self._channel = channel
        self._head = head
        self._length = 0  # bytes of body that were announced
        self._pattern = "none"  # of the route, for the log
        self._holder = ""  # while it is among what `Engine.holders` knows
        self._body: list[bytes] = []
        self._answered_at = 0  # bytes of body that came before the answer
        self._incoming: BodyStream | None = None
        self._full_since = 0.0  # when the incoming stream last became full
        self._outgoing: ResponseWriter | None = None
        self._task: Task | None = None

    # --- properties ---

    @property
    def full(self) -> bool:
        """The handler has to read first: take nothing more from the peer."""
        reading = self.state in (ExchangeState.STREAMING, ExchangeState.DUPLEX)
        return reading and self._incoming is not None and self._incoming.full

    @property
    def waits_for_body(self) -> bool:
        """It is the peer's turn: more of the body is to come."""
        return self.state in COMING and not self.full

    @property
    def held(self) -> int:
        """Bytes that are kept of the body, and whole KiB of the head: what everybody says there is no burden."""
        body = self.received if self.state in KEEPING and self.received and self._route.body_limit else 0
        return body + self._head.headers.size // KIB * KIB

    @property
    def _limit(self) -> int:
        return self._route.body_limit or self._channel.limits.max_skipped

    # --- events, called by the channel ---

    def begin(self, route: Route | None, request: Request | None, principal: object) -> None:
        """The head is here, and what `turn.identify` has found."""
        length = self._head.headers.get(b"content-length")
        if length is not None:
            self._length = int(length)  # the wire lets nothing but digits pass
        if route is not None:
            self._route, self._pattern = route, route.pattern
        if request is not None:
            self._request = request
        if isinstance(principal, Exception):
            self._turn_away(principal)
        elif isinstance(principal, GeneratorType):
            self._await_admission(principal)
        else:
            self._admit(principal)

    def go_on(self, route: Route, request: Request, result: object) -> None:
        """The request came whole, and its handler has returned this, or raised it: no answer that is said at once."""
        self._route, self._pattern, self._request = route, route.pattern, request
        self._enter()
        self._step(ExchangeTrigger.BODY_END)
        try:
            self._act(result)
        except Exception as error:
            self._failed(error)

    def data(self, data: bytes) -> None:
        """A piece of the body."""
        self.received += len(data)
        self.heard = self._channel.engine.now.mono
        if self.state is ExchangeState.DRAINING:
            if self.received - self._answered_at > self._channel.limits.max_drain:
                self._channel.shut()
            return
        limit = self._limit
        if self.received > limit:
            self._cut(_too_large(limit))
        elif self._incoming is None:
            if self._route.body_limit:
                self._body.append(data)
        else:
            was_full = self.full
            self._incoming.feed(data)
            if self.full and not was_full:
                self._full_since = self._channel.engine.now.mono

    def end(self) -> None:
        """The request is complete: run its handler, or be done with a refused one."""
        self._step(ExchangeTrigger.BODY_END)
        if self.state is ExchangeState.DONE:
            self._channel.finished(self)
            return
        try:
            self._ask_again()
        except Exception as error:
            self._cut(error)
            return
        if self._incoming is not None:
            self._incoming.end()
            return
        try:
            self._run()
        except Exception as error:
            self._failed(error)

    def writable(self) -> None:
        """The peer has read enough of what was written."""
        if self._outgoing is not None:
            self._outgoing.wake()

    def lost(self) -> None:
        """The connection is gone: stop working for it, and keep nothing of it."""
        self._step(ExchangeTrigger.LOST)
        self._cancel()
        self._task = self._incoming = self._outgoing = None  # which keep this exchange

    def fail(self, refused: Refused) -> None:
        """The peer broke a rule: answer if nothing was answered yet, and stop working for it."""
        if self.state in HALF_SAID:
            self._channel.drop()  # an orderly end could look like the end of the body
        if self.state in UNANSWERED:
            self._send(self._channel.app.refusal(refused, self._head), closing=True)
        self.lost()

    def withdraw(self, refused: Refused) -> None:
        """Who it was admitted for is gone, in this very `handle`. A handler that has done that itself may say so."""
        if self._task is None:
            acts = self.state in (ExchangeState.RUNNING, ExchangeState.STREAMING)
        else:
            acts = self._task.state is TaskState.RUNNING
        if not acts and self.state in (*UNANSWERED, *HALF_SAID):
            self._cut(refused)

    # --- the course of a request ---

    def _await_admission(self, asking: Flow[object]) -> None:
        channel = self._channel
        self._step(ExchangeTrigger.ASK)
        channel.admitting = True
        task = channel.engine.spawn(asking, on_done=self._admitted, on_error=self._not_admitted)
        if self.state is ExchangeState.ADMITTING:
            self._task = task

    def _admitted(self, principal: object) -> None:
        self._decided()
        self._admit(principal)
        self._channel.pump()

    def _not_admitted(self, error: Exception) -> None:
        self._decided()
        self._turn_away(error)
        self._channel.pump()

    def _decided(self) -> None:
        self._step(ExchangeTrigger.ADMIT)
        self._task = None
        self._channel.admitting = False
        self.begun = self.heard = self._channel.engine.now.mono  # the time that it took is not the peer's

    def _admit(self, principal: object) -> None:
        request = self._request
        request.principal = principal
        if principal is not STRANGER:
            self._channel.vouch()
        self._enter()
        try:
            self._check()
        except Exception as error:
            self._turn_away(error)
            return
        if self._route.streamed:
            self._open_stream()

    def _enter(self) -> None:
        self._holder = self._request.holder
        if self._holder:
            self._channel.engine.holders.enter(self._holder, self)

    def _ask_again(self) -> None:
        """A body that took its time: what let it in may have ended. Who would have to ask others is not asked twice."""
        channel, request = self._channel, self._request
        waited = self._incoming is not None or channel.engine.now.mono > self.begun
        if waited and request.principal not in (None, STRANGER):
            again = channel.app.authorize(self._route.access, request)
            if isinstance(again, GeneratorType):
                again.close()

    def _turn_away(self, error: Exception) -> None:
        self._failed(error)
        if self._head.expects_continue:
            self._channel.shut()  # the body may or may not follow now: only a close is clear

    def _check(self) -> None:
        """What can be said of the body, or the handshake, before it is read."""
        head, channel, route = self._head, self._channel, self._route
        if self._length > self._limit:
            raise _too_large(self._limit)
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
        self._act(self._route.handler(request))

    def _act(self, result: object) -> None:
        if isinstance(result, Response | Streamed):
            self._respond(result)
        elif isinstance(result, Exception):
            raise result
        elif isinstance(result, GeneratorType):
            task = self._channel.engine.spawn(result, on_done=self._answered, on_error=self._failed)
            self._task = self._task or task  # there is one if it is over already, and its answer goes on
        else:
            self._open_socket(cast("SocketHandler", result))

    def _open_stream(self) -> None:
        channel = self._channel
        self._step(ExchangeTrigger.STREAM)
        self._incoming = BodyStream(channel.engine, channel.limits.high_water, self._taken)
        self._request.stream = self._incoming
        try:
            self._run()
        except Exception as error:
            self._failed(error)

    def _taken(self) -> None:
        """The handler has read, or will not: go on, and do not count the time that it took."""
        now = self._channel.engine.now.mono
        self.begun += now - self._full_since
        self.heard = now
        self._channel.settle()

    def _open_socket(self, handler: SocketHandler) -> None:
        channel = self._channel
        stranger = self._request.principal is STRANGER
        channel.put(AcceptSocket(self.stream, max_message=channel.limits.stranger_message if stranger else None))
        self._channel.note(self._head, self._pattern, 101, self.begun)
        self._step(ExchangeTrigger.LOST)
        channel.exchanges = {}  # HTTP/1.1 has one at a time; an emptied dict would keep its table
        on_end = channel.socket_note(self._pattern, self.begun)
        socket = channel.sockets[self.stream] = Socket(channel, self.stream, handler, on_end)
        socket.opened()

    def _failed(self, error: Exception) -> None:
        """Refusals and broken rules are answered as they deserve; anything else is a bug."""
        try:
            if isinstance(error, RemoteProtocolError):
                error = refused_for(error)
            if isinstance(error, Refused):
                self._respond(self._channel.app.refusal(error, self._head))
                return
        except Exception as bug:
            error = bug
        self._crash(error)

    def _crash(self, error: Exception) -> None:
        engine = self._channel.engine
        reference = engine.bug(error)
        if self.state in HALF_SAID:
            self._channel.drop()  # an orderly end could look like the end of the body
            return
        try:
            if self.state in UNANSWERED:
                problem = Refused(500, "internal_error", f"internal error, reference {reference}")
                self._send(self._channel.app.refusal(problem, self._head), closing=True)
            self.lost()
            self._channel.shut()
        except Exception as another:
            engine.bug(another)
            self._channel.drop()

    def _answered(self, result: Response | Streamed) -> None:
        try:
            self._respond(result)
        except Exception as error:
            self._crash(error)

    # --- the answer ---

    def _respond(self, answer: Response | Streamed) -> None:
        if isinstance(answer, Streamed):
            self._deliver(self._produce(answer))
        elif answer.file is not None:
            self._deliver(self._send_file(answer, answer.file))
        else:
            self._send(answer, closing=self._closing())
            self._complete()

    def _deliver(self, flow: Flow[bool]) -> None:
        self._task = self._channel.engine.spawn(flow, on_done=self._delivered, on_error=self._crash)

    def _delivered(self, whole: bool) -> None:
        if not whole:
            self._channel.drop()
            return
        self._channel.put(ResponseEnd(self.stream))
        self._complete()

    def _complete(self) -> None:
        was_full, self._answered_at = self.full, self.received
        self._step(ExchangeTrigger.ANSWER)
        if was_full:
            self._taken()
        if self.state is ExchangeState.DONE:
            self._channel.finished(self)
        elif self._too_much_to_come():
            self._channel.shut()  # as was said in the head: what still comes is thrown away during the linger

    def _closing(self) -> bool:
        channel = self._channel
        return channel.engine.stopping or (channel.eof and not channel.conn.paused) or self._too_much_to_come()

    def _too_much_to_come(self) -> bool:
        return self.state in COMING and self._length - self.received > self._channel.limits.max_drain

    def _send(self, response: Response, *, closing: bool) -> None:
        channel = self._channel
        if not closing and channel.say(self._head, self._pattern, response):
            return
        body = b"" if response.status in BODILESS else response.body
        self._send_head(response, length=len(body), closing=closing)
        if body:
            channel.conn.send(ResponseData(self.stream, body))
        channel.conn.send(ResponseEnd(self.stream))
        if len(body) >= SPILL:
            channel.spill()

    def _send_head(self, answer: Response | Streamed, *, length: int | None, closing: bool) -> None:
        channel, status = self._channel, answer.status
        fields = [(b"date", http_date(channel.engine.now.wall)), *channel.app.fields(self._head), *answer.headers]
        if length is not None and status not in BODILESS:
            fields.append((b"content-length", b"%d" % length))
        if closing and self.stream:  # the answer on stream 0 closes by itself
            fields.append(CLOSE)
        channel.put(ResponseHead(self.stream, status, Headers(fields)))
        channel.note(self._head, self._pattern, status, self.begun)

    def _begin_body(self, answer: Response | Streamed, *, length: int | None) -> None:
        following = step(LIFE, self.state, ExchangeTrigger.SEND)
        self._send_head(answer, length=length, closing=self._closing())
        self.state = following

    def _send_file(self, response: Response, file: FilePart) -> Flow[bool]:
        channel = self._channel
        try:
            self._begin_body(response, length=file.length)
            if self._head.method == "HEAD":
                return True
            outcome = yield from (send_file(channel, self.stream, file) if channel.alone else self._copy_file(file))
        finally:
            channel.engine.emit(ReleaseFile(file.handle))
        if isinstance(outcome, Failure) and outcome.kind not in PEERS_FAULT:
            channel.engine.log(Level.WARNING, "file not sent", route=self._pattern, problem=outcome.kind.value)
        return outcome is None

    def _copy_file(self, file: FilePart) -> Flow[Failure | None]:
        """Through the core, a piece at a time: on this connection others are talking too."""
        channel, offset, left = self._channel, file.offset, file.length
        writer = self._outgoing = ResponseWriter(channel, self.stream)
        while left:
            order = ReadFile(channel.engine.new_op(), file.handle, offset, min(left, PIECE))
            data = yield from ask(channel.engine, order, within=channel.limits.write_timeout)
            if isinstance(data, Failure):
                return data
            if not data:
                return Failure(FailureKind.INVALID, "the file is shorter than it was")
            writer.write(data)
            yield from writer.drained()
            offset, left = offset + len(data), left - len(data)
        return None

    def _produce(self, answer: Streamed) -> Flow[bool]:
        self._begin_body(answer, length=None)
        if self._head.method != "HEAD":
            self._outgoing = ResponseWriter(self._channel, self.stream)
            yield from answer.producer(self._outgoing)
        return True

    # --- helpers ---

    def _cut(self, error: Exception) -> None:
        """Nothing more is done for this request, whatever it has come to."""
        self._cancel()
        if self.state in HALF_SAID:
            self._channel.drop()  # an orderly end could look like the end of the body
        else:
            self._failed(error)

    def _cancel(self) -> None:
        self._body = []
        if self._task is not None:
            self._task.cancel()

    def _step(self, trigger: ExchangeTrigger) -> None:
        self.state = step(LIFE, self.state, trigger)
        if self._holder and self.state is ExchangeState.DONE:
            self._channel.engine.holders.leave(self._holder, self)
            self._holder = ""


def _too_large(limit: int) -> Refused:
    return Refused(413, "body_too_large", f"the body may have at most {limit} bytes", extra={"limit": limit})
