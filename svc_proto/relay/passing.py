"""A request that another node can answer: passed on to it once, and its answer passed back as it comes.

We are a gateway then (RFC 9110 section 3.7): the caller was let in here, its token is good there as well, and what it
asks for goes with it. `Via` says that it was passed on, so that nobody does it again. Who does not read makes us stop
reading, and with us the other node; who goes away ends it there, too.
"""

from __future__ import annotations

from collections.abc import Callable

from svc_proto.engine.client import fetch
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.engine.message import Request, Response, Streamed
from svc_proto.engine.readers import BodyReader, pieces
from svc_proto.engine.stream import ResponseWriter
from svc_proto.facts import Failure
from svc_proto.wire.events import Headers

__all__ = ["pass_on", "was_passed_on"]

NODE = b"1.1 svc-node"  # our member of `Via`, RFC 9110 section 7.6.3
CONNECT_WITHIN = 2.0  # s: it is near
WITHIN = 10.0  # s for the head of its answer
SILENCE = 60.0  # s without a byte, after which it counts as gone
WHOLE = (304, 412, 416)  # answers about a file, besides 200 and 206; any other is none for who was let in here
ASKED = (
    b"authorization",
    b"range",
    b"if-range",
    b"if-match",
    b"if-none-match",
    b"if-modified-since",
    b"if-unmodified-since",
)
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


def was_passed_on(request: Request) -> bool:
    """Whether a node has passed it on to us."""
    return NODE in request.headers.tokens(b"via")


def pass_on(engine: Engine, request: Request, url: str) -> Flow[Response | Streamed | None]:
    """The answer of another node to a GET or HEAD; None: it has no file for us, or is gone."""
    asked = (field for field in request.headers if field[0] in ASKED)
    answer = yield from fetch(
        engine,
        request.method,
        url,
        into=pieces(),
        headers=(*asked, (b"via", NODE)),
        within=WITHIN,
        connect_within=CONNECT_WITHIN,
    )
    if isinstance(answer, BodyReader):
        if request.method == "HEAD":
            answer.drop()  # nothing more comes, and nobody asks for it
        return Streamed(answer.head.status, _passed(answer.head.headers), _passing(answer))
    if isinstance(answer, Failure) or answer.status not in WHOLE:
        return None
    return Response(answer.status, _passed(answer.headers, b"content-length"), answer.body)


def _passing(reader: BodyReader) -> Callable[[ResponseWriter], Flow[bool]]:
    def produce(writer: ResponseWriter) -> Flow[bool]:
        try:
            while isinstance(data := (yield from reader.read(within=SILENCE)), bytes):
                writer.write(data)
                yield from writer.drained()
        finally:
            reader.drop()
        return data is None

    return produce


def _passed(headers: Headers, *but: bytes) -> Headers:
    kept_back = {*OURS, *but, *headers.tokens(b"connection")}
    return Headers(field for field in headers if field[0] not in kept_back)
