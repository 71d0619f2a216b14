"""Core with a scripted Redis at the other end of its connection.

book = RedisHarness(lambda engine: RedisClient(engine, WHERE))
book.within(book.made.start)                  # it connects
book.open()                                   # connected and greeted
book.spawn(book.made.execute("PING"))
assert book.new_commands() == [[b"PING"]]
book.answers("PONG")
"""

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
    """Harness of a core with the object `made`, a client of Redis; the test is the Redis server.

    `ch` is the channel of the last connection. `commands` has the core's commands without `Send`; `new_commands`
    returns what was sent to Redis.
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
        pass

    def ordered(self, kind: type[CommandT]) -> list[CommandT]:
        """Remove all commands of the core; return those of one type."""
        orders, self.commands = self.commands, []
        return [order for order in orders if isinstance(order, kind)]

    def dialled(self) -> Connect:
        """Remove all commands of the core; return the one `Connect` among them."""
        (order,) = self.ordered(Connect)
        return order

    def give_secret(self) -> None:
        (order,) = self.ordered(Query)
        assert order.request == LoadClusterSecret()
        self.feed(Done(order.op, CLUSTER_SECRET))

    def turn_away(self) -> None:
        self.feed(Failed(self.dialled().op, Failure(FailureKind.UNREACHABLE)))

    def accept_connection(self) -> None:
        """Accept the connection to Redis that the core has requested; answer no command."""
        order = self.dialled()
        self.ch, self._reader = order.ch, RespReader()
        self.node.ends[self.ch] = PassiveEnd(self.node, self.ch, reads=False)
        self.feed(Done(order.op, Connected(Address("10.0.0.9", order.port))))

    def open(self, *more: object) -> list[object]:
        """Accept the connection and answer HELLO, then reply with `more`.

        Return the commands that Redis received before these replies.
        """
        self.accept_connection()
        said = self.new_commands()
        self.answers({b"proto": 3}, *more)
        return said

    def new_commands(self) -> list[object]:
        """Return the Redis commands since the last call, and report their bytes as sent."""
        server = self.node.ends.get(self.ch)
        if server is None:
            return []
        data, server.unread = bytes(server.heard), 0
        server.heard.clear()
        if data:
            self.feed(Sent(self.ch, len(data)))
        return self._reader.feed(data)

    def answers(self, *values: object) -> None:
        """Send `values` to the core as replies of Redis."""
        self.bytes(b"".join(map(encode_reply, values)))

    def bytes(self, data: bytes) -> None:
        if data:
            self.feed(Received(self.ch, data))

    def close(self) -> None:
        self.node.ends[self.ch].finish("reset")
        self.run_until_idle()


_numbers = count(1)


def signed(channel: bytes, message: Mapping[str, object]) -> bytes:
    """Return a signed message for a channel; without a `number` it gets the next one."""
    return SIGNER.sign(channel.decode(), json.dumps({"number": next(_numbers), **message}).encode())


def opened(command: Any) -> dict[str, Any]:
    """Return the message in a PUBLISH command, after a check of its signature."""
    word, channel, data = command
    assert word == b"PUBLISH"
    text = SIGNER.verify(channel.decode(), data)
    assert text is not None
    message: dict[str, Any] = json.loads(text)
    return message


class NodeStub:
    """The part of a node that leases and semaphores use; its keys are those of the kind `kind`."""

    id = "me"

    def __init__(self, redis: RedisClient) -> None:
        self.redis = redis

    @property
    def is_up(self) -> bool:
        return self.redis.is_up

    def key(self, *parts: str) -> str:
        return ":".join(("svc:0:kind", *parts))


def started_client(
    where: RedisAddress = WHERE, channels: tuple[str, ...] = (), listener: RedisHandler | None = None
) -> RedisHarness[RedisClient]:
    """Return the harness of a started Redis client, whose connection is not accepted yet."""
    book = RedisHarness(lambda engine: RedisClient(engine, where, channels, listener))
    book.within(book.made.start)
    return book


def asking(book: RedisHarness[RedisClient], *arguments: str) -> list[Reply]:
    """Execute a Redis command in a flow; return the list that receives the reply."""
    return book.spawn(book.made.execute(*arguments))
