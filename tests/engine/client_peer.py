"""A caller under test and the server it talks to, in the server role of our own wire: the same words in each version.

What the caller sends is heard by the server at once, and what that answers by itself (settings, windows, pongs) goes
back, until both are silent. Everything else the caller orders is in `orders`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from svc_proto.commands import Command, Connect, Connected, PauseReading, ResumeReading, Send
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.facts import Address, ChannelId, Done, Fact, Received, Sent, Started
from svc_proto.wire.connection import Role
from svc_proto.wire.events import Event, RequestData
from svc_proto.wire.http1 import Http1Connection
from svc_proto.wire.http2 import Http2Connection
from tests.playbook import Life, Playbook, counting_entropy
from tests.wire.pair import seeded

__all__ = ["Dialogue"]


class Dialogue:
    """One call over one version of HTTP, on its first connection and on those after it."""

    def __init__(
        self, flow: Callable[[Engine], Flow[Any]], version: str, *, server: Http2Connection | None = None
    ) -> None:
        self.version = version
        self.caller = Life(flow)
        self.book = Playbook(Engine(self.caller, entropy=counting_entropy()))
        self.heard: list[Event] = []
        self.orders: list[Command] = []
        self.ch = ChannelId(-1)
        self.reads = True  # the server
        self.peer: Http1Connection | Http2Connection = Http1Connection(Role.SERVER, entropy=seeded(7))
        self._step(Started())
        self.connect = self._last(Connect)
        self.begin(server)

    @property
    def results(self) -> list[Any]:
        """What the caller got."""
        return self.caller.results

    def begin(self, server: Http2Connection | None = None) -> None:
        """The connection that was asked for stands."""
        two = self.version == "2"
        make = Http2Connection if two else Http1Connection
        self.peer = server or make(Role.SERVER, entropy=seeded(7))
        self.connect, self.orders = self._last(Connect), []
        self.ch = self.connect.ch
        alpn = ("h2" if two else "http/1.1") if self.connect.tls else None
        self.tell(Done(self.connect.op, Connected(Address("192.0.2.1", self.connect.port), alpn)))

    def tell(self, fact: Fact) -> None:
        """Something happened."""
        self._step(fact)
        self.settle()

    def say(self, *events: Event) -> None:
        """The server says so."""
        for event in events:
            self.peer.send(event)
        self.settle()

    def raw(self, data: bytes) -> None:
        """The server sends these bytes."""
        self.tell(Received(self.ch, data))

    def after(self, seconds: float) -> None:
        """Time passes."""
        self._keep(self.book.after(seconds).take())
        self.settle()

    def act(self, call: Callable[[], object]) -> None:
        """Something is called inside of the core."""
        self._keep(self.book.act(call).take())
        self.settle()

    def settle(self) -> None:
        """Let both talk until they are silent."""
        while data := self.peer.data_to_send():
            self._step(Received(self.ch, data))

    def _step(self, fact: Fact) -> None:
        self._keep((self.book >> fact).take())

    def _keep(self, commands: list[Command]) -> None:
        left = 0
        for command in commands:
            if isinstance(command, Send) and self.reads:
                left += len(command.data)
                self.peer.receive_data(command.data)
            else:
                self.orders.append(command)
        while (event := self.peer.next_event()) is not None:
            self.heard.append(event)
            if isinstance(event, RequestData) and isinstance(self.peer, Http2Connection):
                self.peer.taken(event.stream, len(event.data))
        if left:
            self._step(Sent(self.ch, left))

    def _last(self, kind: type[Connect]) -> Connect:
        return next(order for order in reversed(self.orders) if isinstance(order, kind))

    def took(self) -> list[Command]:
        """What was ordered since the last time, but for the pauses of HTTP/1.1."""
        orders, self.orders = self.orders, []
        return [order for order in orders if not isinstance(order, PauseReading | ResumeReading)]
