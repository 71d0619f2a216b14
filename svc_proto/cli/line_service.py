"""A service of one client that speaks in lines, over the standard input and output of a program that is a server, say.

The client's end is the end of the process: without it there is nothing to do.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from attrs import evolve

from svc_proto.basics.errors import RemoteProtocolError
from svc_proto.commands import Ready
from svc_proto.engine.channel import Channel
from svc_proto.machines.line_buffer import LineBuffer
from svc_proto.wire.limits import DEFAULT_LIMITS

if TYPE_CHECKING:
    from svc_proto.engine.core import Engine
    from svc_proto.facts import Accepted

__all__ = ["LineService"]

UNREAD_TIMEOUT = 7 * 86_400.0  # s that a client may leave our output unread


class LineService(ABC):
    """The client is whoever is on the first channel that is accepted."""

    engine: Engine
    _lines: _LineChannel | None = None
    _closing = False

    def bind(self, engine: Engine) -> None:
        """Keep the engine."""
        self.engine = engine

    def on_started(self) -> None:
        """There is nothing to load."""
        self.engine.emit(Ready())

    def on_accepted(self, fact: Accepted) -> Channel | None:
        """Serve the first client."""
        if self._lines is not None:
            return None
        self._lines = _LineChannel(self.engine, fact, self)
        self.on_client_opened()
        return self._lines

    def on_client_opened(self) -> None:  # noqa: B027, RUF100 - who greets says so
        """The client is there."""

    @abstractmethod
    def on_line(self, line: bytes) -> None:
        """Take a line that is not blank, without its end."""

    @abstractmethod
    def on_client_closed(self, problem: str) -> None:
        """Nobody will ask any more, and why, empty for an end. Then comes `close_if_done`."""

    @property
    @abstractmethod
    def is_busy(self) -> bool:
        """Whether something is under way that has to be said before the end."""

    def set_read_paused(self, holding: bool) -> None:  # noqa: B027, RUF100 - so does who reads from elsewhere
        """The client does not read as fast as it is told, or does again."""

    def send_line(self, line: bytes) -> None:
        """Write a line, if anybody is there."""
        if self._lines is not None and not self._lines.gone:
            self._lines.write(line + b"\n")
            if self._lines.credit.blocked:
                self.set_read_paused(True)

    def ended(self, problem: str) -> None:
        """The client has said all it had to say, or more than can be taken."""
        self.on_client_closed(problem)
        self._closing = True
        self.close_if_done()

    def close_if_done(self) -> None:
        """Go, once the client has and nothing is under way."""
        if self._closing and not self.is_busy and self._lines is not None:
            self._lines.close()


class _LineChannel(Channel):
    __slots__ = ("_buffer", "_closing", "_service")

    def __init__(self, engine: Engine, fact: Accepted, service: LineService) -> None:
        super().__init__(engine, fact.ch, evolve(DEFAULT_LIMITS, write_timeout=UNREAD_TIMEOUT))
        self._service = service
        self._buffer = LineBuffer()
        self._closing = False

    def received(self, data: bytes) -> None:
        """Take the lines that are whole."""
        try:
            lines = self._buffer.feed(data)
        except RemoteProtocolError as error:
            self._service.ended(str(error))
            return
        for line in lines:
            if line.strip():
                self._service.on_line(line)

    def read_closed(self) -> None:
        """The client has said all it had to say."""
        self._service.ended("")

    def writable(self) -> None:
        """The client has read on."""
        self._service.set_read_paused(False)

    def all_sent(self) -> None:
        """Go, if there is nothing left to do."""
        if self._closing:
            self.abort()

    def close(self) -> None:
        """Go as soon as all is said."""
        self._closing = True
        if not self.credit.unsent:
            self.abort()

    def closed(self, why: str) -> None:
        """The process ends."""
        super().closed(why)
        self.engine.exit(0)

    def stop(self) -> None:
        """The same, from our side."""
        self.close()
