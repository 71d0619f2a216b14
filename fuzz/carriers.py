"""What carries those who speak HTTP: a connection of HTTP/1.1 for one of them, or one of HTTP/2 for many.

A rider has a stream of its own and goes to an end exactly once, whatever becomes of the connection below.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Protocol

from fuzz.lines import Line, Target
from runtimes.sim.host import Host
from svc_proto.basics.entropy import Entropy
from svc_proto.basics.errors import LocalProtocolError, RemoteProtocolError
from svc_proto.wire.connection import Role
from svc_proto.wire.events import Event, ResponseData, StreamId, StreamReset
from svc_proto.wire.http1 import Http1Connection
from svc_proto.wire.http2 import Http2Connection
from svc_proto.wire.limits import Limits

__all__ = ["Carrier", "Http1Carrier", "Http2Carrier", "Rider"]

LAX = Limits(max_message=64 * 1024 * 1024, max_head=256 * 1024)  # a client that judges nothing by its size
MISFORTUNES = (  # ends of a stream that are the network's doing, or the server's good right
    "the peer reset the stream",
    "the connection ended within a message",
    "the server did not look at the request before it went away",
)


class Rider(Protocol):
    """Somebody who speaks on a stream."""

    @property
    def slow(self) -> bool:
        """Whether what comes is left lying."""
        ...

    def hear(self, event: Event) -> None:
        """An event of its stream."""
        ...

    def lost(self, problem: str) -> None:
        """Nothing more comes. `problem` is how the peer broke the protocol, empty when it did not."""
        ...


class Carrier(Line, ABC):
    """A line that speaks HTTP as a client."""

    def __init__(self, host: Host, target: Target, conn: Http1Connection | Http2Connection) -> None:
        self.conn = conn
        self.riders: dict[StreamId, Rider] = {}
        self.deaf = False  # whatever comes is not heard, its end neither
        super().__init__(host, target)

    @abstractmethod
    def board(self, rider: Rider) -> StreamId:
        """Give somebody a stream."""

    @abstractmethod
    def leave(self, stream: StreamId, *, reset: bool) -> None:
        """Nobody listens to this stream any more."""

    def put(self, *events: Event) -> bool:
        """Say something; False when the connection does not take it any more."""
        try:
            for event in events:
                self.conn.send(event)
        except LocalProtocolError:
            return False
        self.flush()
        return True

    def flush(self) -> None:
        """Write what was said."""
        if data := self.conn.data_to_send():
            self.write(data)

    def on_data(self, data: bytes) -> None:
        """Parse it, and tell those whom it concerns."""
        if self.deaf:
            return
        try:
            if data:
                self.conn.receive_data(data)
            else:
                self.conn.receive_eof()
            while not self.over and (event := self.conn.next_event()) is not None:
                self.on_event(event)
        except RemoteProtocolError as error:
            # An end in the middle is the network's doing; anything else the server's.
            self._give_up("" if not data else str(error))
            return
        if self.over:
            return
        self.flush()
        if not data:
            self.hang_up()

    def on_event(self, event: Event) -> None:
        """Tell the one whom it concerns."""
        rider = self.riders.get(event.stream)
        if rider is not None:
            rider.hear(event)

    def on_over(self) -> None:
        """Tell everybody."""
        self._lose_all("")

    def _give_up(self, problem: str) -> None:
        self._lose_all(problem)
        self.hang_up(reset=True)

    def _lose_all(self, problem: str) -> None:
        riders, self.riders = self.riders, {}
        for rider in riders.values():
            rider.lost(problem)


class Http1Carrier(Carrier):
    """For one rider."""

    def __init__(self, host: Host, target: Target, entropy: Entropy, *, deflate: bool = False) -> None:
        super().__init__(host, target, Http1Connection(Role.CLIENT, limits=LAX, entropy=entropy, deflate=deflate))

    def board(self, rider: Rider) -> StreamId:
        """The only stream."""
        stream = StreamId(1)
        self.riders[stream] = rider
        return stream

    def leave(self, stream: StreamId, *, reset: bool) -> None:
        """The connection ends with its rider."""
        self.riders.pop(stream, None)
        if not self.over:
            self.hang_up(reset=reset)


class Http2Carrier(Carrier):
    """For as many as the server allows. Riders who are slow keep the window of their stream shut."""

    def __init__(self, host: Host, target: Target, entropy: Entropy) -> None:
        self._http2 = Http2Connection(Role.CLIENT, limits=LAX, entropy=entropy)
        self._held: dict[StreamId, int] = {}  # bytes that were heard, and not taken
        super().__init__(host, target, self._http2)
        self.flush()  # the preface

    @property
    def free(self) -> bool:
        """Whether one more may come aboard."""
        return self._http2.ready and not self.over and not self.slow

    def board(self, rider: Rider) -> StreamId:
        """The next stream."""
        stream = self._http2.next_stream
        self.riders[stream] = rider
        return stream

    def leave(self, stream: StreamId, *, reset: bool) -> None:
        """Only the stream ends; `reset` does not wait for what was said on it."""
        self.riders.pop(stream, None)
        self._held.pop(stream, None)
        if self.over:
            return
        if reset:
            self._http2.abandon(stream)
        else:
            self.put(StreamReset(stream))
        self.flush()
        if not self.riders and not self._http2.ready:
            self.hang_up()

    def take_all(self, stream: StreamId) -> None:
        """A rider reads again."""
        if held := self._held.pop(stream, 0):
            self._http2.taken(stream, held)
            self.flush()

    def on_data(self, data: bytes) -> None:
        """As of any; allowances need the time."""
        self._http2.at(self.host.world.now)
        super().on_data(data)
        if not self.over and self._http2.must_close:
            self.hang_up()

    def on_event(self, event: Event) -> None:
        """Count what a body takes of the window, and tell the rider."""
        stream = event.stream
        rider = self.riders.get(stream)
        if isinstance(event, ResponseData):
            if rider is not None and rider.slow:
                self._held[stream] = self._held.get(stream, 0) + len(event.data)
            else:
                self._http2.taken(stream, len(event.data))
        if rider is None:
            return
        if isinstance(event, StreamReset):
            del self.riders[stream]
            rider.lost("" if event.why in MISFORTUNES else event.why)
        else:
            rider.hear(event)
