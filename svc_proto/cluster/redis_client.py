"""Client of Redis or Valkey in a core: finds the server, connects, and reconnects after each loss.

The server is the one of the settings, or the master that Sentinels name (`sentinel`). A replica, or a member of a Redis
Cluster, is disconnected again. Pauses between attempts grow, and have jitter. A command without a connection fails at
once. No command is repeated: the caller cannot detect whether it was executed.
"""

from collections.abc import Callable
from typing import NoReturn

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
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, Task, sleep, wait
from svc_proto.facts import Failure, FailureKind
from svc_proto.settings import RedisAddress
from svc_proto.wire.resp import Argument, Push

__all__ = ["CONNECT_TIMEOUT", "REPLY_TIMEOUT", "MAX_PAUSE", "PAUSE", "RedisHandler", "RedisClient", "Reply"]

PAUSE = 0.25  # s, at most, before a connection attempt; doubled after each that fails at once
MAX_PAUSE = 0.5  # s, at most, before any attempt, so that a node recovers within a second of a failure's end
IS_REPLICA = Failure(
    FailureKind.UNSUPPORTED, "this Redis is a replica, which takes nothing: name the master or Sentinels"
)
REPLACED = Failure(FailureKind.UNREACHABLE, "the Sentinels have named another master meanwhile")
IS_REDIS_CLUSTER = Failure(FailureKind.UNSUPPORTED, "this is a Redis Cluster: name a Redis that is none, or Sentinels")


class RedisHandler:
    """Callbacks of a Redis client. By default they do nothing."""

    def on_up(self) -> None:
        """Handle that a connection is up. Its subscriptions take effect before later commands."""

    def on_down(self) -> None:
        """Handle that the connection is lost."""

    def on_message(self, channel: str, data: bytes) -> None:
        """Handle a message of a subscription."""


class RedisClient:
    """Redis client, subscribed to `channels` whenever it is connected."""

    def __init__(
        self, engine: Engine, where: RedisAddress, channels: tuple[str, ...] = (), listener: RedisHandler | None = None
    ) -> None:
        self._engine = engine
        self._where = where
        self._channels = channels
        self._listener = listener or RedisHandler()
        self._at = (where.host, where.port)
        self._sentinels = SentinelClient(engine, where, self._switched)
        self._link: RedisConnection | None = None  # while connected
        self._task: Task | None = None
        self.connections = 0  # number of connections so far

    @property
    def is_up(self) -> bool:
        """Report whether a connection to the server is up."""
        return self._link is not None and not self._link.gone

    def start(self) -> None:
        """Connect, now and whenever the connection is lost."""
        self._task = self._engine.spawn(self._live())

    def stop(self) -> None:
        """Stop reconnecting. The connection stays open for the requests that a stopping process finishes."""
        if self._task is not None:
            self._task.cancel()

    def execute(self, *arguments: Argument) -> Flow[Reply]:
        """Execute one command and return its reply.

        Return a `Failure` without a connection or reply, with too many pending commands, and for an error.
        """
        return CONNECTION_LOST if self._link is None else (yield from self._link.execute(*arguments))

    def send(self, *arguments: Argument, take: Callable[[Reply], object] | None = None) -> bool:
        """Send one command; `take` is called with the reply or a `Failure`, once.

        Return False, with nothing sent, without a connection or if too many commands are pending.
        """
        link = self._link
        return link is not None and link.send_command(arguments, take) is None

    def _live(self) -> Flow[NoReturn]:
        engine, told, pause = self._engine, "", PAUSE
        while True:
            began = engine.now.mono
            answer = yield from self._connect()
            if isinstance(answer, Failure):
                if told != answer.kind.value:
                    level = Level.ERROR if answer.kind is FailureKind.UNSUPPORTED else Level.WARNING
                    engine.log(level, "cluster not reached", problem=answer.kind.value, detail=answer.detail)
                told = answer.kind.value
            else:
                told, pause = "", PAUSE
                yield from self._serve(answer)
            if engine.now.mono - began >= CONNECT_TIMEOUT:  # the attempt was a pause
                pause = PAUSE
            jitter = 0.5 + engine.entropy(1)[0] / (2 * 255)  # so that the nodes of a service do not connect all at once
            yield from sleep(engine, pause * jitter)
            pause = min(2 * pause, MAX_PAUSE)

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
                pass  # confirmations of subscriptions, and pushes of later server versions

    def _judge(self, greeted: Reply) -> Failure | None:
        """Return why a server that has answered HELLO cannot be used; None if it can."""
        match greeted:
            case {b"mode": b"cluster"}:
                return IS_REDIS_CLUSTER
            case {b"role": b"replica" | b"slave"}:
                return IS_REPLICA
            case _ if self._where.sentinels and self._sentinels.master != self._at:
                return REPLACED
            case _:
                return None
