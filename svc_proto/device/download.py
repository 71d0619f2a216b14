"""A file comes from the relay's media registry to the phone: one GET, given up as soon as it is too large."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc_proto.commands import Connect
from svc_proto.engine.client import STREAM, ClientChannel, Fetched, dial
from svc_proto.engine.flow import Flow, wait
from svc_proto.facts import Failure, FailureKind
from svc_proto.wire.events import Event, RequestHead, ResponseHead
from svc_proto.wire.limits import DEFAULT_LIMITS, Limits
from svc_proto.wire.urls import Url

if TYPE_CHECKING:
    from svc_proto.engine.core import Engine

__all__ = ["DownloadChannel", "download"]

DOWNLOAD_WITHIN = 120.0  # s, for the whole file: 100 MB, the largest that may be allowed, at 7 Mbit/s


def download(engine: Engine, url: str, token: str, *, most: int) -> Flow[Fetched | Failure]:
    """Fetch with the phone's own session token; `TOO_LARGE` when the body has more than `most` bytes, or says so."""
    until = engine.now.mono + DOWNLOAD_WITHIN
    channel = yield from dial(DownloadChannel, engine, url, within=DOWNLOAD_WITHIN, limits=DEFAULT_LIMITS)
    if isinstance(channel, Failure):
        return channel
    channel.most = most
    fields = channel.fields(
        ((b"connection", b"close"), (b"authorization", f"Bearer {token}".encode("ascii", "replace")))
    )
    try:
        channel.request(RequestHead(STREAM, "GET", channel.url.target, fields), b"")
        answer = yield from wait(channel.ticket, until)
        assert isinstance(answer, Fetched | Failure)  # nobody else has the ticket
        return answer
    finally:
        channel.drop()


class DownloadChannel(ClientChannel):
    """A connection whose answer may have a size of the caller's choosing."""

    __slots__ = ("most",)

    def __init__(self, engine: Engine, order: Connect, url: Url, limits: Limits, *, http2: bool = False) -> None:
        super().__init__(engine, order, url, limits, http2=http2)
        self.most = 0  # bytes

    def take(self, event: Event) -> None:
        """Look at the announced size before any of it is read."""
        if isinstance(event, ResponseHead):
            announced = event.headers.get(b"content-length") or b""
            if announced.isdigit() and int(announced) > self.most:
                self._too_large()
                return
        super().take(event)

    def _collect(self, data: bytes) -> None:
        self._size += len(data)
        if self._size > self.most:
            self._too_large()
            return
        self._body.append(data)

    def _too_large(self) -> None:
        self._fail(FailureKind.TOO_LARGE, f"the answer has more than {self.most} bytes")
