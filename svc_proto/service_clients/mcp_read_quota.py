"""Read quota of an MCP server per second: above it, reading pauses until the second has passed."""

from collections.abc import Callable

from svc_proto.engine.core import Engine

__all__ = ["ReadQuota"]

MAX_MESSAGES = 500  # of a server in one second
MAX_BYTES = 16 * 1024 * 1024  # of a server in one second
SECOND = 1.0  # s


class ReadQuota:
    """Counter of input that calls `hold` with True to pause reading, then with False. `close` it after the reading."""

    __slots__ = ("_bytes", "_ends", "_engine", "_hold", "_messages", "_timer")

    def __init__(self, engine: Engine, hold: Callable[[bool], None]) -> None:
        self._engine = engine
        self._hold = hold
        self._ends = 0.0  # monotonic s
        self._messages = self._bytes = 0
        self._timer = engine.timers.timer(lambda: self._hold(False))

    def count(self, messages: int, size: int) -> None:
        """Count received messages and bytes; pause reading above the quota until the second has passed."""
        now = self._engine.now.mono
        if now >= self._ends:
            self._ends, self._messages, self._bytes = now + SECOND, 0, 0
        self._messages += messages
        self._bytes += size
        if self._timer.when is None and (self._messages > MAX_MESSAGES or self._bytes > MAX_BYTES):
            self._hold(True)
            self._timer.set(self._ends)

    def close(self) -> None:
        """Stop the timer that ends a pause: nothing is read any more."""
        self._timer.retire()
