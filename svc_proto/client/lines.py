"""A channel of lines both ways: the standard input and output of a program that speaks JSON-RPC, say.

Its end is the end of the process: without a client there is nothing to do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from attrs import evolve

from svc_proto.basics.errors import RemoteProtocolError
from svc_proto.engine.channel import Channel
from svc_proto.machines.lines import LineBuffer
from svc_proto.wire.limits import DEFAULT_LIMITS

if TYPE_CHECKING:
    from svc_proto.engine.core import Engine
    from svc_proto.facts import Accepted

__all__ = ["LineChannel"]

UNREAD_TIMEOUT = 7 * 86_400.0  # s that a client may leave our output unread


class LineChannel(Channel):
    """Lines come to `on_line`, without their end; `on_end` hears why there will be none any more, empty for an end."""

    __slots__ = ("_buffer", "_closing", "_on_end", "_on_line", "_on_writable")

    def __init__(
        self,
        engine: Engine,
        fact: Accepted,
        *,
        on_line: Callable[[bytes], None],
        on_end: Callable[[str], None],
        on_writable: Callable[[], None],
    ) -> None:
        super().__init__(engine, fact.ch, evolve(DEFAULT_LIMITS, write_timeout=UNREAD_TIMEOUT))
        self._on_line = on_line
        self._on_end = on_end
        self._on_writable = on_writable
        self._buffer = LineBuffer()
        self._closing = False

    def received(self, data: bytes) -> None:
        """Take the lines that are whole."""
        try:
            lines = self._buffer.feed(data)
        except RemoteProtocolError as error:
            self._on_end(str(error))
            return
        for line in lines:
            self._on_line(line)

    def read_closed(self) -> None:
        """The client has said all it had to say."""
        self._on_end("")

    def writable(self) -> None:
        """The client has read on."""
        self._on_writable()

    def all_sent(self) -> None:
        """Go, if there is nothing left to do."""
        if self._closing:
            self.drop()

    def close(self) -> None:
        """Go as soon as all is said."""
        self._closing = True
        if not self.credit.unsent:
            self.drop()

    def closed(self, why: str) -> None:
        """The process ends."""
        super().closed(why)
        self.engine.exit(0)

    def stop(self) -> None:
        """The same, from our side."""
        self.close()
