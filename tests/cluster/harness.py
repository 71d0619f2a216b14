"""Core with a scripted Redis at the other end of its connection.

book = RedisHarness(lambda engine: RedisClient(engine, WHERE))
book.open()                                   # connected and greeted
book.spawn(book.made.execute("PING"))
assert book.new_commands() == [[b"PING"]]
book.answers("PONG")
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any, Generic, TypeVar

from runtimes.sim.store import CLUSTER_SECRET
from svc_proto.cluster.message_signatures import MessageSigner
from svc_proto.cluster.redis_client import RedisClient, RedisHandler
from svc_proto.cluster.redis_connection import Reply
from svc_proto.commands import Command, Connect, Connected, Level, Operation, Query, Send
from svc_proto.engine.core import Engine
from svc_proto.facts import Address, ChannelId, Done, Fact, Failed, Failure, FailureKind, Received, Sent, Started
from svc_proto.settings import RedisAddress
from svc_proto.store_requests import LoadClusterSecret
from svc_proto.wire.resp import RespReader, encode_reply
from tests.support.core_harness import CoreHarness, HarnessNode, PassiveEnd
from tests.support.playbook import IdleService

WHERE = RedisAddress("redis.example")
SIGNER = MessageSigner(CLUSTER_SECRET)
T = TypeVar("T")
CommandT = TypeVar("CommandT", bound=Command)


class RedisHarness(CoreHarness, Generic[T]):
    """Harness of the object `made`, which uses Redis; `ch` is the channel of the last connection.

    `commands` has the core's commands without `Send`: `new_commands` returns what was sent to Redis.
    """

    def __init__(self, make: Callable[[Engine], T]) -> None:
        super().__init__(IdleService(), log_level=Level.INFO)
        self.made = make(self.engine)
        self.ch = ChannelId(0)
        self._reader = RespReader()
        self.feed(Started())

    def handle(self, node: HarnessNode, fact: Fact | None) -> None:
        super().handle(node, fact)
        self.commands = [command for command in self.commands if not isinstance(command, Send)]

    def on_operation(self, node: HarnessNode, operation: Operation[Any]) -> None:
        """Implement `CoreHarness.on_operation`: the test answers."""

    def ordered(self, kind: type[CommandT]) -> list[CommandT]:
        """Return the commands of a kind since the last call for any kind."""
        orders, self.commands = self.commands, []
        return [order for order in orders if isinstance(order, kind)]

    def dialled(self) -> Connect:
        """Return the command of the only connection attempt since the last call."""
        (order,) = self.ordered(Connect)
        return order

    def give_secret(self) -> None:
        """Answer the query for the secret of the cluster."""
        (order,) = self.ordered(Query)
        assert order.request == LoadClusterSecret()
        self.feed(Done(order.op, CLUSTER_SECRET))

    def turn_away(self) -> None:
        """Refuse the connection to Redis that the object has requested."""
        self.feed(Failed(self.dialled().op, Failure(FailureKind.UNREACHABLE)))

    def accept_connection(self) -> None:
        """Accept the connection to Redis that the object has requested; no command is answered."""
        order = self.dialled()
        self.ch, self._reader = order.ch, RespReader()
        self.node.ends[self.ch] = PassiveEnd(self.node, self.ch, reads=False)
        self.feed(Done(order.op, Connected(Address("10.0.0.9", order.port))))

    def open(self, *more: object) -> list[object]:
        """Accept and greet the connection, and return the commands that Redis received until then.

        The answers in `more` follow the answer to HELLO.
        """
        self.accept_connection()
        said = self.new_commands()
        self.answers({b"proto": 3}, *more)
        return said

    def new_commands(self) -> list[object]:
        """Return the commands to Redis since the last call, and report them as sent."""
        server = self.node.ends.get(self.ch)
        if server is None:
            return []
        data, server.unread = bytes(server.heard), 0
        server.heard.clear()
        if data:
            self.feed(Sent(self.ch, len(data)))
        return self._reader.feed(data)

    def answers(self, *values: object) -> None:
        """Send these values as replies of Redis, in one piece."""
        self.bytes(b"".join(map(encode_reply, values)))

    def bytes(self, data: bytes) -> None:
        """Send these bytes to the object as its Redis server."""
        if data:
            self.feed(Received(self.ch, data))

    def close(self) -> None:
        """Reset the connection to Redis."""
        self.node.ends[self.ch].finish("reset")
        self.run_until_idle()


_numbers = count(1)


def signed(channel: bytes, message: Mapping[str, object]) -> bytes:
    """Return a signed message of another node, with the next number unless it has one."""
    return SIGNER.sign(channel.decode(), json.dumps({"number": next(_numbers), **message}).encode())


def opened(command: Any) -> dict[str, Any]:
    """Return the message of a PUBLISH command, whose signature is checked."""
    word, channel, data = command
    assert word == b"PUBLISH"
    text = SIGNER.verify(channel.decode(), data)
    assert text is not None
    message: dict[str, Any] = json.loads(text)
    return message


def started_client(
    where: RedisAddress = WHERE, channels: tuple[str, ...] = (), listener: RedisHandler | None = None
) -> RedisHarness[RedisClient]:
    """Return the harness of a Redis client that has started; its connection is not accepted yet."""
    book = RedisHarness(lambda engine: RedisClient(engine, where, channels, listener))
    book.within(book.made.start)
    return book


def asking(book: RedisHarness[RedisClient], *arguments: str) -> list[Reply]:
    """Execute a command in a flow; the returned list receives the reply."""
    return book.spawn(book.made.execute(*arguments))
