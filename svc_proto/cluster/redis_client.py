"""A client of Redis or Valkey in a core: one connection that is found, opened, greeted and opened again: see `link`.

It is to the server that the settings name, or to the one that Sentinels call the master (`sentinel`). A replica, or a
member of a Redis Cluster, is left again. What is asked while there is no connection has a `Failure` at once. Nothing is
asked twice: whoever asked does not know whether it was done.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn

from svc_proto.cluster.redis_connection import (
    CONNECT_TIMEOUT,
    CONNECTION_LOST,
    REPLY_TIMEOUT,
    RedisConnection,
    Reply,
    connect_redis,
    hello_command,
)
from svc_proto.cluster.sentinel import SentinelClient
from svc_proto.commands import Connect, Level
from svc_proto.engine.flow import Flow, Task, sleep, wait
from svc_proto.facts import Failure, FailureKind
from svc_proto.settings import RedisAddress
from svc_proto.wire.resp import Argument, Push

if TYPE_CHECKING:
    from svc_proto.engine.core import Engine

__all__ = ["CONNECT_TIMEOUT", "REPLY_TIMEOUT", "PAUSE", "RedisHandler", "RedisClient", "Reply"]

PAUSE = 0.25  # s between two connections
IS_REPLICA = Failure(
    FailureKind.UNSUPPORTED, "this Redis is a replica, which takes nothing: name the master or Sentinels"
)
REPLACED = Failure(FailureKind.UNREACHABLE, "the Sentinels have named another master meanwhile")
IS_REDIS_CLUSTER = Failure(FailureKind.UNSUPPORTED, "this is a Redis Cluster: name a Redis that is none, or Sentinels")


class RedisHandler:
    """Who is told what the connection does."""

    def on_up(self) -> None:
        """There is a connection, and the subscriptions are in force."""

    def on_down(self) -> None:
        """It is gone."""

    def on_message(self, channel: str, data: bytes) -> None:
        """A message of a subscription."""


class RedisClient:
    """See the module. `channels` are what it is subscribed to, whenever it is up."""

    def __init__(
        self, engine: Engine, where: RedisAddress, channels: tuple[str, ...] = (), listener: RedisHandler | None = None
    ) -> None:
        self._engine = engine
        self._where = where
        self._channels = channels
        self._listener = listener or RedisHandler()
        self._at = (where.host, where.port)
        self._sentinels = SentinelClient(engine, where, self._switched)
        self._link: RedisConnection | None = None  # while it is up
        self._task: Task | None = None
        self.connections = 0  # that there have been

    @property
    def is_up(self) -> bool:
        """Whether commands go out."""
        return self._link is not None

    def start(self) -> None:
        """Connect, now and whenever the connection is gone."""
        self._task = self._engine.spawn(self._live())

    def stop(self) -> None:
        """Open no further connection. The one that there is serves what the process has begun, and ends with it."""
        if self._task is not None:
            self._task.cancel()

    def execute(self, *arguments: Argument) -> Flow[Reply]:
        """One command, and its answer."""
        return CONNECTION_LOST if self._link is None else (yield from self._link.execute(*arguments))

    def send(self, *arguments: Argument, take: Callable[[Reply], object] | None = None) -> bool:
        """One command; `take` hears the answer, if there is one to come. False if it could not be asked."""
        link = self._link
        return link is not None and link.send_command(arguments, take) is None

    def _live(self) -> Flow[NoReturn]:
        engine, told = self._engine, ""
        while True:
            answer = yield from self._connect()
            if isinstance(answer, Failure):
                if told != answer.kind.value:
                    level = Level.ERROR if answer.kind is FailureKind.UNSUPPORTED else Level.WARNING
                    engine.log(level, "cluster not reached", problem=answer.kind.value, detail=answer.detail)
                told = answer.kind.value
            else:
                told = ""
                yield from self._serve(answer)
            yield from sleep(engine, PAUSE)

    def _serve(self, link: RedisConnection) -> Flow[None]:
        engine, (host, port) = self._engine, self._at
        engine.log(Level.INFO, "cluster reached", host=host, port=port)
        self._link = link
        self.connections += 1
        self._listener.on_up()
        yield from wait(link.over, float("inf"))
        self._link = None
        engine.log(Level.WARNING, "cluster lost", host=host, port=port)
        self._listener.on_down()

    def _connect(self) -> Flow[RedisConnection | Failure]:
        engine, where = self._engine, self._where
        if where.sentinels:
            found = yield from self._sentinels.find()
            if isinstance(found, Failure):
                return found
            self._at = found
        order = Connect(engine.new_op(), engine.new_channel(), *self._at, where.tls)
        greetings = [hello_command(where.user, where.password)]
        if where.db:
            greetings.append(("SELECT", where.db))
        return (yield from connect_redis(engine, order, greetings, self._channels, self._on_push, self._judge))

    def _switched(self) -> None:
        """Drop the connection to the server that the Sentinels no longer name."""
        if self._link is not None:
            self._link.abort()

    def _on_push(self, push: Push) -> None:
        match push:
            case [b"message", bytes(channel), bytes(data)]:
                self._listener.on_message(channel.decode("utf-8", "replace"), data)
            case _:
                pass  # that a subscription stands, and what a later server may have to say

    def _judge(self, greeted: Reply) -> Failure | None:
        """Return why a server that has answered HELLO cannot be used."""
        match greeted:
            case {b"mode": b"cluster"}:
                return IS_REDIS_CLUSTER
            case {b"role": b"replica" | b"slave"}:
                return IS_REPLICA
            case _ if self._where.sentinels and self._sentinels.master != self._at:
                return REPLACED
            case _:
                return None
