"""The body of an answer read at the reader's own pace: it asks for the next bytes, and the server waits meanwhile.

    reader = yield from open_body(engine, "POST", url, body=body)
    if isinstance(reader, BodyReader):
        try:
            while isinstance(data := (yield from reader.read(within=30.0)), bytes):
                ...
        finally:
            reader.drop()

While `MAX_UNREAD` bytes and more are unread, nothing is read from the connection; see `svc_proto.engine.paced_reader`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc_proto.commands import Connect
from svc_proto.engine.client import Fetched
from svc_proto.engine.flow import Flow
from svc_proto.engine.paced_reader import PacedReader, open_reader
from svc_proto.facts import Failure
from svc_proto.wire.events import ResponseHead
from svc_proto.wire.limits import DEFAULT_LIMITS, Limits
from svc_proto.wire.urls import Url

if TYPE_CHECKING:
    from svc_proto.engine.core import Engine

__all__ = ["MAX_UNREAD", "BodyReader", "open_body"]

MAX_UNREAD = 64 * 1024  # bytes from which on the connection is not read


def open_body(
    engine: Engine,
    method: str,
    url: str,
    *,
    headers: tuple[tuple[bytes, bytes], ...] = (),
    body: bytes = b"",
    within: float = 60.0,
    limits: Limits = DEFAULT_LIMITS,
    prior_knowledge: bool = False,
) -> Flow[BodyReader | Fetched | Failure]:
    """Make one request: a reader when it is answered with 200, else the whole answer.

    `within` seconds are for the head, the connection included, and for the whole of any other answer. Whoever gets the
    reader has to `drop` it.
    """
    return open_reader(
        BodyReader,
        engine,
        method,
        url,
        headers=headers,
        body=body,
        connect_within=within,
        answer_within=within,
        limits=limits,
        prior_knowledge=prior_knowledge,
    )


class BodyReader(PacedReader[bytes]):
    """A connection whose answer is read as bytes."""

    __slots__ = ()

    def __init__(self, engine: Engine, order: Connect, url: Url, limits: Limits, *, http2: bool = False) -> None:
        super().__init__(engine, order, url, limits, most=MAX_UNREAD - 1, http2=http2)

    def read(self, *, within: float) -> Flow[bytes | Failure | None]:
        """What came since the last call, at least one byte; None at the end of the body.

        A `Failure` when the connection broke off, or when nothing came for `within` seconds.
        """
        pieces = yield from self.pieces(within)
        return b"".join(pieces) if isinstance(pieces, list) else pieces

    @property
    def head(self) -> ResponseHead:
        """The answer without its body."""
        return self._answer

    def wants(self, head: ResponseHead) -> bool:
        """Only a success has sound, or whatever is asked for, as its body."""
        return head.status == 200

    def collect(self, data: bytes) -> None:
        """Bytes are kept as they came."""
        self.keep([data], len(data))
