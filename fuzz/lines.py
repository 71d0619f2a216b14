"""The simulated network in the hands of people who wait for nothing: they are called when something comes."""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen

from runtimes.sim.connection import Connection, End
from runtimes.sim.host import Host
from svc_proto.facts import Failure

__all__ = ["Line", "Target", "Thrower"]


@frozen
class Target:
    """Where to connect, and what to write in `Host`."""

    address: str
    port: int
    authority: str


class Line:
    """A connection of the simulated network from its beginning; the owner of its client's end."""

    def __init__(self, host: Host, target: Target) -> None:
        self.host = host
        self.target = target
        self.began = host.world.now
        self.opened = False
        self.over = False
        self.slow = False
        self._end: End | None = None
        self._waiting: list[bytes] = []
        network = host.world.network
        self._attempt = network.connect(host, (target.address, target.port), tls=False, outcome=self._connected)

    def write(self, data: bytes) -> None:
        """Send now, or as soon as there is a connection."""
        if self._end is None:
            self._waiting.append(data)
        elif not self._end.gone:
            self._end.send(data)

    def hang_up(self, *, reset: bool = False) -> None:
        """Leave: with a reset, or with a FIN and without looking back."""
        if self._end is None:
            self._attempt.cancel()
        elif reset:
            self._end.abort()
        else:
            self._end.vanish(reset=False)
        self._finish()

    def read_slowly(self, slow: bool) -> None:
        """Stop taking from the network, or go on."""
        self.slow = slow
        if self._end is not None and not self._end.gone:
            (self._end.pause if slow else self._end.resume)()

    @property
    def connection(self) -> Connection | None:
        """What carries it, once it is there."""
        return None if self._end is None else self._end.connection

    # --- for subclasses ---

    def on_data(self, data: bytes) -> None:
        """Bytes came; empty for a FIN."""

    def on_over(self) -> None:
        """It is over, once."""

    # --- as the owner of an end ---

    def on_sent(self, n: int) -> None:
        """Nobody counts here."""

    def on_readable(self) -> None:
        """Take what there is."""
        end = self._end
        while end is not None and not self.over and (data := end.take()) is not None:
            self.on_data(data)

    def on_closed(self, why: str) -> None:
        """The end is gone."""
        self._finish()

    def _connected(self, outcome: End | Failure) -> None:
        if isinstance(outcome, Failure):
            self._finish()
            return
        self.opened = True
        self._end = outcome
        outcome.adopt(self)
        if self.slow:
            outcome.pause()
        for data in self._waiting:
            outcome.send(data)
        self._waiting = []

    def _finish(self) -> None:
        if not self.over:
            self.over = True
            self.on_over()


class Thrower(Line):
    """Somebody who writes bytes and listens to whatever comes back, until it is `over`."""

    def __init__(self, host: Host, target: Target, data: bytes, over: Callable[[], None] = lambda: None) -> None:
        self.heard = bytearray()
        self._tell = over
        super().__init__(host, target)
        self.write(data)

    @property
    def status(self) -> int:
        """Of the answer, if it is one of HTTP/1.1."""
        _, _, answer = bytes(self.heard).partition(b"HTTP/1.1 ")
        return int(answer[:3] or 0)

    def on_data(self, data: bytes) -> None:
        """Keep it."""
        self.heard += data
        if not data:
            self.hang_up()

    def on_over(self) -> None:
        """Tell."""
        self._tell()
