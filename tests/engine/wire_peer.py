"""A core under test, and the peer of one of its connections, over HTTP/1.1 or HTTP/2.

The peer is a connection of this project in the other role. It receives the core's bytes at once, and its automatic
answers (settings, windows, pongs) go back, until both are idle. The core's commands other than `Send` are in `orders`.
"""

from collections.abc import Callable
from typing import Any

from svc_proto.commands import Command, Connect, Connected, PauseReading, ResumeReading, Send
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.facts import Address, ChannelId, Done, Fact, Received, Sent, Started
from svc_proto.wire.connection import Role
from svc_proto.wire.events import Event, RequestData, ResponseData
from svc_proto.wire.http1 import Http1Connection
from svc_proto.wire.http2 import Http2Connection
from tests.support.playbook import CH, FlowService, Playbook, counting_entropy
from tests.wire.connection_pair import seeded


class WirePeerDialogue:
    """A core and the peer of one of its connections, which reads what the core sends unless `reads` is cleared."""

    def __init__(self, book: Playbook, version: str, role: Role, ch: ChannelId = CH) -> None:
        self.book = book
        self.version = version
        self.ch = ch
        self.peer = self.connection(role)
        self.reads = True  # whether the peer reads
        self.heard: list[Event] = []
        self.orders: list[Command] = []

    def connection(self, role: Role) -> Http1Connection | Http2Connection:
        return (Http2Connection if self.version == "2" else Http1Connection)(role, entropy=seeded(7))

    def handle(self, fact: Fact) -> None:
        """Pass a fact to the core, and exchange bytes until both sides are idle."""
        self._step(fact)
        self.run_until_idle()

    def send_from_peer(self, *events: Event) -> None:
        """Send `events` from the peer to the core."""
        for event in events:
            self.peer.send(event)
        self.run_until_idle()

    def raw(self, data: bytes) -> None:
        self.handle(Received(self.ch, data))

    def after(self, seconds: float) -> None:
        """Let this many seconds pass, and exchange bytes until both sides are idle."""
        self._record(self.book.after(seconds).drain_commands())
        self.run_until_idle()

    def run_until_idle(self) -> None:
        """Exchange bytes until both sides are idle."""
        while data := self.peer.data_to_send():
            self._step(Received(self.ch, data))

    def _step(self, fact: Fact) -> None:
        self._record((self.book >> fact).drain_commands())

    def _record(self, commands: list[Command]) -> None:
        left = 0
        for command in commands:
            if isinstance(command, Send) and self.reads:
                left += len(command.data)
                self.peer.receive_data(command.data)
            else:
                self.orders.append(command)
        while (event := self.peer.next_event()) is not None:
            self.heard.append(event)
            if isinstance(event, RequestData | ResponseData) and isinstance(self.peer, Http2Connection):
                self.peer.acknowledge_data(event.stream, len(event.data))
        if left:
            self._step(Sent(self.ch, left))


class CallDialogue(WirePeerDialogue):
    """A core that makes an HTTP request, and the server's end of its connection, over one version of HTTP."""

    def __init__(
        self, flow: Callable[[Engine], Flow[Any]], version: str, *, server: Http2Connection | None = None
    ) -> None:
        self.caller = FlowService(flow)
        book = Playbook(Engine(self.caller, entropy=counting_entropy()))
        super().__init__(book, version, Role.SERVER, ChannelId(-1))
        self._step(Started())
        self.begin(server)

    @property
    def results(self) -> list[Any]:
        return self.caller.results

    def begin(self, server: Http2Connection | None = None) -> None:
        """Accept the connection that the core requested last; its peer is `server`, or a new connection."""
        self.peer = server or self.connection(Role.SERVER)
        self.connect = next(order for order in reversed(self.orders) if isinstance(order, Connect))
        self.orders = []
        self.ch = self.connect.ch
        alpn = ("h2" if self.version == "2" else "http/1.1") if self.connect.tls else None
        self.handle(Done(self.connect.op, Connected(Address("192.0.2.1", self.connect.port), alpn)))

    def took(self) -> list[Command]:
        """Return the commands in `orders` since the last call, except those that pause or resume reading."""
        orders, self.orders = self.orders, []
        return [order for order in orders if not isinstance(order, PauseReading | ResumeReading)]
