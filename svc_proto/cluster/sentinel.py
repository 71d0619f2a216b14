"""Redis Sentinel client: finds the master and detects a failover.

Sentinels are queried in turn before each connection, starting with the one that answered last. The client then stays
subscribed to that one (`+switch-master`). If it is lost, none is subscribed to until the next query. That is safe:
Sentinels make a demoted master close its connections, and each server reports its own role (`redis_client`).

The Sentinel that leads a failover answers with the new master some 100 ms before it publishes `+switch-master`. So a
message that names the address of the last answer changes nothing.
"""

from collections.abc import Callable

from svc_proto.cluster.redis_connection import RedisConnection, Reply, connect_redis, hello_command
from svc_proto.commands import Connect
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.facts import Failure, FailureKind
from svc_proto.settings import RedisAddress
from svc_proto.wire.resp import Push

__all__ = ["SentinelClient"]

SWITCHED = "+switch-master"  # "NAME OLD-HOST OLD-PORT NEW-HOST NEW-PORT"
MAX_PORT = 65_535  # TCP
UNKNOWN = Failure(FailureKind.UNREACHABLE)


class SentinelClient:
    """Sentinel client. `switched` is called when a Sentinel publishes a master other than the known one."""

    def __init__(self, engine: Engine, where: RedisAddress, switched: Callable[[], None]) -> None:
        self._engine = engine
        self._where = where
        self._order = list(where.sentinels)
        self._switched = switched
        self._link: RedisConnection | None = None  # to the subscribed Sentinel
        self.master: tuple[str, int] | Failure = UNKNOWN  # as a Sentinel named it last

    def find(self) -> Flow[tuple[str, int] | Failure]:
        """Return the address of the master from the first Sentinel that has one; the last failure if none has."""
        if self._link is not None:
            self._link.abort()
            self._link = None
        failure = UNKNOWN
        for sentinel in list(self._order):
            found = yield from self._query(*sentinel)
            if not isinstance(found, Failure):
                self._order.remove(sentinel)
                self._order.insert(0, sentinel)
                return found
            failure = found
        return failure

    def _query(self, host: str, port: int) -> Flow[tuple[str, int] | Failure]:
        engine, where = self._engine, self._where
        order = Connect(engine.new_op(), engine.new_channel(), host, port, where.tls)
        greetings = [hello_command(where.sentinel_user, where.sentinel_password)]
        link = yield from connect_redis(engine, order, greetings, (SWITCHED,), self._on_push)
        if isinstance(link, Failure):
            return link
        found = _address((yield from link.execute("SENTINEL", "GET-MASTER-ADDR-BY-NAME", where.master)))
        if isinstance(found, Failure):
            link.abort()
        else:
            self._link, self.master = link, found
        return found

    def _on_push(self, push: Push) -> None:
        match push:
            case [b"message", _, bytes(text)] if text.split(b" ")[0] == self._where.master.encode():
                known, self.master = self.master, _address(text.split(b" ")[3:])
                if self.master != known:
                    self._switched()
            case _:
                pass  # confirmation of the subscription, or a message about another master


def _address(answer: Reply) -> tuple[str, int] | Failure:
    match answer:
        case Failure():
            return answer
        case [bytes(host), bytes(port)] if host and port.isdigit() and 0 < int(port) <= MAX_PORT:
            return host.decode("utf-8", "replace"), int(port)
        case _:
            return Failure(FailureKind.NOT_FOUND, "the Sentinel knows no master of that name")
