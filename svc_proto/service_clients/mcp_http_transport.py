"""MCP transport over Streamable HTTP: each message is a POST, answered by JSON or an event stream.

A stream that breaks off before the answer is resumed from its last event, if events have ids. Messages that the server
sends by itself are received by GET, if supported. With status 404 for a session, the session has ended, and the request
was not accepted. Redirects are not followed: the header fields are for the configured server.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from attrs import field, frozen

from svc_proto.basics.excerpt import safe_excerpt
from svc_proto.basics.sanitize import is_printable_ascii
from svc_proto.engine.flow import Flow, Task, sleep
from svc_proto.engine.http_client import HttpResult
from svc_proto.engine.response_readers import EVENT_STREAM, SILENCE_TIMEOUT, EventReader, event_stream
from svc_proto.schema.mcp_messages import RequestId
from svc_proto.service_clients.mcp_client import MAX_MESSAGE, McpError
from svc_proto.service_clients.mcp_read_quota import ReadQuota
from svc_proto.service_clients.service_client import JSON, Fields, ServiceCallError, ServiceClient, error_message_in

if TYPE_CHECKING:
    from svc_proto.engine.core import Engine

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
GONE = "it does not know the session any more"
STATUSES = {401: "it does not let us in", 403: "it does not let us in", 404: "there is nothing at this address"}


@frozen(kw_only=True)
class HttpParameters:
    """URL of the server, and the header fields with our credential."""

    url: str
    headers: Fields = field(default=(), repr=False)


class _HttpTransportHandler(Protocol):
    def receive(self, data: bytes | str) -> None: ...

    def failed(self, identity: RequestId, why: McpError) -> None: ...

    def transport_closed(self, why: McpError, refused: RequestId | None = None) -> None: ...


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
        """Implement `McpTransport.open`: each message has its own request."""
        yield from ()

    def set_protocol_version(self, version: str, text: bytes) -> Flow[None]:
        """Implement `McpTransport`; wait for the response, since later messages could overtake this one."""
        self._version = ((VERSION, version.encode("ascii")),)
        try:
            _discard_response((yield from self._send_request("POST", text, within=INITIALIZE_TIMEOUT)))
        except ServiceCallError as error:
            raise McpError(f"it cannot be reached: {error.why}") from None
        self._listener = self._engine.spawn(self._listen())

    def send(self, text: bytes, identity: RequestId | None) -> None:
        """Implement `McpTransport.send`."""
        if identity is not None:
            self._tasks[identity] = self._engine.spawn(self._carry(text, identity))
        elif self._notes < MAX_NOTES:
            self._notes += 1
            self._engine.spawn(self._post_notification(text))

    def abandon_request(self, identity: RequestId) -> None:
        """Implement `McpTransport.abandon_request`."""
        task = self._tasks.pop(identity, None)
        if task is not None:
            task.cancel()

    def close(self) -> None:
        """Implement `McpTransport.close`."""
        if self._listener is not None:
            self._listener.cancel()
        if self._session:
            self._engine.spawn(self._delete_session())

    # --- one message ----------------------------------------------------------------------------------------------

    def _post_notification(self, text: bytes) -> Flow[None]:
        """Send a message without an answer."""
        with suppress(ServiceCallError):  # the message is not essential
            _discard_response((yield from self._send_request("POST", text, within=CLOSE_TIMEOUT)))
        self._notes -= 1

    def _delete_session(self) -> Flow[None]:
        with suppress(ServiceCallError):  # the session then expires by itself
            yield from self._peer.request(self._engine, "DELETE", "", fields=self._fields(), within=CLOSE_TIMEOUT)

    def _carry(self, text: bytes, identity: RequestId) -> Flow[None]:
        try:
            answer = yield from self._send_request("POST", text, within=RESPONSE_TIMEOUT)
            if isinstance(answer, EventReader):
                self._begin(answer.head.headers.get(SESSION))
                yield from self._read_on(answer)
            else:
                self._begin(answer.headers.get(SESSION))
                self._handle_response(answer, identity)
            why = McpError("the connection ended before the answer")
        except ServiceCallError as error:
            why = McpError(f"it cannot be reached: {error.why}")
        except McpError as error:
            why = error
        self._tasks.pop(identity, None)
        self._ends.failed(identity, why)

    def _handle_response(self, answer: HttpResult, identity: RequestId) -> None:
        """Handle a complete response to this request."""
        if answer.status == 404 and self._session:
            self._session = b""
            self._ends.transport_closed(McpError(GONE), refused=identity)
        elif answer.status >= 300:
            what, said = (
                STATUSES.get(answer.status, "it refuses the request"),
                safe_excerpt(error_message_in(answer.body)),
            )
            raise McpError(f"{what} (status {answer.status}{f', {said}' if said else ''})")
        elif answer.status != 202:
            self._ends.receive(answer.body)

    def _begin(self, session: bytes | None) -> None:
        if session is not None and not self._version and _is_number(session.decode("latin-1")):
            self._session = session

    # --- streams --------------------------------------------------------------------------------------------------

    def _read_on(self, reader: EventReader) -> Flow[None]:
        """Read a stream to its end, and resume it where it breaks off, until its answer cancels the task."""
        for attempt in range(MAX_RESUMED):
            last, pause = yield from self._read(reader)
            if not last:
                return
            yield from sleep(self._engine, LISTENS_AGAIN * attempt if pause is None else min(pause, LONGEST_PAUSE))
            answer = yield from self._send_request(
                "GET", b"", (LAST_EVENT_ID, last.encode("utf-8")), within=RESPONSE_TIMEOUT
            )
            if not isinstance(answer, EventReader):
                return
            reader = answer

    def _read(self, reader: EventReader) -> Flow[tuple[str, float | None]]:
        """Read a stream to its end; return the id of its last event, and the delay before a resumption, in s."""
        last, pause = "", None
        quota = ReadQuota(self._engine, reader.set_paused)
        try:
            while isinstance(batch := (yield from reader.read(within=SILENCE_TIMEOUT)), tuple):
                for event in batch:
                    last = event.id if _is_number(event.id) else ""
                    pause = pause if event.retry is None else event.retry / 1_000
                    if event.data:
                        self._ends.receive(event.data)
                quota.count(len(batch), sum(len(event.data) for event in batch))
        finally:
            quota.close()
            reader.abandon()
        return last, pause

    def _listen(self) -> Flow[None]:
        """Receive the messages that the server sends by itself, while it supports that."""
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
                last, pause = yield from self._read(answer)
                wait = LISTENS_AGAIN if self._engine.now.mono - begun > LONGEST_PAUSE else wait
                wait = max(wait, min(pause or 0.0, LONGEST_PAUSE))
            yield from sleep(self._engine, wait)
            wait = min(2 * wait, LONGEST_PAUSE)

    # --- helpers --------------------------------------------------------------------------------------------------

    def _send_request(
        self, method: str, body: bytes, *more: tuple[bytes, bytes], within: float
    ) -> Flow[EventReader | HttpResult]:
        into = event_stream(accept=BOTH if method == "POST" else EVENT_STREAM, longest=MAX_MESSAGE)
        fields = (*((JSON,) if body else ()), *more, *self._fields())
        return (yield from self._peer.request(self._engine, method, "", body, into=into, fields=fields, within=within))

    def _fields(self) -> Fields:
        session = ((SESSION, self._session),) if self._session else ()
        return (*self._headers, *session, *self._version)


def _is_number(text: str) -> bool:
    return is_printable_ascii(text) and len(text) <= MAX_NUMBER


def _discard_response(answer: EventReader | HttpResult) -> None:
    if isinstance(answer, EventReader):
        answer.abandon()
