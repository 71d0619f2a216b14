"""Streamable HTTP of the Model Context Protocol: POST brings a message, GET tells events, DELETE ends a session.

An answer is JSON, unless something is said before it (progress, a question) or it takes longer than `DEFER`: then it is
a stream of server-sent events. A connection that ends cancels a call in the stateless way (2026-07-28); with a
session the call goes on, and its events may be read on by GET with `Last-Event-ID`.

A request's `holder` says whose a session is; the policy has set it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from svc_proto.basics.errors import Refused
from svc_proto.engine.flow import Flow, Later
from svc_proto.engine.message import Request, Response, Streamed, empty_response
from svc_proto.mcp.answers import Answers, Offer
from svc_proto.mcp.http_rules import EVENT_STREAM, JSON, SESSION_ID, STATUSES, accept, is_stateless, with_handshake
from svc_proto.mcp.http_sessions import HttpSessions, Talk
from svc_proto.schema import mcp_messages
from svc_proto.schema.json_rpc import INVALID_REQUEST, RpcError, write_error
from svc_proto.schema.mcp_messages import parse
from svc_proto.wire.events import Headers

if TYPE_CHECKING:
    from svc_proto.engine.core import Engine
    from svc_proto.engine.stream import ResponseWriter
    from svc_proto.mcp.http_stream import ReplayLog

__all__ = ["McpServer"]

DEFER = 5.0  # s after which an answer becomes a stream, so that nobody on the way takes the connection for dead
MAX_CALLERS = 64  # whose offers are kept ready
EVENTS = (
    (b"content-type", EVENT_STREAM),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
)
_EVENT_ID = re.compile(rb"([0-9]{1,9})-([0-9]{1,9})")

Answered: TypeAlias = Response | Streamed | Later


class McpServer:
    """The three methods of one path. `offer` is what a caller gets, by the principal of his request."""

    def __init__(self, engine: Engine, offer: Callable[[object], Offer]) -> None:
        self._engine = engine
        self._make_offer = offer
        self._answers: dict[str, Answers] = {}  # by caller, those who called last at the end
        self._deferred: dict[_Deferred, float] = {}  # until when, oldest first
        self._timer = engine.timers.timer(self._defer)
        self.sessions = HttpSessions(engine)

    # --- routes ---

    def post(self, request: Request) -> Answered:
        """`POST`: take one message, and answer it if it is a request."""
        headers = request.headers
        accept(headers, JSON, EVENT_STREAM)
        kind = headers.get(b"content-type") or b""
        if kind != JSON and kind.partition(b";")[0].strip().lower() != JSON:
            raise Refused(415, "unsupported_media_type", "a message is application/json")
        asked = None  # what has to be answered
        try:
            message = parse(request.body)
            asked = message if isinstance(message, mcp_messages.RpcRequest) else None
            stateless = is_stateless(headers, message)
        except RpcError as error:
            return _failed(error, None if asked is None else asked.identity)
        identity = headers.get(SESSION_ID)
        if asked is None:
            if not stateless:  # else there is nothing that a note could be about
                self.sessions.find(request.holder, identity).conversation.take(message)
            return empty_response(202)
        if stateless:
            talk = Talk(self._engine, self._answers_for(request))
        elif identity is None and asked.method == "initialize":
            return self._open(request, asked)
        else:
            talk = self.sessions.find(request.holder, identity)
        if talk.asks(asked.identity):
            return _failed(RpcError(INVALID_REQUEST, "a request of this id is under way"), asked.identity)
        return self._answer(talk, talk.ask(asked))

    def get(self, request: Request) -> Streamed:
        """What is said without a request; or with `Last-Event-ID` what comes after that event."""
        headers = request.headers
        with_handshake(headers)
        accept(headers, EVENT_STREAM)
        session = self.sessions.find(request.holder, headers.get(SESSION_ID))
        last = headers.get(b"last-event-id", b"0-%d" % session.notices.told)
        named = _EVENT_ID.fullmatch(last or b"")
        log = None if named is None else session.logs.get(int(named[1]))
        if named is None or log is None:
            raise Refused(400, "unknown_event", "this event is not known, or not any more")
        return Streamed(200, Headers(EVENTS), partial(log.tell, after=int(named[2])))

    def delete(self, request: Request) -> Response:
        """The caller has had enough."""
        with_handshake(request.headers)
        self.sessions.end(self.sessions.find(request.holder, request.headers.get(SESSION_ID)))
        return empty_response(204)

    # --- for the service ---

    def end_of(self, caller: str) -> None:
        """What let a caller in is over."""
        self._answers.pop(caller, None)
        self.sessions.end_of(caller)

    def stop(self) -> None:
        """The process will end."""
        self.sessions.end_of()

    # --- helpers ---

    def _answers_for(self, request: Request) -> Answers:
        answers = self._answers.pop(request.holder, None)
        if answers is None:
            answers = Answers(self._engine, self._make_offer(request.principal))
        self._answers[request.holder] = answers
        if len(self._answers) > MAX_CALLERS:
            del self._answers[next(iter(self._answers))]
        return answers

    def _open(self, request: Request, message: mcp_messages.RpcRequest) -> Response:
        session = self.sessions.open(request.holder, self._answers_for(request))
        log = session.ask(message)
        if log.code:
            self.sessions.end(session)
            return _json(STATUSES[log.code], log.answer or b"")
        return _json(200, log.answer or b"", (SESSION_ID, session.identity.encode("ascii")))

    def _answer(self, talk: Talk, log: ReplayLog) -> Answered:
        if log.begun:
            return _found((talk, log))
        until = self._engine.now.mono + DEFER
        if self._timer.when is None:
            self._timer.set(until)
        return _Deferred(self._deferred, until, talk, log)

    def _defer(self) -> None:
        """What has taken so long is told as events."""
        for deferred, until in list(self._deferred.items()):
            if until > self._engine.now.mono:
                self._timer.set(until)
                break
            deferred.give(None)


class _Deferred(Later):
    """An answer that has to wait for its first word, or for `DEFER`; those that do are in a table."""

    __slots__ = ("_log", "_table", "_talk")

    def __init__(self, table: dict[_Deferred, float], until: float, talk: Talk, log: ReplayLog) -> None:
        super().__init__(_found)
        self._talk = talk
        self._log = log
        self._table = table
        table[self] = until
        log.on_word = self.give

    def give(self, outcome: object) -> bool:
        """There is a word, or there is none by now."""
        self._table.pop(self, None)
        return super().give((self._talk, self._log))

    def cancel(self) -> None:
        """The connection has ended."""
        self._table.pop(self, None)
        super().cancel()
        self._talk.left()


def _found(waited: tuple[Talk, ReplayLog]) -> Response | Streamed:
    """An answer in one piece, if it can be given so, else events."""
    talk, log = waited
    log.on_word = None
    text = log.answer
    if text is None:
        return Streamed(200, Headers(EVENTS), partial(_tell, talk, log, talk.number(log)))
    return _json(talk.status(log), text) if text else empty_response(202)  # it was cancelled


def _tell(talk: Talk, log: ReplayLog, greet: bool, writer: ResponseWriter) -> Flow[None]:
    try:
        yield from log.tell(writer, 0, greet=greet)
    finally:
        talk.left()


def _failed(error: RpcError, identity: mcp_messages.RequestId | None = None) -> Response:
    return _json(STATUSES[error.code], write_error(error, identity))


def _json(status: int, text: bytes, *fields: tuple[bytes, bytes]) -> Response:
    return Response(status, Headers([(b"content-type", JSON), *fields]), text)
