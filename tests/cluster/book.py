"""A core that has a Redis at the other end of its connection, whose answers the test gives by hand.

book = RedisBook(lambda engine: Redis(engine, WHERE))
book.open()                                   # the connection stands, and was greeted
book.act(lambda: redis.tell("PING"))
assert book.said() == [[b"PING"]]
book.answers("PONG")
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from svc_proto.cluster.link import Reply
from svc_proto.cluster.redis import Redis, RedisListener
from svc_proto.commands import Command, Connect, Connected, Send
from svc_proto.engine.channel import Channel
from svc_proto.engine.core import Engine
from svc_proto.facts import (
    Accepted,
    Address,
    ChannelId,
    Closed,
    Done,
    Fact,
    Failed,
    Failure,
    FailureKind,
    Received,
    Sent,
    Started,
)
from svc_proto.settings import RedisAddress
from svc_proto.wire.resp import RespReader, reply
from tests.playbook import Playbook, counting_entropy

__all__ = ["WHERE", "RedisBook", "asking", "wired"]

WHERE = RedisAddress("redis.example")
T = TypeVar("T")


class _Holder(Generic[T]):
    """A service that only has what is tested."""

    made: T

    def __init__(self, make: Callable[[Engine], T]) -> None:
        self._make = make

    def bind(self, engine: Engine) -> None:
        self.made = self._make(engine)

    def on_started(self) -> None: ...

    def on_accepted(self, fact: Accepted) -> Channel | None:
        return None

    def on_stopping(self) -> None: ...


class RedisBook(Generic[T]):
    """See the module. `made` is what is tested, `ch` the channel of the connection that was opened last."""

    def __init__(self, make: Callable[[Engine], T]) -> None:
        holder = _Holder(make)
        self.engine = Engine(holder, entropy=counting_entropy())
        self.book = Playbook(self.engine)
        self.made = holder.made
        self.orders: list[Command] = []  # but for what was sent
        self.ch = ChannelId(0)
        self._bytes = bytearray()
        self._reader = RespReader()
        self.feed(Started())

    @property
    def events(self) -> list[str]:
        """What was logged, by name."""
        return [line.event for line in self.book.logs]

    def feed(self, fact: Fact) -> None:
        """Something happens."""
        self.book >> fact
        self._gather(self.book.take())

    def act(self, call: Callable[[], object]) -> None:
        """Something is called inside of the core."""
        self.book.act(call)
        self._gather(self.book.take())

    def after(self, seconds: float) -> None:
        """Time passes."""
        self.book.after(seconds)
        self._gather(self.book.take())

    def _gather(self, commands: list[Command]) -> None:
        for command in commands:
            if isinstance(command, Send):
                assert command.ch == self.ch
                self._bytes += command.data
            else:
                self.orders.append(command)

    def ordered(self, kind: type[Command]) -> list[Command]:
        """The orders of a kind since the last look at any."""
        orders, self.orders = self.orders, []
        return [order for order in orders if isinstance(order, kind)]

    def dialled(self) -> Connect:
        """The one connection that was asked for."""
        (order,) = self.ordered(Connect)
        assert isinstance(order, Connect)
        return order

    def refuse(self) -> None:
        """It cannot be had."""
        self.feed(Failed(self.dialled().op, Failure(FailureKind.UNREACHABLE)))

    def stand(self) -> None:
        """It stands, and nothing was answered."""
        order = self.dialled()
        self.ch = order.ch
        self._reader, self._bytes = RespReader(), bytearray()
        self.feed(Done(order.op, Connected(Address("10.0.0.9", order.port))))

    def open(self, *more: object) -> list[object]:
        """It stands and is greeted; `more` answers than one to HELLO. What was said until then."""
        self.stand()
        said = self.said()
        self.answers({b"proto": 3}, *more)
        return said

    def said(self) -> list[object]:
        """The commands since the last look, all of which have left."""
        data, self._bytes = bytes(self._bytes), bytearray()
        if data:
            self.feed(Sent(self.ch, len(data)))
        return self._reader.feed(data)

    def answers(self, *values: object) -> None:
        """The server says this, at once."""
        self.bytes(b"".join(map(reply, values)))

    def bytes(self, data: bytes) -> None:
        """The server sends this."""
        self.feed(Received(self.ch, data))

    def close(self) -> None:
        """The connection is gone."""
        self.feed(Closed(self.ch, "reset"))


def wired(
    where: RedisAddress = WHERE, channels: tuple[str, ...] = (), listener: RedisListener | None = None
) -> RedisBook[Redis]:
    """A client that was started."""
    book = RedisBook(lambda engine: Redis(engine, where, channels, listener))
    book.act(book.made.start)
    return book


def asking(book: RedisBook[Redis], *arguments: str) -> list[Reply]:
    """Ask something in a flow; the list gets what comes."""
    answers: list[Reply] = []
    book.act(lambda: book.engine.spawn(book.made.ask(*arguments), on_done=answers.append))
    return answers
