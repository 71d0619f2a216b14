"""A connection to a simulated server of HTTP/1.1 that is none of ours: no flows, no deadlines, a request at a time.

And what waits for such connections, or others, at a port.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runtimes.sim.connection import End
from runtimes.sim.host import Host
from svc_proto.wire.connection import Role
from svc_proto.wire.events import (
    Event,
    Headers,
    RequestData,
    RequestEnd,
    RequestHead,
    ResponseData,
    ResponseEnd,
    ResponseHead,
)
from svc_proto.wire.http1 import Http1Connection

__all__ = ["Place", "Visit", "listen"]


def listen(host: Host, port: int, visit: Callable[[End], object]) -> Callable[[], None]:
    """Whoever comes to a port of a host is what `visit` makes of his end. What is returned closes it."""
    network, listener = host.world.network, _Listener(visit)
    network.listen(host, port, listener)
    return lambda: network.unlisten(host, port, listener)


class _Listener:
    tls = False
    alpn: str | None = None

    def __init__(self, visit: Callable[[End], object]) -> None:
        self._visit = visit

    def accepted(self, end: End) -> None:
        self._visit(end)


class Visit:
    """Owner of an end. Who makes one of it answers what `asked` tells, by `put`."""

    head: RequestHead  # of the last request

    def __init__(self, end: End) -> None:
        self.end = end
        self._conn = Http1Connection(Role.SERVER, entropy=bytes)
        self._body = bytearray()
        end.adopt(self)

    def asked(self, body: bytes) -> None:
        """A request is there."""
        raise NotImplementedError

    def put(self, *events: Event) -> None:
        """Say these, if anybody is there."""
        if self.end.gone:
            return
        for event in events:
            self._conn.send(event)
        self.end.send(self._conn.data_to_send())

    def answer(self, status: int, body: bytes, *fields: tuple[bytes, bytes]) -> None:
        """Say this, whole."""
        headers = Headers([(b"content-length", b"%d" % len(body)), *fields])
        self.put(ResponseHead(self.stream, status, headers), ResponseData(self.stream, body), ResponseEnd(self.stream))

    @property
    def stream(self) -> Any:
        """Of the last request."""
        return self.head.stream

    def on_sent(self, n: int) -> None:
        """Nobody counts here."""

    def on_closed(self, why: str) -> None:
        """It is over."""

    def on_readable(self) -> None:
        """Take what is asked."""
        while (data := self.end.take()) is not None:
            if not data:
                self.end.close_write()
                return
            self._conn.receive_data(data)
        while (event := self._conn.next_event()) is not None:
            match event:
                case RequestHead():
                    self.head = event
                    self._body.clear()
                case RequestData(data=data):
                    self._body += data
                case RequestEnd():
                    self.asked(bytes(self._body))
                case _:
                    pass


class Place:
    """A port at which each request is answered by what makes one of it, whoever sent it."""

    def __init__(self, host: Host, port: int) -> None:
        self.close = listen(host, port, lambda end: _Guest(self, end))

    def asked(self, visit: Visit, body: bytes) -> None:
        """A request is there."""
        raise NotImplementedError


class _Guest(Visit):
    def __init__(self, place: Place, end: End) -> None:
        super().__init__(end)
        self._place = place

    def asked(self, body: bytes) -> None:
        self._place.asked(self, body)
