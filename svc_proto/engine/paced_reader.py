"""An answer read at the reader's own pace: it asks for what came, and the server waits meanwhile.

    class LineReader(PacedReader[bytes]):
        def wants(self, head): ...              # whether this answer is what is to be read bit by bit
        def collect(self, data): ...            # what came: `keep` it

While as much is unread as the kind of reader bears, nothing is read from the connection, so that memory is bounded and
the server's writes back up.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from svc_proto.basics.errors import RemoteProtocolError
from svc_proto.commands import Connect
from svc_proto.engine.client import STREAM, ClientChannel, Fetched, dial
from svc_proto.engine.flow import Flow, wait
from svc_proto.facts import Failure, FailureKind
from svc_proto.wire.events import Event, RequestHead, ResponseData, ResponseEnd, ResponseHead, StreamReset
from svc_proto.wire.limits import Limits
from svc_proto.wire.urls import Url

if TYPE_CHECKING:
    from svc_proto.engine.core import Engine

__all__ = ["PacedReader", "open_reader"]

PieceT = TypeVar("PieceT")
ReaderT = TypeVar("ReaderT", bound="PacedReader[Any]")


def open_reader(
    kind: type[ReaderT],
    engine: Engine,
    method: str,
    url: str,
    *,
    headers: tuple[tuple[bytes, bytes], ...],
    body: bytes,
    connect_within: float,
    answer_within: float,
    limits: Limits,
    prior_knowledge: bool,
) -> Flow[ReaderT | Fetched | Failure]:
    """Make one request: a reader when the answer is one that it `wants`, else the whole answer.

    `answer_within` seconds are for the head, the connection included, and for the whole of any other answer. Whoever
    gets the reader has to `drop` it.
    """
    until = engine.now.mono + answer_within
    channel = yield from dial(kind, engine, url, within=connect_within, limits=limits, prior_knowledge=prior_knowledge)
    if isinstance(channel, Failure):
        return channel
    fields = [(b"connection", b"close"), *headers, (b"content-length", b"%d" % len(body))]
    try:
        channel.request(RequestHead(STREAM, method, channel.url.target, channel.fields(fields)), body)
        answer = yield from wait(channel.ticket, until)
        assert isinstance(answer, kind | Fetched | Failure)  # all that `resume` is called with
        return answer
    finally:
        if not channel.streaming:
            channel.drop()


class PacedReader(ClientChannel, ABC, Generic[PieceT]):
    """A connection whose answer is read bit by bit."""

    __slots__ = ("_asked", "_end", "_heard", "_most", "_over", "_pieces", "_unread", "streaming")

    def __init__(
        self, engine: Engine, order: Connect, url: Url, limits: Limits, *, most: int, http2: bool = False
    ) -> None:
        super().__init__(engine, order, url, limits, http2=http2)
        self._most = most  # what may be unread while the connection is still read
        self._pieces: list[PieceT] = []
        self._unread = 0
        self._asked = False  # to hold
        self._heard = 0.0  # monotonic seconds of the last byte
        self._end: Failure | None = None
        self._over = False
        self.streaming = False

    # --- for the kinds ---

    @abstractmethod
    def wants(self, head: ResponseHead) -> bool:
        """Whether this is the answer that is to be read bit by bit."""

    @abstractmethod
    def collect(self, data: bytes) -> None:
        """Some bytes of the body came."""

    def keep(self, pieces: list[PieceT], size: int) -> None:
        """Have something for the reader; `size` is what it counts for."""
        self._pieces += pieces
        self._unread += size
        self._brake()
        self.engine.resume(self.ticket, None)

    def pieces(self, within: float) -> Flow[list[PieceT] | Failure | None]:
        """What came since the last call, at least one; None at the end.

        A `Failure` when the connection broke off, or when nothing came for `within` seconds.
        """
        begun = self.engine.now.mono
        while not self._pieces:
            if self._over:
                return self._end
            until = max(begun, self._heard) + within
            if self.engine.now.mono >= until:
                return Failure(FailureKind.TIMED_OUT, "the stream fell silent")
            yield from wait(self.ticket, until)
        pieces, self._pieces = self._pieces, []
        self._unread = 0
        self._brake()
        return pieces

    # --- for the flow above ---

    def hold(self, holding: bool) -> None:
        """Stop or go on reading from the connection, whatever is unread."""
        self._asked = holding
        self._brake()

    # --- facts and events ---

    def take(self, event: Event) -> None:
        """Keep for the reader what it wants; any other answer is collected whole."""
        match event:
            case ResponseHead():
                super().take(event)
                self.streaming = self.wants(event)
                if self.streaming:
                    self._heard = self.engine.now.mono
                    self.engine.resume(self.ticket, self)
            case ResponseData(data=data) if self.streaming:
                self._heard = self.engine.now.mono
                self.collect(data)
            case ResponseEnd() if self.streaming:
                self._finish(None)
            case StreamReset(why=why) if self.streaming:
                self._finish(Failure(FailureKind.UNREACHABLE, why))
            case _:
                super().take(event)

    def protocol_error(self, error: RemoteProtocolError) -> None:
        """The server does not speak as it should."""
        if self.streaming:
            self._finish(Failure(FailureKind.INVALID, str(error)))
        else:
            super().protocol_error(error)

    def closed(self, why: str) -> None:
        """What came before is still there to read."""
        if self.streaming:
            self._finish(Failure(FailureKind.UNREACHABLE, why or "the connection was closed"))
        super().closed(why)

    def settle(self) -> None:
        """After the server's FIN nothing more can come."""
        if self.eof and self.streaming:
            self._finish(Failure(FailureKind.UNREACHABLE, "the server closed the connection"))
        super().settle()

    def _brake(self) -> None:
        super().hold(self._asked or self._unread > self._most)

    def _finish(self, end: Failure | None) -> None:
        """The answer is over, the first reason counts."""
        if not self._over:
            self._over, self._end = True, end
            self.engine.resume(self.ticket, None)
