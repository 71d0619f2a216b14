"""A core that has a Redis at the other end of its connection, whose answers the test gives by hand.

book = RedisBook(lambda engine: Redis(engine, WHERE))
book.open()                                   # the connection stands, and was greeted
book.within(lambda: redis.tell("PING"))
assert book.said() == [[b"PING"]]
book.answers("PONG")
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from svc_proto.cluster.redis_client import RedisClient, RedisHandler
from svc_proto.cluster.redis_connection import Reply
from svc_proto.commands import Command, Connect, Connected, Level, Operation, Send
from svc_proto.engine.core import Engine
from svc_proto.facts import Address, ChannelId, Done, Fact, Failed, Failure, FailureKind, Received, Sent, Started
from svc_proto.settings import RedisAddress
from svc_proto.wire.resp import RespReader, encode_reply
from tests.support.core_harness import CoreHarness, HarnessNode, PassiveEnd
from tests.support.playbook import IdleService

WHERE = RedisAddress("redis.example")
T = TypeVar("T")
CommandT = TypeVar("CommandT", bound=Command)


class RedisHarness(CoreHarness, Generic[T]):
    """See the module. `made` is what is tested, `ch` the channel of the connection that was opened last; what was sent
    is not among `commands`.
    """

    def __init__(self, make: Callable[[Engine], T]) -> None:
        super().__init__(IdleService(), log_level=Level.INFO)
        self.made = make(self.engine)
        self.ch = ChannelId(0)
        self._reader = RespReader()
        self.feed(Started())

    def handle(self, node: HarnessNode, fact: Fact | None) -> None:
        """See `CoreHarness`."""
        super().handle(node, fact)
        self.commands = [command for command in self.commands if not isinstance(command, Send)]

    def on_operation(self, node: HarnessNode, operation: Operation[Any]) -> None:
        """The test answers."""

    def ordered(self, kind: type[CommandT]) -> list[CommandT]:
        """The orders of a kind since the last look at any."""
        orders, self.commands = self.commands, []
        return [order for order in orders if isinstance(order, kind)]

    def dialled(self) -> Connect:
        """The one connection that was asked for."""
        (order,) = self.ordered(Connect)
        return order

    def turn_away(self) -> None:
        """It cannot be had."""
        self.feed(Failed(self.dialled().op, Failure(FailureKind.UNREACHABLE)))

    def accept_connection(self) -> None:
        """It stands, and nothing was answered."""
        order = self.dialled()
        self.ch, self._reader = order.ch, RespReader()
        self.node.ends[self.ch] = PassiveEnd(self.node, self.ch, reads=False)
        self.feed(Done(order.op, Connected(Address("10.0.0.9", order.port))))

    def open(self, *more: object) -> list[object]:
        """It stands and is greeted; `more` answers than one to HELLO. What was said until then."""
        self.accept_connection()
        said = self.new_commands()
        self.answers({b"proto": 3}, *more)
        return said

    def new_commands(self) -> list[object]:
        """The commands since the last look, all of which have left."""
        server = self.node.ends.get(self.ch)
        if server is None:
            return []
        data, server.unread = bytes(server.heard), 0
        server.heard.clear()
        if data:
            self.feed(Sent(self.ch, len(data)))
        return self._reader.feed(data)

    def answers(self, *values: object) -> None:
        """The server says this, at once."""
        self.bytes(b"".join(map(encode_reply, values)))

    def bytes(self, data: bytes) -> None:
        """The server sends this."""
        if data:
            self.feed(Received(self.ch, data))

    def close(self) -> None:
        """The connection is gone."""
        self.node.ends[self.ch].finish("reset")
        self.run_until_idle()


def started_client(
    where: RedisAddress = WHERE, channels: tuple[str, ...] = (), listener: RedisHandler | None = None
) -> RedisHarness[RedisClient]:
    """A client that was started."""
    book = RedisHarness(lambda engine: RedisClient(engine, where, channels, listener))
    book.within(book.made.start)
    return book


def asking(book: RedisHarness[RedisClient], *arguments: str) -> list[Reply]:
    """Ask something in a flow; the list gets what comes."""
    return book.spawn(book.made.execute(*arguments))
