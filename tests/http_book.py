"""A `Book` whose callers and upstreams speak HTTP through our own wire layer, in the other role.

answer = book.request("GET", "/health")
call = book.call("GET", "/ping")          # waits for something
assert call.answer is None
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from attrs import define, field, frozen

from svc_proto.commands import Connect
from svc_proto.engine.core import Service
from svc_proto.facts import Address, Received
from svc_proto.wire.connection import Connection, Role
from svc_proto.wire.events import (
    Event,
    Headers,
    RequestData,
    RequestEnd,
    RequestHead,
    ResponseData,
    ResponseEnd,
    ResponseHead,
    StreamId,
)
from svc_proto.wire.http1 import Http1Connection
from tests.book import Book, End
from tests.playbook import PEER, REMOTE, counting_entropy

__all__ = ["FIRST", "Answer", "Call", "Fields", "HttpBook", "Peer", "Upstream"]

FIRST = StreamId(1)
Fields = Iterable[tuple[bytes, bytes]]
PeerT = TypeVar("PeerT", bound="Peer")


@frozen
class Answer:
    """One HTTP answer."""

    status: int
    headers: Headers
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@define(eq=False)
class Peer(End):
    """The other end of one connection."""

    conn: Connection = field(kw_only=True)
    inbox: bytearray = field(factory=bytearray)  # everything that the node said, as bytes
    events: list[Event] = field(factory=list)
    mute: bool = False  # says nothing back by itself, no pong and no close frame

    def hear(self, data: bytes) -> None:
        """Take bytes of the node; say back what must be at once (pongs, close frames, an upstream's answer)."""
        self.inbox += data
        self.conn.receive_data(data)
        while (event := self.conn.next_event()) is not None:
            self.events.append(event)
            self.on_event(event)
        self.flush()

    def flush(self) -> None:
        """Say what there is to say, in its turn."""
        reply = self.conn.data_to_send()
        if reply and not self.mute and not self.gone:
            self.node.post(Received(self.ch, reply))

    def on_event(self, event: Event) -> None:
        """For the kinds that answer."""

    def say(self, *events: Event) -> None:
        for event in events:
            self.conn.send(event)
        self.say_bytes(self.conn.data_to_send())

    def say_bytes(self, data: bytes) -> None:
        if data and not self.gone:
            self.node.book.tell(self.node, Received(self.ch, data))

    def vanish(self) -> None:
        """The connection breaks without a word."""
        self.finish("reset")
        self.node.book.settle()


@define(eq=False)
class Upstream(Peer):
    """A server that the node has called; `reply` gives the status and the body for a request."""

    reply: Callable[[RequestHead], tuple[int, bytes]] = field(kw_only=True)

    def on_event(self, event: Event) -> None:
        if isinstance(event, RequestEnd):
            (head,) = [event for event in self.events if isinstance(event, RequestHead)]
            status, body = self.reply(head)
            length = Headers([(b"content-length", b"%d" % len(body))])
            for said in (ResponseHead(FIRST, status, length), ResponseData(FIRST, body), ResponseEnd(FIRST)):
                self.conn.send(said)


class Call(Peer):
    """An HTTP request whose answer may still be to come."""

    @property
    def answer(self) -> Answer | None:
        if not any(isinstance(event, ResponseEnd) for event in self.events):
            return None
        return Answer(self.head.status, self.head.headers, self.body)

    @property
    def result(self) -> Answer:
        answer = self.answer
        assert answer is not None, "there is no answer yet"
        return answer

    @property
    def head(self) -> ResponseHead:
        """The head of the answer."""
        (head,) = [event for event in self.events if isinstance(event, ResponseHead)]
        return head

    @property
    def body(self) -> bytes:
        """The body so far."""
        return b"".join(event.data for event in self.events if isinstance(event, ResponseData))


class HttpBook(Book):
    """See the module. `upstream` answers whatever the node asks of others, if there is one; `asked` is what it got."""

    caller: type[Call] = Call
    host_name = b"127.0.0.1"

    def __init__(self, service: Service, **options: Any) -> None:
        self.upstream: Callable[[RequestHead], tuple[int, bytes]] | None = None
        self.asked: list[RequestHead] = []
        self.answers: list[Answer] = []
        self.secrets: set[str] = set()
        self.callers: list[Peer] = []
        self.client_entropy = counting_entropy()
        super().__init__(service, **options)

    def come(self, kind: type[PeerT], address: Address, *, tls: bool = False) -> PeerT:
        """Somebody who speaks HTTP/1.1 comes."""
        conn = Http1Connection(Role.CLIENT, entropy=self.client_entropy, deflate=False)
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
    ) -> Call:
        """Send a request on a fresh connection. A body of bytes is sent as it is, any other as JSON."""
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        fields = [(b"host", self.host_name if host is None else host), *headers]
        if token:
            fields.append((b"authorization", b"Bearer " + token.encode()))
        if data:
            fields.append((b"content-length", b"%d" % len(data)))
        call = self.come(self.caller, peer, tls=tls)
        head = RequestHead(FIRST, method, path, Headers(fields))
        call.say(head, *([RequestData(FIRST, data)] if data else []), RequestEnd(FIRST))
        return call

    def request(self, method: str, path: str, body: object = None, **options: Any) -> Answer:
        """A request that is answered at once; as `call`."""
        call = self.call(method, path, body, **options)
        answer = call.result
        self.answers.append(answer)
        call.vanish()
        return answer

    def raw(self, data: bytes, *, peer: Address = REMOTE) -> Call:
        """Send any bytes on a fresh connection, and read what comes as the answer to a GET."""
        call = self.come(self.caller, peer)
        call.conn.send(RequestHead(FIRST, "GET", "/", Headers([(b"host", self.host_name)])))
        call.conn.send(RequestEnd(FIRST))
        call.conn.data_to_send()
        call.say_bytes(data)
        return call

    def leaks(self) -> list[str]:
        """Where a secret shows: in log records, or in the bodies of refusals."""
        places = [repr(log) for log in self.logs]
        places += [repr(answer) for answer in self.answers if answer.status >= 400]
        return [place for place in places for secret in sorted(self.secrets) if secret in place]

    def connect(self, node: Any, order: Connect) -> Any:
        """See `Book`."""
        if self.upstream is None:
            return super().connect(node, order)
        conn = Http1Connection(Role.SERVER, entropy=self.client_entropy, deflate=False)
        return Upstream(node, order.ch, conn=conn, reply=self._reply)

    def _reply(self, head: RequestHead) -> tuple[int, bytes]:
        self.asked.append(head)
        assert self.upstream is not None
        return self.upstream(head)
