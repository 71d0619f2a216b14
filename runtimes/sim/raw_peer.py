"""Scripted peers: a raw byte connection that a test drives by hand, and a port where it waits for one.

Every method that waits runs the world until it has what it waits for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from runtimes.sim.connection import SimConnection, SimEnd
from svc_proto.facts import Address, Failure

if TYPE_CHECKING:
    from runtimes.sim.host import SimHost
    from runtimes.sim.simulation import Simulation

__all__ = ["ConnectFailed", "RawPeer", "RawPeerListener"]

LIMIT = 60.0  # virtual s that a method waits before it raises `SimulationLimitError`


class ConnectFailed(Exception):  # noqa: N818 - the name says what happened
    """`Simulation.connect` did not succeed; `failure` says why."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(f"{failure.kind.name}: {failure.detail}")
        self.failure = failure


class RawPeer:
    """One end of a connection in the hands of a test. It reads all the time, unless paused."""

    def __init__(self, world: Simulation, end: SimEnd) -> None:
        self._world = world
        self._end = end
        self._buffer = bytearray()
        self.eof = False  # the other side's FIN has arrived
        self.closed = False  # in both directions
        self.why = ""  # reason of the end, as in `Closed`
        end.adopt(self)

    @property
    def connection(self) -> SimConnection:
        """What lies between, to cut or to hang."""
        return self._end.connection

    @property
    def local(self) -> Address:
        """Where this end is."""
        return self._end.local

    @property
    def unsent(self) -> int:
        """Bytes sent that the other side has no room for yet."""
        return self._end.unsent

    def send(self, data: bytes) -> None:
        """Write. What is written to a closed wire is lost, as with TCP."""
        self._end.send(data)

    def receive(self) -> bytes:
        """Take what has arrived so far; runs nothing."""
        data = bytes(self._buffer)
        self._buffer.clear()
        return data

    def read_until(self, wanted: bytes | Callable[[bytes], bool], *, limit: float = LIMIT) -> bytes:
        """Take everything up to and with `wanted`, or all there is once `wanted(all)` is true.

        EOFError when the end comes before; `SimulationLimitError` after `limit` virtual seconds.
        """
        size = 0

        def satisfied() -> bool:
            nonlocal size
            if isinstance(wanted, bytes):
                at = self._buffer.find(wanted)
                size = at + len(wanted) if at >= 0 else 0
                return at >= 0
            size = len(self._buffer)
            return wanted(bytes(self._buffer))

        self._world.run_until(lambda: satisfied() or self.eof or self.closed, limit)
        if not satisfied():
            raise EOFError(f"the connection ended ({self.why or 'FIN'}) after {bytes(self._buffer)!r:.300}")
        data = bytes(self._buffer[:size])
        del self._buffer[:size]
        return data

    def read_exactly(self, n: int, *, limit: float = LIMIT) -> bytes:
        """Take `n` bytes; EOFError when the end comes before."""
        self._world.run_until(lambda: len(self._buffer) >= n or self.eof or self.closed, limit)
        if len(self._buffer) < n:
            raise EOFError(f"the connection ended ({self.why or 'FIN'}) after {len(self._buffer)} of {n} bytes")
        data = bytes(self._buffer[:n])
        del self._buffer[:n]
        return data

    def read_all(self, *, limit: float = LIMIT) -> bytes:
        """Take everything up to the end, whichever way it comes."""
        self._world.run_until(lambda: self.eof or self.closed, limit)
        return self.receive()

    def close_write(self) -> None:
        """Send FIN behind all that was sent before."""
        self._end.close_write()

    def abort(self) -> None:
        """Send RST: the peer loses what has not arrived."""
        self._end.abort()

    def pause(self) -> None:
        """Read no more: the other side's window fills up."""
        self._end.pause()

    def resume(self) -> None:
        """Read again."""
        self._end.resume()

    # --- as the owner of its end ---

    def on_sent(self, n: int) -> None:
        """Nobody counts here; see `unsent`."""

    def on_readable(self) -> None:
        """Take what there is."""
        while (data := self._end.read()) is not None:
            if data:
                self._buffer += data
            else:
                self.eof = True

    def on_closed(self, why: str) -> None:
        """The end is gone."""
        self.closed = True
        self.why = why


class RawPeerListener:
    """A port where a test plays the server. Made by `Simulation.listen`."""

    def __init__(
        self, world: Simulation, host: SimHost, port: int, *, tls: bool = False, alpn: str | None = None
    ) -> None:
        self._world = world
        self._host = host
        self._port = port
        self._wires: deque[RawPeer] = deque()
        self.tls = tls
        self.alpn = alpn
        world.network.listen(host, port, self)

    def accept(self, *, limit: float = LIMIT) -> RawPeer:
        """The next connection that came, in their order."""
        self._world.run_until(lambda: bool(self._wires), limit)
        return self._wires.popleft()

    def close(self) -> None:
        """Take no more; new connections are refused."""
        self._world.network.unlisten(self._host, self._port, self)

    def accepted(self, end: SimEnd) -> None:
        """Called by the network."""
        self._wires.append(RawPeer(self._world, end))


def connect_raw_peer(
    world: Simulation, source: SimHost, target: tuple[str, int], *, tls: bool, limit: float
) -> RawPeer:
    """Run the world until a handshake is over; `ConnectFailed` when it fails."""
    result: list[RawPeer | Failure] = []

    def outcome(end: SimEnd | Failure) -> None:
        result.append(end if isinstance(end, Failure) else RawPeer(world, end))

    attempt = world.network.connect(source, target, tls=tls, outcome=outcome)
    try:
        world.run_until(lambda: bool(result), limit)
    except AssertionError:
        attempt.cancel()
        raise
    (answer,) = result
    if isinstance(answer, Failure):
        raise ConnectFailed(answer)
    return answer
