"""Forwarding of a request to another node, once, and streaming of its response back to the client.

The node acts as a gateway (RFC 9110 section 3.7). `Via` marks the request, so that no node forwards it twice.
Backpressure of the client pauses reading from the other node. A client that disconnects during the response ends the
request there, too.
"""

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

VIA_NAME = b"1.1 svc-node"  # own member of `Via`, RFC 9110 section 7.6.3
CONNECT_TIMEOUT = 2.0  # s; nodes are close to each other
SILENCE_TIMEOUT = 60.0  # s without a byte, after which the other node counts as lost
# Fields that this node sets itself, or that are for one connection alone: RFC 9110 section 7.6.1.
OURS = (
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
    """Fields of a request that are forwarded, and statuses and fields of the response that come back.

    A response that the caller of `send_to_node` requested, such as the stream of a success, always comes back.
    """

    asked: Collection[bytes]  # header fields of the request, in lower case
    asked_prefixes: tuple[bytes, ...] = ()  # further fields, by prefix of their name
    answers: Callable[[int], bool]  # other statuses whose response comes back
    kept_back: Collection[bytes] = ()  # header fields of the response that are not passed on
    within: float = 10.0  # s for the head of the response


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
    answers=(304, 412, 416).__contains__,  # about the file; any other status means that the node has no answer
)


def is_forwarded(request: Request) -> bool:
    """Report whether another node has forwarded this request."""
    return VIA_NAME in request.headers.tokens(b"via")


def forward(engine: Engine, request: Request, url: str, hop: ForwardRule) -> Flow[Response | StreamedResponse | None]:
    """Forward a request with its body and return the response of the other node.

    Return None if there is no response, or one with a status that `hop` does not pass back.
    """
    answer = yield from send_to_node(engine, request, url, hop, into=streamed())
    if isinstance(answer, BodyReader):
        if request.method == "HEAD":
            answer.abandon()  # no body follows
        return StreamedResponse(answer.head.status, _passed(answer.head.headers, *hop.kept_back), _passing(answer))
    return response_to_relay(answer, hop)


def send_to_node(
    engine: Engine, request: Request, url: str, hop: ForwardRule, *, into: ResponseMode[T]
) -> Flow[T | HttpResult | Failure]:
    """Send the request to another node and return the kind of result that `into` describes.

    Any other response is returned as an `HttpResult`. Without a response, return a `Failure`. The method is GET if
    `into` has a handler.
    """
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
    """Return the other node's response for the client.

    Return None for a `Failure`, and for a status that `hop` does not pass back.
    """
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
