"""HTTP exchange: access check before the body, limits while the body arrives, the handler, and at most one response."""

from __future__ import annotations

from types import GeneratorType
from typing import TYPE_CHECKING, cast

from svc_proto.basics.errors import Refused, RemoteProtocolError
from svc_proto.basics.metrics import UNMATCHED_LABEL
from svc_proto.basics.sanitize import sanitize_line
from svc_proto.commands import Level
from svc_proto.engine.body_streams import BodyStream, ResponseWriter
from svc_proto.engine.flow import Deferred, Task
from svc_proto.engine.message import ANONYMOUS, Request, Response, StreamedResponse, refusal_of
from svc_proto.engine.responses import (
    send_file_response,
    send_response,
    send_response_head,
    send_streamed_response,
    try_send_simple,
)
from svc_proto.engine.router import Route, RouteKind, path_of_label
from svc_proto.engine.websocket import WebSocketHandler
from svc_proto.machines.exchange import (
    BODY_BUFFERED,
    BODY_EXPECTED,
    EXCHANGE_TABLE,
    RESPONSE_STARTED,
    UNANSWERED,
    ExchangeState,
    ExchangeTrigger,
)
from svc_proto.wire.events import AcceptWebSocket, Informational, RequestHead, ResponseEnd
from svc_proto.wire.websocket_handshake import handshake_problem

if TYPE_CHECKING:
    from svc_proto.engine.server_channel import ServerChannel

__all__ = ["Exchange"]

RESPONSES = (Response, StreamedResponse)
ACCEPTED_CODINGS = ((b"accept-encoding", b"identity"),)  # of request bodies, RFC 9110 section 15.5.16
MAX_CODING = 40  # characters of a coding in an error text
# Aliases: finding an Enum member is slow in Python 3.11.
_BODY_END, _ANSWER, _DONE = ExchangeTrigger.BODY_END, ExchangeTrigger.ANSWER, ExchangeState.DONE
_READING, _RUNNING = ExchangeState.READING, EXCHANGE_TABLE[ExchangeState.READING, _BODY_END]


class Exchange:
    """A request on a server channel, with the states of `machines.exchange`.

    `route` and `request` are None if the channel could not find or make them; an admitted request has both.
    """

    __slots__ = (
        *("_received_before_response", "_body", "_incoming", "_length", "_request", "_route", "_task"),
        *("begun", "channel", "head", "last_data_at", "label", "outgoing", "received", "state", "stream"),
    )

    def __init__(
        self, channel: ServerChannel, head: RequestHead, route: Route | None = None, request: Request | None = None
    ) -> None:
        self.channel, self.head, self.stream = channel, head, head.stream
        self._route: Route = route  # type: ignore[assignment]  # both are set from the admission on
        self._request: Request = request  # type: ignore[assignment]  # as above
        self.label = UNMATCHED_LABEL if route is None else route.label  # for the log and the metrics
        self.state = _READING
        # monotonic seconds of the head, and of the last piece of the body
        self.begun = self.last_data_at = channel.engine.now.mono
        self.received = self._length = 0  # bytes of body: received, and announced
        self._received_before_response = 0  # bytes of body received before the response
        self._body: list[bytes] = []
        self._incoming: BodyStream | None = None
        self.outgoing: ResponseWriter | None = None
        self._task: Task | Deferred | None = None

    # --- properties ---

    @property
    def full(self) -> bool:
        """Report whether too much is unread of a streamed body that still arrives, so that its peer is not read."""
        incoming, reading = self._incoming, self.state in (ExchangeState.STREAMING, ExchangeState.DUPLEX)
        return incoming is not None and reading and incoming.full_since is not None

    @property
    def waits_for_body(self) -> bool:
        """Report whether the peer has to send more of the body; False while `full`."""
        return self.state in BODY_EXPECTED and not self.full

    @property
    def ends_with_peer(self) -> bool:
        """Report whether the request ends when the peer closes its end before the response is complete.

        The route or the request decides that, once the request has arrived whole; before, the result is False. A stream
        whose producer sends probes continues: its probes find out whether the peer is gone.
        """
        if self.outgoing is not None and self.outgoing.on_half_close is not None:
            return False
        stops = self._route.stops_with_client or self._request.stops_with_client
        return self.state in (ExchangeState.RUNNING, ExchangeState.SENDING) and stops

    @property
    def buffered_bytes(self) -> int:
        """Bytes of the body received so far, and whole KiB of the head; heads under 1 KiB are too usual to count.

        The body counts, also where a handler has read it already, until its response is complete or, for a request that
        has arrived whole, has begun. A body that is discarded does not count.
        """
        body = self.received if self.state in BODY_BUFFERED and self.received and self._route.body_limit else 0
        return body + self.head.headers.size // 1024 * 1024

    # --- events, called by the channel ---

    def begin(self, principal: object) -> None:
        """Start with the head; `principal` is the result of `ServerChannel._identify`: a flow is run for its result."""
        self._length = int(self.head.headers.get(b"content-length") or 0)  # the wire layer lets only digits pass
        if not isinstance(principal, GeneratorType):
            self._admit(principal)
            return
        self._step(ExchangeTrigger.ASK)
        self.channel.admitting = True
        task = self.channel.engine.spawn(principal, on_done=self._policy_done, on_error=self._policy_done)
        if self.state is ExchangeState.ADMITTING:
            self._task = task

    def continue_with(self, result: object) -> None:
        """Handle the result or exception of a handler that was called already, for a request that arrived whole."""
        self._register_revocable()
        self.state = _RUNNING
        self._handle_result(result)

    def data(self, data: bytes) -> None:
        """Store a piece of the body, pass it to the handler's stream, or discard it.

        Refuse a body over the limit, or abort the channel if a response has begun. Close the channel if too much was
        discarded after the response.
        """
        self.received += len(data)
        self.last_data_at = self.channel.engine.now.mono
        if self.state is ExchangeState.DRAINING:
            if self.received - self._received_before_response > self.channel.limits.max_drain:
                self.channel.close_gracefully()
            return
        if self.received > self._limit:
            self._stop_with(self._too_large())
        elif self._incoming is None:
            if self._route.body_limit:
                self._body.append(data)
        else:
            self._incoming.feed(data)

    def end(self) -> None:
        """Handle the end of the request: run its handler, end its body stream, or finish an answered request.

        If the body took time or is streamed, the access policy is called again before the first two, unless the
        principal is None or `ANONYMOUS`. If the policy raises, the request is refused, or the channel is aborted if a
        response has begun. A flow that the policy returns is not run.
        """
        self._step(_BODY_END)
        if self.state is _DONE:
            self.channel.finished()
            return
        try:
            self._recheck_access()
        except Exception as error:
            self._stop_with(error)
            return
        if self._incoming is not None:
            self._incoming.end()
        else:
            self._run()

    def half_close(self) -> None:
        """Handle that the peer has closed its end, if the request has arrived whole; else do nothing.

        Abort the channel if `ends_with_peer`; otherwise report the end to the producer of the response, if there is
        one.
        """
        if self.state in (ExchangeState.RUNNING, ExchangeState.SENDING):
            self._request.half_closed = True
            if self.ends_with_peer:
                self.channel.abort()
            elif self.outgoing is not None:
                self.outgoing.half_close()

    def lost(self) -> None:
        """End the exchange without a response: cancel the flow of its policy, handler or response."""
        self._step(ExchangeTrigger.LOST)
        self._cancel()
        self._task = self._incoming = self.outgoing = None  # each of them references this exchange

    def fail(self, refused: Refused) -> None:
        """Respond with an error, or abort the channel if a response has begun; then stop all work and close.

        After a complete response, or while the policy decides, close without a further response.
        """
        if self.state in RESPONSE_STARTED:
            self.channel.abort()  # an orderly end could look like the end of the body
        if self.state in UNANSWERED:
            send_response(self, self.channel.app.error_response(refused, self.head), closing=True)
        self.lost()
        self.channel.close_gracefully()

    def revoke(self, refused: Refused) -> None:
        """End the request because its credential was revoked: refuse it, or abort a response that has begun.

        A handler that is running now, and so caused the revocation, may still respond.
        """
        acts = (
            self.state in (ExchangeState.RUNNING, ExchangeState.STREAMING)
            if self._task is None
            else self._task.is_running
        )
        if not acts and self.state in (*UNANSWERED, *RESPONSE_STARTED):
            self._stop_with(refused)

    # --- the course of a request ---

    def _policy_done(self, principal: object) -> None:
        self._step(ExchangeTrigger.ADMIT)
        self._task = None
        # The policy's time does not count against the peer.
        self.begun = self.last_data_at = self.channel.engine.now.mono
        self._admit(principal)
        self.channel.admitting = False  # not earlier: bytes received meanwhile must go to their final destination
        self.channel.process_events()

    def _admit(self, principal: object) -> None:
        """Admit the request; refuse it if the lookup or the policy raised, or the announced body or handshake is wrong.

        The handler of a streamed route starts here.
        """
        try:
            if isinstance(principal, Exception):
                raise principal
            self._request.principal = principal
            if principal is not ANONYMOUS:
                self.channel.mark_authenticated()
            self._register_revocable()
            self._check_head()
        except Exception as error:
            self._failed(error)
            if self.head.expects_continue:
                self.channel.close_gracefully()  # the body may or may not follow now: only a close is unambiguous
            return
        if self._route.streamed:
            self._step(ExchangeTrigger.STREAM)
            self._incoming = BodyStream(self.channel.engine, self.channel.limits.high_water, self._body_read)
            self._request.stream = self._incoming
            self._run()

    def _register_revocable(self) -> None:
        if self._request.credential_id:
            self.channel.engine.revocables[self] = self._request.credential_id

    def _recheck_access(self) -> None:
        """Call the access policy again if the body took time or is streamed, since the credential may have ended.

        Raise what the policy raises. It is not called if the principal is None or `ANONYMOUS`, and a flow that it
        returns is not run.
        """
        channel, request = self.channel, self._request
        waited = self._incoming is not None or channel.engine.now.mono > self.begun
        if waited and request.principal not in (None, ANONYMOUS):
            principal = channel.app.authorize(self._route.access, request)
            if isinstance(principal, GeneratorType):
                principal.close()

    def _check_head(self) -> None:
        """Raise `Refused` if the announced body or the WebSocket handshake is unacceptable.

        Otherwise send 100 Continue if the client expects it.
        """
        head, channel, route = self.head, self.channel, self._route
        if self._length > self._limit:
            raise self._too_large()
        coding = head.headers.get(b"content-encoding")
        if coding is not None and route.body_limit and head.headers.tokens(b"content-encoding") != [b"identity"]:
            name = sanitize_line(coding.decode("latin-1"), MAX_CODING)
            text = f"the body has the coding {name!r}, which is not supported: send it without Content-Encoding"
            raise Refused(415, "unsupported_media_type", text, headers=ACCEPTED_CODINGS)
        if route.kind is RouteKind.WEBSOCKET and not head.websocket:
            status, problem, headers = handshake_problem(head) or (400, "this path speaks WebSocket", ())
            raise Refused(status, "upgrade_required", problem, headers=tuple(headers))
        if head.expects_continue:
            channel.send_event(Informational(self.stream, 100))

    def _run(self) -> None:
        request = self._request
        request.body, self._body = b"".join(self._body), []  # a single piece is not copied
        result: object
        try:
            result = self._route.handler(request)
        except Exception as error:
            result = error
        self._handle_result(result)

    def _handle_result(self, result: object) -> None:
        try:
            if isinstance(result, Deferred):
                self._task = result
                result.then(self._handle_result)
            elif isinstance(result, RESPONSES):
                self._respond(result)
            elif isinstance(result, Exception):
                self._failed(result)
            elif isinstance(result, GeneratorType):
                self._request.half_closed = self.channel.is_half_closed
                task = self.channel.engine.spawn(result, on_done=self._handle_result, on_error=self._failed)
                self._task = self._task or task  # already set if the flow has ended and its response continues
            else:
                self._open_socket(cast("WebSocketHandler", result))
        except Exception as error:
            self._failed(error)

    def _body_read(self, since: float) -> None:
        """Resume reading from the peer after a pause that began at `since`.

        The pause does not count for the deadlines of the body.
        """
        now = self.channel.engine.now.mono
        self.begun += now - since
        self.last_data_at = now
        self.channel.after_events()

    def _open_socket(self, handler: WebSocketHandler) -> None:
        channel = self.channel
        unauthenticated = self._request.principal is ANONYMOUS
        channel.send_event(
            AcceptWebSocket(
                self.stream, max_message=channel.limits.unauthenticated_message if unauthenticated else None
            )
        )
        begun, route = self.begun, path_of_label(self.label)
        channel.log_request("request", begun, method=self.head.method, route=route, status=101)
        channel.engine.counts.answers[self.label][101] += 1
        self._step(ExchangeTrigger.LOST)
        channel.exchange = None
        frames = None if channel.own_connection is None else channel.own_connection.detach_websocket()
        socket = channel.switch_to_websocket(self.stream, handler, frames)
        if channel.engine.log_level <= Level.DEBUG:
            socket.on_end = lambda code: channel.log_request("socket", begun, route=route, code=code)
        socket.deliver_open()

    def _failed(self, error: Exception) -> None:
        """Respond to a refusal or a protocol error; log any other error as a bug, and `fail` with status 500."""
        try:
            if isinstance(error, RemoteProtocolError):
                error = refusal_of(error)
            if isinstance(error, Refused):
                self._respond(self.channel.app.error_response(error, self.head))
                return
        except Exception as bug:
            error = bug
        self._respond_to_bug(error)

    def _respond_to_bug(self, error: Exception) -> None:
        engine = self.channel.engine
        reference = engine.log_bug(error)
        try:
            self.fail(Refused(500, "internal_error", f"internal error, reference {reference}"))
        except Exception as another:
            engine.log_bug(another)
            self.channel.abort()

    # --- the answer ---

    def _respond(self, response: Response | StreamedResponse) -> None:
        if not isinstance(response, StreamedResponse) and response.file is None:
            channel = self.channel
            if channel.engine.stopping or not try_send_simple(channel, self.head, self.label, response, self.begun):
                send_response(self, response, closing=self._closing(self.state))
            self._complete()
            return
        flow = (
            send_streamed_response(self, response)
            if isinstance(response, StreamedResponse)
            else send_file_response(self, response)
        )
        self._task = self.channel.engine.spawn(flow, on_done=self._on_body_sent, on_error=self._respond_to_bug)

    def _on_body_sent(self, whole: bool) -> None:
        if not whole:
            self.channel.abort()
            return
        self.channel.send_event(ResponseEnd(self.stream))
        self._complete()

    def _complete(self) -> None:
        incoming, self._received_before_response = self._incoming, self.received
        skips = self._must_skip_rest(self.state)
        since = incoming.full_since if incoming is not None and self.full else None
        self._step(_ANSWER)
        if since is not None:
            self._body_read(since)
        if self.state is _DONE:
            self.channel.finished()
        elif skips:
            # As the head announced; bytes that still arrive are discarded during the linger.
            self.channel.close_gracefully()

    def _closing(self, state: ExchangeState) -> bool:
        channel = self.channel
        return channel.engine.stopping or (channel.eof and not channel.conn.paused) or self._must_skip_rest(state)

    def _must_skip_rest(self, state: ExchangeState) -> bool:
        """Report whether an early response in `state` closes the connection, which its head announces (RFC 9112 9.6).

        A chunked body may have any length, and behind a proxy the next request may be another client's. In DUPLEX the
        handler reads the body while it responds.
        """
        if state not in BODY_EXPECTED:
            return False
        chunked = self.channel.own_connection is not None and self.head.headers.get(b"transfer-encoding") is not None
        if chunked and state is not ExchangeState.DUPLEX:
            return True
        return self._length - self.received > self.channel.limits.max_drain

    def begin_body(self, response: Response | StreamedResponse, *, length: int | None) -> None:
        """Send the head of a response whose body follows; `length` in bytes, None if unknown."""
        next_state = EXCHANGE_TABLE[self.state, ExchangeTrigger.SEND]
        send_response_head(self, response, length=length, closing=self._closing(next_state))
        self.state = next_state

    # --- helpers ---

    @property
    def _limit(self) -> int:
        return self._route.body_limit or self.channel.limits.max_skipped

    def _too_large(self) -> Refused:
        limit = self._limit
        return Refused(413, "body_too_large", f"the body may have at most {limit} bytes", extra={"limit": limit})

    def _stop_with(self, error: Exception) -> None:
        """Cancel the handler; respond with `error`, or abort the channel if a response has begun."""
        self._cancel()
        if self.state in RESPONSE_STARTED:
            self.channel.abort()  # an orderly end could look like the end of the body
        else:
            self._failed(error)

    def _cancel(self) -> None:
        self._body = []
        if self._task is not None:
            self._task.cancel()

    def _step(self, trigger: ExchangeTrigger) -> None:
        self.state = EXCHANGE_TABLE[self.state, trigger]
        if self.state is _DONE:
            self.channel.engine.revocables.pop(self, None)
