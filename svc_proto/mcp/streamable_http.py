"""Streamable HTTP of the Model Context Protocol: POST sends a message, GET reads events, DELETE ends a session.

An answer is JSON. If another message precedes it (progress, a question), or it takes longer than `STREAM_AFTER`, it is
a stream of server-sent events. In the stateless mode (2026-07-28) the end of the connection cancels the call. In a
session the call goes on, and GET with `Last-Event-ID` resumes its stream, if that had begun.

A session belongs to the `credential_id` of the request that opened it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from svc_proto.basics.errors import Refused
from svc_proto.engine.body_streams import ResponseWriter
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Deferred, Flow
from svc_proto.engine.message import JSON_ALONE, Request, Response, StreamedResponse, empty_response
from svc_proto.mcp.event_store import EventStore, NotificationStore
from svc_proto.mcp.http_headers import (
    EVENT_STREAM,
    JSON,
    SESSION_ID,
    STATUSES,
    USUAL,
    require_accept,
    require_session_version,
    stateless_context,
)
from svc_proto.mcp.http_sessions import HttpSession, HttpSessionRegistry
from svc_proto.mcp.pending_request import OutgoingMessage, PendingRequest
from svc_proto.mcp.server_features import RequestHandlers, ServerFeatures
from svc_proto.schema.json_rpc import INVALID_REQUEST, RpcError, write_error
from svc_proto.schema.mcp_messages import RequestId, RpcRequest, parse_mcp_message
from svc_proto.wire.events import Headers

__all__ = ["McpHttpServer"]

STREAM_AFTER = 5.0  # s after which an answer becomes a stream, so that no proxy considers the connection dead
MAX_PRINCIPALS = 64  # principals whose handlers are kept
EVENTS = (
    (b"content-type", EVENT_STREAM),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
)
_EVENT_ID = re.compile(rb"([0-9]{1,9})-([0-9]{1,9})")

Answered: TypeAlias = Response | StreamedResponse | Deferred


class McpHttpServer:
    """MCP server at one HTTP path, for POST, GET and DELETE. `offer` returns the features for a request's principal."""

    def __init__(self, engine: Engine, offer: Callable[[object], ServerFeatures]) -> None:
        self._engine = engine
        self._make_offer = offer
        self._answers: dict[str, RequestHandlers] = {}  # by credential, the latest caller last
        self._waiting: dict[_PendingReply, float] = {}  # deadlines, oldest first
        self._timer = engine.timers.timer(self._defer)
        self.sessions = HttpSessionRegistry(engine)

    # --- routes ---

    def post(self, request: Request) -> Answered:
        """Handle `POST`: one message, and its answer if the message is a request.

        Raises `Refused` 406 or 415 for media types, 400 or 404 for a missing or unknown session, 429 or 503 at the
        limits of sessions.
        """
        fields = request.fields
        if fields.get(b"accept") != USUAL:
            require_accept(request.headers, JSON, EVENT_STREAM)
        kind = fields.get(b"content-type", b"")
        if kind != JSON and kind.partition(b";")[0].strip().lower() != JSON:
            raise Refused(415, "unsupported_media_type", "a message is application/json")
        rpc_request = None  # the request to answer
        try:
            message = parse_mcp_message(request.body)
            rpc_request = message if isinstance(message, RpcRequest) else None
            context = stateless_context(request, message)
        except RpcError as error:
            return _failed(error, None if rpc_request is None else rpc_request.identity)
        reply = _PendingReply(self._engine, self._waiting)
        if context is not None:
            if rpc_request is None:
                return empty_response(202)  # a notification has no session that it could refer to
            call = PendingRequest(self._engine, self._answers_for(request), rpc_request, context, reply.receive)
            reply.call = call
            call.start()
        else:
            identity = fields.get(SESSION_ID)
            if identity is None and rpc_request is not None and rpc_request.method == "initialize":
                return self._open(request, rpc_request)
            session = self.sessions.find(request.credential_id, identity)
            if rpc_request is None:
                session.conversation.handle_message(message)
                return empty_response(202)
            if session.conversation.has_pending(rpc_request.identity):
                return _failed(RpcError(INVALID_REQUEST, "a request of this id is under way"), rpc_request.identity)
            reply.session = session
            session.conversation.handle_request(rpc_request, reply.receive)
        if reply.answer is not None:
            return reply.answer
        self._waiting[reply] = until = self._engine.now.mono + STREAM_AFTER
        if self._timer.when is None:
            self._timer.set(until)
        return reply

    def get(self, request: Request) -> StreamedResponse:
        """Stream messages outside of requests; with `Last-Event-ID` resume the stream of that event, after that event.

        If that event was dropped from its stream, the response may end without events. Raises `Refused` 400 for an
        invalid event id or one of a stream that is not stored, and as `require_session_version`, `require_accept`
        and `HttpSessionRegistry.find`.
        """
        headers = request.headers
        require_session_version(headers)
        require_accept(headers, EVENT_STREAM)
        session = self.sessions.find(request.credential_id, headers.get(SESSION_ID))
        last = headers.get(b"last-event-id", b"0-%d" % session.notices.last_received)
        named = _EVENT_ID.fullmatch(last or b"")
        log = None if named is None else session.logs.get(int(named[1]))
        if named is None or log is None:
            raise Refused(400, "unknown_event", "this event is not known, or not any more")
        return StreamedResponse(200, Headers(EVENTS), partial(log.stream_to, after=int(named[2])))

    def delete(self, request: Request) -> Response:
        """Handle `DELETE`: end the session that the request names.

        Raises `Refused` as `require_session_version` and `HttpSessionRegistry.find`.
        """
        require_session_version(request.headers)
        self.sessions.end(self.sessions.find(request.credential_id, request.headers.get(SESSION_ID)))
        return empty_response(204)

    # --- for the service ---

    def close_principal_sessions(self, caller: str) -> None:
        """End the sessions and listening requests of a credential, which is revoked or has lost its grant."""
        answers = self._answers.pop(caller, None)
        if answers is not None:
            answers.stop()
        self.sessions.close_principal_sessions(caller)

    def stop(self) -> None:
        """End listening requests at once, and sessions after the answers to their requests."""
        for answers in self._answers.values():
            answers.stop()
        self.sessions.stop()

    # --- helpers ---

    def _answers_for(self, request: Request) -> RequestHandlers:
        answers = self._answers.pop(request.credential_id, None)
        if answers is None:
            answers = RequestHandlers(self._engine, self._make_offer(request.principal))
        self._answers[request.credential_id] = answers
        if len(self._answers) > MAX_PRINCIPALS:
            others = [*self._answers][:-1]
            silent = (caller for caller in others if not self._answers[caller].listening)
            self._answers.pop(next(silent, others[0])).stop()
        return answers

    def _open(self, request: Request, message: RpcRequest) -> Response:
        session = self.sessions.open(request.credential_id, self._answers_for(request))
        outgoing_messages: list[OutgoingMessage] = []
        session.conversation.handle_request(message, outgoing_messages.append)
        (outgoing,) = outgoing_messages
        if outgoing.code:
            self.sessions.end(session)
            return _json(STATUSES[outgoing.code], outgoing.text)
        return _json(200, outgoing.text, (SESSION_ID, session.identity.encode("ascii")))

    def _defer(self) -> None:
        """Turn answers that have taken too long into event streams."""
        for reply, until in list(self._waiting.items()):
            if until > self._engine.now.mono:
                self._timer.set(until)
                break
            reply.stream()


class _PendingReply(Deferred):
    """Reply to one POST: a single response, or an event stream."""

    __slots__ = ("_engine", "_gone", "_log", "_waiting", "answer", "call", "session")

    def __init__(self, engine: Engine, waiting: dict[_PendingReply, float]) -> None:
        self._on_result = None
        self.answer: Response | StreamedResponse | None = None
        self.call: PendingRequest | None = None  # cancelled with the connection
        self.session: HttpSession | None = None  # None in the stateless mode; in a session the client may resume
        self._engine = engine
        self._waiting = waiting
        self._log: EventStore | None = None
        self._gone = False

    def receive(self, outgoing: OutgoingMessage) -> None:
        """Pass a message about the request on: the answer alone as a response, else as an event of a stream.

        A call that ends without an answer, and before a stream, gets status 202. If the connection ended before the
        response, messages are dropped.
        """
        log = self._log
        if outgoing.final:
            self.call = None
        if self._gone:
            return
        if log is not None:
            log.append(outgoing)
            if outgoing.final and self.session is not None:
                self.session.on_stream_ended(log)
        elif not outgoing.final:
            self.stream(NotificationStore if outgoing.notes else EventStore).append(outgoing)
        elif not outgoing.text:
            self._send(empty_response(202))  # the call was cancelled
        else:  # in a session the error is part of the answer, and the status is 200
            good = not outgoing.code or self.session is not None
            self._send(Response(200 if good else STATUSES.get(outgoing.code, 200), JSON_ALONE, outgoing.text))

    def stream(self, kind: type[EventStore] = EventStore) -> EventStore:
        """Answer with an event stream from now on."""
        log = self._log = kind(self._engine)
        greet = self.session is not None and self.session.number(log)
        self._send(StreamedResponse(200, Headers(EVENTS), partial(self._stream, log, greet)))
        return log

    def cancel(self) -> None:
        """Cancel the reply, and in the stateless mode its call: the connection ended before the response."""
        self._waiting.pop(self, None)
        self._gone = True
        super().cancel()
        self._on_client_left()

    def _send(self, answer: Response | StreamedResponse) -> None:
        on_result, self._on_result = self._on_result, None
        if on_result is None:  # the caller does not wait yet
            self.answer = answer
        else:
            del self._waiting[self]
            on_result(answer)

    def _stream(self, log: EventStore, greet: bool, writer: ResponseWriter) -> Flow[None]:
        try:
            yield from log.stream_to(writer, 0, greet=greet)
        finally:
            self._on_client_left()

    def _on_client_left(self) -> None:
        call, self.call = self.call, None
        if call is not None:
            call.cancel()


def _failed(error: RpcError, identity: RequestId | None = None) -> Response:
    return _json(STATUSES[error.code], write_error(error, identity))


def _json(status: int, text: bytes, *fields: tuple[bytes, bytes]) -> Response:
    return Response(status, Headers((*JSON_ALONE, *fields)) if fields else JSON_ALONE, text)
