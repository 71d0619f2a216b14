"""Service with one client and a line protocol over standard input and output.

When the client's input has ended and no work is in progress, the process ends.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from attrs import evolve

from svc_proto.basics.errors import RemoteProtocolError
from svc_proto.commands import Ready
from svc_proto.engine.channel import Channel
from svc_proto.engine.core import Engine
from svc_proto.facts import Accepted
from svc_proto.machines.line_buffer import LineBuffer
from svc_proto.wire.limits import DEFAULT_LIMITS

__all__ = ["LineService"]

UNREAD_TIMEOUT = 7 * 86_400.0  # s that a client may leave our output unread


class LineService(ABC):
    """Base class of a service that exchanges lines with one client.

    The client is on the first channel that is accepted; others are refused.
    """

    engine: Engine
    _lines: _LineChannel | None = None
    _closing = False

    def bind(self, engine: Engine) -> None:
        """Store the engine."""
        self.engine = engine

    def on_started(self) -> None:
        """Emit `Ready`."""
        self.engine.emit(Ready())

    def on_accepted(self, fact: Accepted) -> Channel | None:
        """Return the channel of the first client; None for any further one."""
        if self._lines is not None:
            return None
        self._lines = _LineChannel(self.engine, fact, self)
        self.on_client_opened()
        return self._lines

    def on_client_opened(self) -> None:  # noqa: B027, RUF100 - optional hook
        """Handle that the client has connected; by default, do nothing."""

    @abstractmethod
    def on_line(self, line: bytes) -> None:
        """Handle a line that is not blank, without its end."""

    @abstractmethod
    def on_client_closed(self, problem: str) -> None:
        """Handle the end of the client's input; `problem` is empty for an orderly end.

        Afterwards the channel is closed as soon as no work is in progress.
        """

    @property
    @abstractmethod
    def is_busy(self) -> bool:
        """Report whether work is in progress whose output has to be sent before the end."""

    def set_read_paused(self, holding: bool) -> None:  # noqa: B027, RUF100 - optional hook
        """Handle that the client reads too slowly (`holding`), or reads again; by default, do nothing."""

    def send_line(self, line: bytes) -> None:
        """Write a line, or drop it if no client is connected."""
        if self._lines is not None and not self._lines.gone:
            self._lines.write(line + b"\n")
            if self._lines.credit.blocked:
                self.set_read_paused(True)

    def ended(self, problem: str) -> None:
        """Handle the end of the client's input, or input over a limit: close the channel after the work in progress."""
        self.on_client_closed(problem)
        self._closing = True
        self.close_if_done()

    def close_if_done(self) -> None:
        """Close the client's channel if its input has ended and no work is in progress."""
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
        """Pass complete lines that are not blank to the service; a line over the limit ends the input."""
        try:
            lines = self._buffer.feed(data)
        except RemoteProtocolError as error:
            self._service.ended(str(error))
            return
        for line in lines:
            if line.strip():
                self._service.on_line(line)

    def read_closed(self) -> None:
        """Handle the end of the client's input."""
        self._service.ended("")

    def writable(self) -> None:
        """Report to the service that the client reads again."""
        self._service.set_read_paused(False)

    def all_sent(self) -> None:
        """End a closing channel, since all output is sent."""
        if self._closing:
            self.abort()

    def close(self) -> None:
        """Close the channel after all output."""
        self._closing = True
        if not self.credit.unsent:
            self.abort()

    def closed(self, why: str) -> None:
        """End the process with exit code 0, since the client is gone."""
        super().closed(why)
        self.engine.exit(0)

    def stop(self) -> None:
        """Close after all output: the process is stopping."""
        self.close()
