"""Test harness of a core in memory, with HTTP clients and upstream servers.

answer = book.request("GET", "/health")
call = book.call("GET", "/later")         # `call.answer` is None until the response is complete
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

from attrs import define, field, frozen

from svc_proto import wire
from svc_proto.commands import Connect
from svc_proto.engine.core import Service
from svc_proto.facts import Address, Failure, ReadClosed, Received
from tests.support.core_harness import CoreHarness, FarEnd
from tests.support.http1_codec import Http1Client, Http1Server
from tests.support.http_codec import FIRST, HttpCodec, Response, ResponseReader, request_events
from tests.support.playbook import PEER, REMOTE, counting_entropy

__all__ = [
    "FIRST", "SILENT", "HarnessResponse", "UpstreamRequest", "HttpCall", "Fields", "HttpHarness", "HttpPeer", "Reply",
    "HttpUpstream", "as_json"
]  # fmt: skip

Fields = Iterable[tuple[bytes, bytes]]
PeerT = TypeVar("PeerT", bound="HttpPeer")


@frozen
class HarnessResponse(Response):
    """Scripted response of an upstream server; with `open` its body does not end."""

    open: bool = False  # the body does not end


@define
class UpstreamRequest:
    """Request as an upstream server received it."""

    method: str
    url: str  # scheme, host, port and target
    headers: wire.Headers
    body: bytes = b""

    @property
    def path(self) -> str:
        return "/" + self.url.split("/", 3)[3]

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@frozen
class NoAnswer:
    """Marker that an upstream server never answers a request."""


SILENT = NoAnswer()
Reply: TypeAlias = tuple[int, bytes] | Response | Failure | NoAnswer  # of an upstream; a failure ends the connection


def as_json(value: object, status: int = 200) -> tuple[int, bytes]:
    return status, json.dumps(value).encode()


@define(eq=False)
class HttpPeer(FarEnd):
    """HTTP endpoint of a test at the other end of a node's connection; `events` are those received."""

    conn: HttpCodec = field(kw_only=True)
    events: list[wire.Event] = field(factory=list)
    mute: bool = False  # sends nothing by itself, no pong and no close frame

    def feed(self, data: bytes) -> None:
        """Parse bytes of the node, handle their events, and send the codec's replies."""
        if data:  # empty data is no FIN here
            self.conn.receive_data(data)
        while (event := self.conn.next_event()) is not None:
            self.events.append(event)
            self.on_event(event)
        self.flush()

    def flush(self) -> None:
        """Post the codec's output to the node, or drop it if this end is mute or closed."""
        reply = self.conn.data_to_send()
        if reply and not self.mute and not self.gone:
            self.node.post(Received(self.ch, reply))

    def on_event(self, event: wire.Event) -> None:
        pass

    def send_events(self, *events: wire.Event) -> None:
        for event in events:
            self.conn.send(event)
        self.say_bytes(self.conn.data_to_send())

    def say_bytes(self, data: bytes) -> None:
        if data and not self.gone:
            self.node.book.handle_on(self.node, Received(self.ch, data))

    def half_close(self) -> None:
        """Report the end of this end's output to the node, and run until idle."""
        self.node.book.handle_on(self.node, ReadClosed(self.ch))

    def vanish(self) -> None:
        """Report a reset of the connection to the node, and run until idle."""
        self.finish("reset")
        self.node.book.run_until_idle()


@define(eq=False)
class HttpUpstream(HttpPeer):
    """Upstream server to which the node has connected; the harness `book` answers its requests and messages."""

    book: HttpHarness = field(kw_only=True)
    url: str = field(kw_only=True)  # scheme, host and port
    upgraded: bool = False
    open: bool = False  # the response body goes on

    def on_event(self, event: wire.Event) -> None:
        match event:
            case wire.RequestHead(websocket=True) if self.book.socket is not None:
                self.upgraded = True
                self.conn.send(wire.AcceptWebSocket(FIRST))
            case wire.RequestEnd():
                (head,) = [event for event in self.events if isinstance(event, wire.RequestHead)]
                body = b"".join(event.data for event in self.events if isinstance(event, wire.RequestData))
                asked = UpstreamRequest(head.method, self.url + head.target, head.headers, body)
                self.book.asked.append(asked)
                self._respond(asked)
            case wire.TextMessage(text=text) if self.book.socket is not None:
                self.book.said.append(json.loads(text))
                answers = self.book.socket(self.book.said[-1])
                if answers is None:
                    self.finish("reset")
                for answer in answers or ():
                    self.conn.send(wire.TextMessage(FIRST, json.dumps(answer)))
            case _:
                pass

    def close_write(self) -> None:
        pass

    def _respond(self, asked: UpstreamRequest) -> None:
        assert self.book.http is not None
        answer = self.book.http(asked)
        if isinstance(answer, tuple):
            answer = Response(answer[0], wire.Headers(), answer[1])
        match answer:
            case Failure(detail=why):
                self.finish(why)
            case Response(status=status, headers=headers, body=body):
                self.open = isinstance(answer, HarnessResponse) and answer.open
                kind = b"text/event-stream" if body.startswith((b"event:", b"data:")) else b"application/json"
                fields = [] if headers.get(b"content-type") else [(b"content-type", kind)]
                fields += [] if self.open else [(b"content-length", b"%d" % len(body))]
                self.conn.send(wire.ResponseHead(FIRST, status, wire.Headers([*fields, *headers])))
                self.go_on(body, end=not self.open)
            case NoAnswer():
                pass

    def go_on(self, body: bytes, *, end: bool) -> None:
        """Queue a further piece of a response body, and with `end` the body's end."""
        if body:
            self.conn.send(wire.ResponseData(FIRST, body))
        if end:
            self.conn.send(wire.ResponseEnd(FIRST))


@define(eq=False)
class HttpCall(HttpPeer):
    """HTTP request of a test to the node; its response may be pending."""

    reader: ResponseReader = field(factory=ResponseReader)

    def on_event(self, event: wire.Event) -> None:
        self.reader.read(event)

    @property
    def answer(self) -> Response | None:
        return self.reader.response

    @property
    def result(self) -> Response:
        answer = self.answer
        assert answer is not None, "there is no answer yet"
        return answer

    @property
    def head(self) -> wire.ResponseHead:
        assert self.reader.head is not None, "there is no head yet"
        return self.reader.head

    @property
    def body(self) -> bytes:
        return bytes(self.reader.body)


class HttpHarness(CoreHarness):
    """Test harness with HTTP clients and upstream servers.

    `http`, if set, is the function that answers requests to upstream servers; `socket`, if set too, accepts their
    WebSockets and answers the messages. `asked` records the requests, without accepted WebSockets, `said` the messages.
    """

    caller: type[HttpCall] = HttpCall
    host_name = b"127.0.0.1"

    def __init__(self, service: Service, **options: Any) -> None:
        self.http: Callable[[UpstreamRequest], Reply] | None = None
        self.socket: Callable[[Mapping[str, Any]], Sequence[Mapping[str, Any]] | None] | None = None
        self.upstreams: list[HttpUpstream] = []
        self.asked: list[UpstreamRequest] = []
        self.said: list[Mapping[str, Any]] = []
        self.answers: list[Response] = []
        self.secrets: set[str] = set()
        self.callers: list[HttpPeer] = []
        self.client_entropy = counting_entropy()
        super().__init__(service, **options)

    def connect_http1(self, kind: type[PeerT], address: Address, *, tls: bool = False) -> PeerT:
        """Connect an HTTP/1.1 client from `address` to the node; return it, an instance of `kind`."""
        conn = Http1Client(self.client_entropy, deflate=False)
        peer: PeerT = self.accept(lambda node, ch: kind(node, ch, conn=conn), address, tls=tls)
        self.callers.append(peer)
        return peer

    def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        token: str | None = None,
        headers: Fields = (),
        peer: Address = PEER,
        host: bytes | None = None,
        tls: bool = False,
    ) -> HttpCall:
        """Send a request on a new connection. A body of bytes is sent unchanged, any other but None as JSON."""
        fields = [(b"host", self.host_name if host is None else host), *headers]
        if token:
            fields.append((b"authorization", b"Bearer " + token.encode()))
        call = self.connect_http1(self.caller, peer, tls=tls)
        call.send_events(*request_events(FIRST, method, path, fields, body))
        return call

    def request(self, method: str, path: str, body: object = None, **options: Any) -> Response:
        """Send a request, reset its connection, and return the response, which must be complete at once.

        Arguments as in `call`; the response is added to `answers`.
        """
        call = self.call(method, path, body, **options)
        answer = call.result
        self.answers.append(answer)
        call.vanish()
        return answer

    def raw(self, data: bytes, *, peer: Address = REMOTE) -> HttpCall:
        """Send any bytes on a new connection; the output is parsed as the response to a GET."""
        call = self.connect_http1(self.caller, peer)
        call.conn.send(wire.RequestHead(FIRST, "GET", "/", wire.Headers([(b"host", self.host_name)])))
        call.conn.send(wire.RequestEnd(FIRST))
        call.conn.data_to_send()
        call.say_bytes(data)
        return call

    def leaks(self) -> list[str]:
        """Return the log records, and the error responses to `request`, that contain one of `secrets`, as texts."""
        places = [repr(log) for log in self.logs]
        places += [repr(answer) for answer in self.answers if answer.status >= 400]
        return [place for place in places for secret in sorted(self.secrets) if secret in place]

    def connect(self, node: Any, order: Connect) -> Any:
        """Connect the node to a scripted upstream server, or without `http` as `CoreHarness.connect` does."""
        if self.http is None:
            return super().connect(node, order)
        conn = Http1Server(self.client_entropy)
        url = f"{'https' if order.tls else 'http'}://{order.host}:{order.port}"
        self.upstreams.append(HttpUpstream(node, order.ch, conn=conn, book=self, url=url))
        return self.upstreams[-1]
