"""MCP transport over Streamable HTTP: each message is a POST; a request is answered by JSON or an event stream.

A stream that breaks off before the answer is resumed from its last event, if that has an id. Messages that the server
sends by itself are received by GET, if supported.

If a request has no answer for an unclear reason, a `ping` in the same session finds out whether the session is lost.
Redirects are followed within the origin of the configured URL, at most `MAX_REDIRECTS` in a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Final, Protocol

from attrs import evolve, field, frozen

from svc_proto.basics.excerpt import safe_excerpt
from svc_proto.basics.sanitize import is_printable_ascii
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, Task, sleep
from svc_proto.engine.http_client import HttpResult
from svc_proto.engine.response_readers import EVENT_STREAM, SILENCE_TIMEOUT, EventReader, event_stream
from svc_proto.facts import FailureKind
from svc_proto.schema.json_object import JsonObject
from svc_proto.schema.json_rpc import METHOD_NOT_FOUND, write_request
from svc_proto.schema.mcp_messages import RequestId
from svc_proto.service_clients.mcp_client import MAX_MESSAGE, McpError
from svc_proto.service_clients.mcp_read_quota import ReadQuota
from svc_proto.service_clients.service_client import JSON, Fields, ServiceCallError, ServiceClient, error_message_in
from svc_proto.wire.urls import redirect_within_origin

__all__ = ["McpHttpTransport", "HttpParameters"]

BOTH = b"application/json, " + EVENT_STREAM
SESSION, VERSION = b"mcp-session-id", b"mcp-protocol-version"
LAST_EVENT_ID = b"last-event-id"
MAX_NOTES = 16  # concurrent messages without an answer; a further one is dropped
MAX_NUMBER = 1_024  # characters of the id of a session or an event
MAX_RESUMED = 16  # resumptions of one answer
RESPONSE_TIMEOUT = 900.0  # s for the head of a response; callers give up before
INITIALIZE_TIMEOUT = 30.0  # s
CLOSE_TIMEOUT = 2.0  # s for messages without an answer
LISTENS_AGAIN, LONGEST_PAUSE = 1.0, 60.0  # s until the next GET, doubled each time
PROBE_TIMEOUT = 2.0  # s for the answer to a ping that finds out whether the session is lost
MAX_ERROR = 4096  # bytes of a response that is searched for an error
MAX_REDIRECTS = 5  # in a row
REDIRECTS = (301, 302, 307, 308)  # the method is kept: a message has no other
TEMPORARY = (408, 413, 429, 431, 503)  # statuses without a meaning for the session
GONE = "it does not know the session any more"
ENDED = "the connection ended before the answer"
PING = write_request("svc-probe", "ping", {})
STATUSES = {401: "it does not let us in", 403: "it does not let us in", 404: "there is nothing at this address"}


@frozen(kw_only=True)
class HttpParameters:
    """URL of the server, and the header fields with our credential."""

    url: str
    headers: Fields = field(default=(), repr=False)


class _HttpTransportHandler(Protocol):
    def receive(self, data: bytes | str, sole: RequestId | None = None) -> str: ...

    def failed(self, identity: RequestId, why: McpError) -> None: ...

    def transport_closed(self, why: McpError, refused: RequestId | None = None) -> None: ...


@frozen
class _FailedRequest:
    """Reason of a request without an answer, whether its session may be, or is, lost, and whether it was refused."""

    why: str
    suspicious: bool = True  # the session may be lost
    gone: bool = False  # the session is lost
    refused: bool = False  # the server did not accept the request


END: Final = _FailedRequest(ENDED)


class McpHttpTransport:
    """`McpTransport` over Streamable HTTP."""

    def __init__(self, engine: Engine, place: HttpParameters, ends: _HttpTransportHandler) -> None:
        self._engine = engine
        self._peer = ServiceClient("the MCP server", place.url)
        self._headers = place.headers
        self._ends = ends
        self._session = b""
        self._version: Fields = ()
        self._tasks: dict[RequestId, Task] = {}  # tasks of pending requests
        self._notes = 0
        self._listener: Task | None = None

    def open(self) -> Flow[None]:
        """Implement `McpTransport.open`; do nothing, since each message has its own request."""
        yield from ()

    def set_protocol_version(self, version: str, text: bytes) -> Flow[None]:
        """Post the confirmation and wait for the response, so no later message overtakes it; then start to listen.

        The status of the response is ignored. Raises `McpError` without a response.
        """
        self._version = ((VERSION, version.encode("ascii")),)
        try:
            _discard_response((yield from self._send_request("POST", text, within=INITIALIZE_TIMEOUT)))
        except ServiceCallError as error:
            raise McpError(f"it cannot be reached: {error.why}") from None
        self._listener = self._engine.spawn(self._listen())

    def send(self, text: bytes, identity: RequestId | None) -> None:
        """Implement `McpTransport.send`; drop a message without an answer while `MAX_NOTES` of them are under way."""
        if identity is not None:
            self._tasks[identity] = self._engine.spawn(self._carry(text, identity))
        elif self._notes < MAX_NOTES:
            self._notes += 1
            self._engine.spawn(self._post_notification(text))

    def abandon_request(self, identity: RequestId) -> None:
        """Cancel the task of a request, if it is pending."""
        task = self._tasks.pop(identity, None)
        if task is not None:
            task.cancel()

    def close(self) -> None:
        """Stop listening, and begin to end the session at the server, if there is one."""
        if self._listener is not None:
            self._listener.cancel()
        if self._session:
            self._engine.spawn(self._delete_session())

    # --- one message ----------------------------------------------------------------------------------------------

    def _post_notification(self, text: bytes) -> Flow[None]:
        """Post a message that expects no answer; failures are ignored."""
        with suppress(ServiceCallError):  # the message is not essential
            _discard_response((yield from self._send_request("POST", text, within=CLOSE_TIMEOUT)))
        self._notes -= 1

    def _delete_session(self) -> Flow[None]:
        with suppress(ServiceCallError):  # the session then expires by itself
            yield from self._peer.request(self._engine, "DELETE", "", fields=self._fields(), within=CLOSE_TIMEOUT)

    def _carry(self, text: bytes, identity: RequestId) -> Flow[None]:
        try:
            failed = yield from self._exchange(text, identity)
        except ServiceCallError as error:
            failed = _FailedRequest(_unreachable(error))
        if identity not in self._tasks:  # it has its answer
            return
        lost = GONE if failed.gone else ""
        if failed.suspicious and self._version and not lost:
            lost = yield from self._find_loss()
        self._tasks.pop(identity, None)
        if lost:
            self._session = b""
            self._ends.transport_closed(McpError(lost), refused=identity if failed.refused else None)
        else:
            self._ends.failed(identity, McpError(failed.why))

    def _exchange(self, text: bytes, identity: RequestId) -> Flow[_FailedRequest]:
        """Send a request and pass its response on; return the failure that applies if the response had no answer."""
        answer = yield from self._send_request("POST", text, within=RESPONSE_TIMEOUT)
        if isinstance(answer, EventReader):
            self._begin(answer.head.headers.get(SESSION))
            return (yield from self._read_on(answer, identity))
        self._begin(answer.headers.get(SESSION))
        if answer.status >= 300:
            return self._refusal(answer)
        return END if answer.status == 202 else (yield from self._receive(answer.body, identity))

    def _refusal(self, answer: HttpResult) -> _FailedRequest:
        status, location = answer.status, answer.headers.get(b"location") if answer.status in REDIRECTS else None
        what, said = STATUSES.get(status, "it refuses the request"), safe_excerpt(error_message_in(answer.body))
        if location is not None:
            address = safe_excerpt(location.decode("latin-1").partition("?")[0])
            what = f"it redirects to {address}, and only redirects within the configured origin are followed"
        why = f"{what} (status {status}{f', {said}' if said else ''})"
        gone = status in (404, 410) and bool(self._session)
        return _FailedRequest(why, suspicious=status not in TEMPORARY, gone=gone, refused=400 <= status < 500)

    def _receive(self, data: bytes | str, identity: RequestId) -> Flow[_FailedRequest]:
        """Pass a message to the client, unless it is an error and `_find_loss` reports a loss.

        Return the failure of the request: such a loss or a message that cannot be parsed; else `END`.
        """
        if self._session and self._version and _is_error(data) and (yield from self._find_loss()):
            return _FailedRequest(GONE, gone=True, refused=True)
        problem = self._ends.receive(data, identity)
        return _FailedRequest(f"its answer cannot be read: {problem}", suspicious=False) if problem else END

    def _find_loss(self) -> Flow[str]:
        """Send a ping; return why the server or the session cannot be used any more.

        The result is empty if the session still exists, or if the ping does not settle that.
        """
        try:
            answer = yield from self._send_request("POST", PING, within=PROBE_TIMEOUT)
            data = (yield from _first_event(answer)) if isinstance(answer, EventReader) else answer.body
        except ServiceCallError as error:
            return (
                "" if error.failure is not None and error.failure.kind is FailureKind.TIMED_OUT else _unreachable(error)
            )
        status = 200 if isinstance(answer, EventReader) else answer.status
        reason = JsonObject.parse_or_empty(data).get_object("error")
        if isinstance(answer, HttpResult) and status in (401, 403):
            return self._refusal(answer).why
        refused = status >= 400 or bool(reason)
        alive = not refused or reason.integer("code") == METHOD_NOT_FOUND or status in TEMPORARY or not self._session
        return "" if alive else GONE

    def _begin(self, session: bytes | None) -> None:
        if session is not None and not self._version and _is_number(session.decode("latin-1")):
            self._session = session

    # --- streams --------------------------------------------------------------------------------------------------

    def _read_on(self, reader: EventReader, identity: RequestId) -> Flow[_FailedRequest]:
        """Read a stream to its end, and resume it at most `MAX_RESUMED` times, until its answer cancels the task.

        Return the failure of the request if no answer came.
        """
        attempt = 0
        while True:
            last, pause, failed = yield from self._read(reader, identity)
            if not last or failed.gone or attempt == MAX_RESUMED:
                return failed
            yield from sleep(self._engine, LISTENS_AGAIN * attempt if pause is None else min(pause, LONGEST_PAUSE))
            answer = yield from self._send_request(
                "GET", b"", (LAST_EVENT_ID, last.encode("utf-8")), within=RESPONSE_TIMEOUT
            )
            if not isinstance(answer, EventReader):
                return END
            reader = answer
            attempt += 1

    def _read(
        self, reader: EventReader, identity: RequestId | None = None
    ) -> Flow[tuple[str, float | None, _FailedRequest]]:
        """Read a stream to its end, or until the session of its request is lost.

        Return the id of its last event, empty without a usable one, the delay before a resumption in s, and the failure
        of the request whose response the stream is.
        """
        last, pause, failed = "", None, END
        quota = ReadQuota(self._engine, reader.set_paused)
        try:
            while isinstance(batch := (yield from reader.read(within=SILENCE_TIMEOUT)), tuple):
                for event in batch:
                    last = event.id if _is_number(event.id) else ""
                    pause = pause if event.retry is None else event.retry / 1_000
                    if not event.data:
                        continue
                    if identity is None:
                        self._ends.receive(event.data)
                        continue
                    found = yield from self._receive(event.data, identity)
                    failed = failed if found is END else found
                    if failed.gone:
                        return last, pause, failed
                quota.count(len(batch), sum(len(event.data) for event in batch))
        finally:
            quota.close()
            reader.abandon()
        return last, pause, failed

    def _listen(self) -> Flow[None]:
        """Receive the messages that the server sends by itself, until it responds to a GET without an event stream."""
        last, wait = "", LISTENS_AGAIN
        while True:
            more: Sequence[tuple[bytes, bytes]] = ((LAST_EVENT_ID, last.encode("utf-8")),) if last else ()
            try:
                answer = yield from self._send_request("GET", b"", *more, within=SILENCE_TIMEOUT)
            except ServiceCallError:
                answer = None
            if isinstance(answer, HttpResult):
                return
            if answer is not None:
                begun = self._engine.now.mono
                last, pause, _ = yield from self._read(answer)
                wait = LISTENS_AGAIN if self._engine.now.mono - begun > LONGEST_PAUSE else wait
                wait = max(wait, min(pause or 0.0, LONGEST_PAUSE))
            yield from sleep(self._engine, wait)
            wait = min(2 * wait, LONGEST_PAUSE)

    # --- helpers --------------------------------------------------------------------------------------------------

    def _send_request(
        self, method: str, body: bytes, *more: tuple[bytes, bytes], within: float
    ) -> Flow[EventReader | HttpResult]:
        """Send a request, follow at most `MAX_REDIRECTS` redirects within the origin, and return the response.

        If that is not a redirect, later requests go to the same URL.
        """
        into = event_stream(accept=BOTH if method == "POST" else EVENT_STREAM, longest=MAX_MESSAGE)
        fields = (*((JSON,) if body else ()), *more, *self._fields())
        until, peer = self._engine.now.mono + within, self._peer
        left = MAX_REDIRECTS
        while True:
            time = max(until - self._engine.now.mono, 0.0)
            answer = yield from peer.request(self._engine, method, "", body, into=into, fields=fields, within=time)
            if not isinstance(answer, HttpResult) or answer.status not in REDIRECTS:
                self._peer = peer
                return answer
            url = redirect_within_origin(peer.url, answer.headers.get(b"location") or b"")
            if url in (None, peer.url) or not left:
                return answer
            left -= 1
            peer = evolve(peer, url=url)

    def _fields(self) -> Fields:
        session = ((SESSION, self._session),) if self._session else ()
        return (*self._headers, *session, *self._version)


def _first_event(reader: EventReader) -> Flow[str]:
    """Return the data of the first event with data; empty if there is none."""
    try:
        while isinstance(batch := (yield from reader.read(within=PROBE_TIMEOUT)), tuple):
            for event in batch:
                if event.data:
                    return event.data
    finally:
        reader.abandon()
    return ""


def _is_error(data: bytes | str) -> bool:
    """Report whether a message looks like a JSON-RPC error: it is short, and has "error" but no "result"."""
    raw = data if isinstance(data, bytes) else data.encode("utf-8")
    return len(raw) <= MAX_ERROR and b'"error"' in raw and b'"result"' not in raw


def _unreachable(error: ServiceCallError) -> str:
    return f"it cannot be reached: {error.why}"


def _is_number(text: str) -> bool:
    return is_printable_ascii(text) and len(text) <= MAX_NUMBER


def _discard_response(answer: EventReader | HttpResult) -> None:
    if isinstance(answer, EventReader):
        answer.abandon()
