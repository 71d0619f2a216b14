"""Server that sends the same bytes to each client after the client's first data; without bytes it never answers."""

from svc_proto.commands import CloseWrite, Ready
from svc_proto.engine.channel import Channel
from svc_proto.facts import Accepted
from svc_proto.wire.limits import DEFAULT_LIMITS
from tests.support.playbook import IdleService


def http(status: int, body: bytes = b"", *, length: int | None = None, kind: str = "application/json") -> bytes:
    """Return the bytes of an HTTP/1.1 response; `length` replaces the true Content-Length."""
    length = len(body) if length is None else length
    return b"HTTP/1.1 %d X\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%b" % (status, kind.encode(), length, body)


class CannedServer(IdleService):
    """Service that sends the bytes `answer` to each client after its first data, and then a FIN if `closes`.

    `heard` is the received data.
    """

    def __init__(self, answer: bytes = b"", *, closes: bool = False) -> None:
        self.answer = answer
        self.closes = closes
        self.heard: list[bytes] = []

    def on_started(self) -> None:
        self.engine.emit(Ready())

    def on_accepted(self, fact: Accepted) -> Channel:
        return _CannedChannel(self, fact)


class _CannedChannel(Channel):
    def __init__(self, service: CannedServer, fact: Accepted) -> None:
        super().__init__(service.engine, fact.ch, DEFAULT_LIMITS)
        self._service = service
        self._said = False

    def received(self, data: bytes) -> None:
        service = self._service
        service.heard.append(data)
        if service.answer and not self._said:
            self._said = True
            self.write(service.answer)
            if service.closes:
                self.engine.emit(CloseWrite(self.ch))

    def read_closed(self) -> None:
        self.abort()

    def stop(self) -> None:
        self.abort()
