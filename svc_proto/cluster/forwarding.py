"""A request that another node can answer: passed on to it once, and its answer passed back as it comes.

We are a gateway then (RFC 9110 section 3.7): the caller was let in here, its token is good there as well, and what it
asks for goes with it. `Via` says that it was passed on, so that nobody does it again. Who does not read makes us stop
reading, and with us the other node; who goes away ends it there, too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TypeVar

from attrs import frozen

from svc_proto.engine.body_streams import ResponseWriter
from svc_proto.engine.client_channel import ResponseMode
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.engine.http_client import HttpResult, fetch
from svc_proto.engine.message import Request, Response, StreamedResponse
from svc_proto.engine.response_readers import BodyReader, streamed
from svc_proto.facts import Failure
from svc_proto.wire.events import Headers

__all__ = ["FILE_FORWARD_RULE", "ForwardRule", "response_to_relay", "forward", "send_to_node", "is_forwarded"]

VIA_NAME = b"1.1 svc-node"  # our member of `Via`, RFC 9110 section 7.6.3
CONNECT_TIMEOUT = 2.0  # s: it is near
SILENCE_TIMEOUT = 60.0  # s without a byte, after which it counts as gone
OURS = (  # what we say ourselves, and what is for one connection alone: RFC 9110 section 7.6.1
    b"date",
    b"connection",
    b"keep-alive",
    b"proxy-connection",
    b"te",
    b"trailer",
    b"transfer-encoding",
    b"upgrade",
)
T = TypeVar("T")


@frozen(kw_only=True)
class ForwardRule:
    """What of a request goes on to another node, and what of its answer comes back: a success does."""

    asked: Collection[bytes]  # header fields of the request, in lower case
    asked_prefixes: tuple[bytes, ...] = ()  # and those whose names begin so
    answers: Callable[[int], bool]  # other statuses whose answer comes back
    kept_back: Collection[bytes] = ()  # header fields of the answer that are ours to say
    within: float = 10.0  # s for the head of the answer


FILE_FORWARD_RULE = ForwardRule(
    asked=(
        b"authorization",
        b"range",
        b"if-range",
        b"if-match",
        b"if-none-match",
        b"if-modified-since",
        b"if-unmodified-since",
    ),
    answers=(304, 412, 416).__contains__,  # about a file; any other is none for who was let in here
)


def is_forwarded(request: Request) -> bool:
    """Whether a node has passed it on to us."""
    return VIA_NAME in request.headers.tokens(b"via")


def forward(engine: Engine, request: Request, url: str, hop: ForwardRule) -> Flow[Response | StreamedResponse | None]:
    """The answer of another node, to the same body; None: it has none for us, or is gone."""
    answer = yield from send_to_node(engine, request, url, hop, into=streamed())
    if isinstance(answer, BodyReader):
        if request.method == "HEAD":
            answer.abandon()  # nothing more comes, and nobody asks for it
        return StreamedResponse(answer.head.status, _passed(answer.head.headers, *hop.kept_back), _passing(answer))
    return response_to_relay(answer, hop)


def send_to_node(
    engine: Engine, request: Request, url: str, hop: ForwardRule, *, into: ResponseMode[T]
) -> Flow[T | HttpResult | Failure]:
    """The same request, to another node."""
    fields = (f for f in request.headers if f[0] in hop.asked or f[0].startswith(hop.asked_prefixes))
    return (
        yield from fetch(
            engine,
            "GET" if into.handler is not None else request.method,
            url,
            into=into,
            headers=(*fields, (b"via", VIA_NAME)),
            body=request.body,
            within=hop.within,
            connect_within=CONNECT_TIMEOUT,
        )
    )


def response_to_relay(answer: HttpResult | Failure, hop: ForwardRule) -> Response | None:
    """A whole answer, if it is one that comes back."""
    if isinstance(answer, Failure) or not hop.answers(answer.status):
        return None
    return Response(answer.status, _passed(answer.headers, b"content-length", *hop.kept_back), answer.body)


def _passing(reader: BodyReader) -> Callable[[ResponseWriter], Flow[bool]]:
    def produce(writer: ResponseWriter) -> Flow[bool]:
        try:
            while isinstance(data := (yield from reader.read(within=SILENCE_TIMEOUT)), bytes):
                writer.write(data)
                yield from writer.drained()
        finally:
            reader.abandon()
        return data is None

    return produce


def _passed(headers: Headers, *but: bytes) -> Headers:
    kept_back = {*OURS, *but, *headers.tokens(b"connection")}
    return Headers(field for field in headers if field[0] not in kept_back)
