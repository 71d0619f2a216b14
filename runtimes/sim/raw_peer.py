"""Scripted peers: a raw byte connection under the control of a test, and a port that accepts one.

A method that waits runs the simulation until its condition holds, and raises `SimulationLimitError` after a limit.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from runtimes.sim.connection import SimConnection, SimEnd
from runtimes.sim.network import SimHandshake
from svc_proto.facts import Address, Failure

if TYPE_CHECKING:
    from runtimes.sim.host import SimHost
    from runtimes.sim.simulation import Simulation

__all__ = ["ConnectFailed", "RawPeer", "RawPeerListener"]

LIMIT = 60.0  # virtual s that a method waits before it raises `SimulationLimitError`


class ConnectFailed(Exception):  # noqa: N818 - the name is the outcome
    """`Simulation.connect` did not succeed; `failure` has the reason."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(f"{failure.kind.name}: {failure.detail}")
        self.failure = failure


class RawPeer:
    """An end of a connection that a test controls. It reads all the time, unless paused."""

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
        """Return the connection, for a test to cut or hang."""
        return self._end.connection

    @property
    def local(self) -> Address:
        """Return the address of this end."""
        return self._end.local

    @property
    def unsent(self) -> int:
        """Return the number of sent bytes for which the other side has no room yet."""
        return self._end.unsent

    def send(self, data: bytes) -> None:
        """Write bytes. On a closed connection they are lost, as with TCP."""
        self._end.send(data)

    def receive(self) -> bytes:
        """Return and remove the bytes received so far, without running the simulation."""
        data = bytes(self._buffer)
        self._buffer.clear()
        return data

    def read_until(self, wanted: bytes | Callable[[bytes], bool], *, limit: float = LIMIT) -> bytes:
        """Return and remove everything up to and including `wanted`, or all bytes once `wanted(all)` is true.

        Raises EOFError when the connection ends before, and `SimulationLimitError` after `limit` virtual seconds.
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
        """Return and remove `n` bytes.

        Raise EOFError when the connection ends before, and `SimulationLimitError` after `limit` virtual seconds.
        """
        self._world.run_until(lambda: len(self._buffer) >= n or self.eof or self.closed, limit)
        if len(self._buffer) < n:
            raise EOFError(f"the connection ended ({self.why or 'FIN'}) after {len(self._buffer)} of {n} bytes")
        data = bytes(self._buffer[:n])
        del self._buffer[:n]
        return data

    def read_all(self, *, limit: float = LIMIT) -> bytes:
        """Return and remove all bytes up to the end of the connection, however it ends.

        Raise `SimulationLimitError` if it does not end within `limit` virtual seconds.
        """
        self._world.run_until(lambda: self.eof or self.closed, limit)
        return self.receive()

    def close_write(self) -> None:
        """Send FIN after earlier sends."""
        self._end.close_write()

    def abort(self) -> None:
        """Drop the connection, with RST unless a FIN was sent and all arrived bytes were read; see `SimEnd.abort`."""
        self._end.abort()

    def pause(self) -> None:
        """Stop reading: the other side's window fills up."""
        self._end.pause()

    def resume(self) -> None:
        """Resume reading."""
        self._end.resume()

    # --- as the owner of its end ---

    def on_sent(self, n: int) -> None:
        """Do nothing: `unsent` counts the bytes that have not left."""

    def on_readable(self) -> None:
        """Read all that has arrived, for `receive` and the methods that wait; do nothing while paused."""
        while (data := self._end.read()) is not None:
            if data:
                self._buffer += data
            else:
                self.eof = True

    def on_closed(self, why: str) -> None:
        """Implement `SimEndHandler.on_closed`: record the reason in `why`."""
        self.closed = True
        self.why = why


class RawPeerListener:
    """A port on which a test acts as the server. Made by `Simulation.listen`."""

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
        """Wait for the next connection and return it, in the order of arrival.

        Raise `SimulationLimitError` after `limit` virtual seconds.
        """
        self._world.run_until(lambda: bool(self._wires), limit)
        return self._wires.popleft()

    def close(self) -> None:
        """Stop accepting; new connections are refused."""
        self._world.network.unlisten(self._host, self._port, self)

    def accepted(self, end: SimEnd) -> None:
        """Implement `SimListener.accepted`: add a `RawPeer` for the connection."""
        self._wires.append(RawPeer(self._world, end))


def connect_raw_peer(
    world: Simulation, source: SimHost, target: tuple[str, int], *, tls: bool, limit: float
) -> RawPeer:
    """Connect from a host, run the simulation until the handshake is over, and return the client's end.

    Raises `ConnectFailed` when the handshake fails, and `SimulationLimitError` after `limit` virtual seconds.
    """
    result: list[RawPeer | Failure] = []

    def outcome(end: SimEnd | Failure) -> None:
        result.append(end if isinstance(end, Failure) else RawPeer(world, end))

    attempt = SimHandshake(world.network, source, target, tls=tls, outcome=outcome)
    try:
        world.run_until(lambda: bool(result), limit)
    except AssertionError:
        attempt.cancel()
        raise
    (answer,) = result
    if isinstance(answer, Failure):
        raise ConnectFailed(answer)
    return answer
