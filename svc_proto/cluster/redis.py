"""A client of Redis or Valkey (RESP3) in a core: one connection that is opened, greeted, watched and opened again.

Commands are written in the order in which they are asked for and answered in that order, so as many as one likes are
under way at once. Those of one `handle` leave together. An answer that is later than `PATIENCE` takes the connection
with it: whatever is asked then has a `Failure`, at once, and so has what is asked while there is no connection.
Nothing is asked twice: whoever asked does not know whether it was done.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NoReturn, TypeAlias

from svc_proto.basics.errors import RemoteProtocolError
from svc_proto.commands import CloseWrite, Connect, Level
from svc_proto.engine.channel import Channel
from svc_proto.engine.flow import Flow, Task, ask, sleep, wait
from svc_proto.facts import ChannelId, Failure, FailureKind
from svc_proto.settings import RedisAddress
from svc_proto.wire.limits import DEFAULT_LIMITS
from svc_proto.wire.resp import Argument, Push, RespError, RespReader, command

if TYPE_CHECKING:
    from svc_proto.engine.core import Engine

__all__ = ["CONNECT_WITHIN", "MAX_PENDING", "PATIENCE", "PAUSE", "Listener", "Redis", "Reply"]

PATIENCE = 2.0  # s for an answer; the connection is dropped then
CONNECT_WITHIN = 0.5  # s: it is near, and a network that is whole again has to be noticed soon
PAUSE = 0.25  # s between two connections
MAX_PENDING = 10_000  # commands without an answer; a further one fails at once
LINGER = 0.5  # s from our last word to the server's FIN, when the process stops

Reply: TypeAlias = object
"""What RESP3 has, or a `Failure`: the server's no is one, too."""

GONE = Failure(FailureKind.UNREACHABLE, "no connection to the cluster's Redis")
FULL = Failure(FailureKind.NO_SPACE, "too many commands wait for the cluster's Redis")


class Listener:
    """Who is told what the connection does."""

    def on_up(self) -> None:
        """There is a connection, and the subscriptions are in force."""

    def on_down(self) -> None:
        """It is gone."""

    def on_message(self, channel: str, data: bytes) -> None:
        """A message of a subscription."""


class Redis:
    """See the module. `channels` are what it is subscribed to, whenever it is up."""

    def __init__(
        self, engine: Engine, where: RedisAddress, channels: tuple[str, ...] = (), listener: Listener | None = None
    ) -> None:
        self._engine = engine
        self._where = where
        self._channels = channels
        self._listener = listener or Listener()
        self._link: _Link | None = None  # while it is up
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

    def ask(self, *arguments: Argument) -> Flow[Reply]:
        """One command, and its answer."""
        link, ticket = self._link, self._engine.new_op()
        problem = GONE if link is None else link.say(arguments, partial(self._engine.resume, ticket))
        if problem is not None:
            return problem
        return (yield from wait(ticket, self._engine.now.mono + 2 * PATIENCE))

    def tell(self, *arguments: Argument, take: Callable[[Reply], object] | None = None) -> bool:
        """One command; `take` hears the answer, if there is one to come. False if it could not be asked."""
        link = self._link
        return link is not None and link.say(arguments, take) is None

    def _live(self) -> Flow[NoReturn]:
        engine, told = self._engine, False
        while True:
            answer = yield from self._connect()
            if isinstance(answer, Failure):
                if not told:
                    engine.log(Level.WARNING, "cluster not reached", problem=answer.kind.value, detail=answer.detail)
                told = True
            else:
                told = False
                engine.log(Level.INFO, "cluster reached", host=self._where.host, port=self._where.port)
                self._link = answer
                self.connections += 1
                self._listener.on_up()
                yield from wait(answer.over, float("inf"))
                self._link = None
                engine.log(Level.WARNING, "cluster lost", host=self._where.host, port=self._where.port)
                self._listener.on_down()
            yield from sleep(engine, PAUSE)

    def _connect(self) -> Flow[_Link | Failure]:
        engine, where = self._engine, self._where
        order = Connect(engine.new_op(), engine.new_channel(), where.host, where.port, where.tls)
        opened = yield from ask(engine, order, within=CONNECT_WITHIN)
        if isinstance(opened, Failure):
            return opened
        link = _Link(engine, order.ch, self._heard)
        engine.attach(link)
        failure: Reply = None
        try:
            failure = yield from self._greet(link)
        finally:
            if failure is not None or link.gone:
                link.drop()
        return failure if isinstance(failure, Failure) else link

    def _greet(self, link: _Link) -> Flow[Reply]:
        """All at once; the first that is refused is what comes back."""
        where = self._where
        greetings: list[Sequence[Argument]] = [_hello(where)]
        if where.db:
            greetings.append(("SELECT", where.db))
        ticket = self._engine.new_op()
        answers: list[Reply] = []

        def take(answer: Reply) -> None:
            answers.append(answer)
            if len(answers) == len(greetings) or isinstance(answer, Failure):
                self._engine.resume(ticket, None)

        for greeting in greetings:
            link.say(greeting, take)
        if self._channels:
            link.say(("SUBSCRIBE", *self._channels), None, answered=False)
        yield from wait(ticket, self._engine.now.mono + PATIENCE)
        if len(answers) < len(greetings):
            answers.append(GONE)
        return next((answer for answer in answers if isinstance(answer, Failure)), None)

    def _heard(self, push: Push) -> None:
        match push:
            case [b"message", bytes(channel), bytes(data)]:
                self._listener.on_message(channel.decode("utf-8", "replace"), data)
            case _:
                pass  # that a subscription stands, and what a later server may have to say


class _Link(Channel):
    """One connection. What a process that ends has still to finish may need it."""

    lasting = True

    __slots__ = ("_closing", "_heard", "_out", "_pending", "_reader", "_watch", "over")

    def __init__(self, engine: Engine, ch: ChannelId, heard: Callable[[Push], None]) -> None:
        super().__init__(engine, ch, DEFAULT_LIMITS)
        self.over = engine.new_op()  # resumed at its end
        self._heard = heard
        self._reader = RespReader()
        self._out: list[bytes] = []
        self._pending: deque[tuple[float, Callable[[Reply], object] | None]] = deque()
        self._watch = engine.timers.timer(self._late)
        self._closing = False

    def say(
        self, arguments: Sequence[Argument], take: Callable[[Reply], object] | None, *, answered: bool = True
    ) -> Failure | None:
        """Order a command; `take` hears its answer or its `Failure`, once, unless it cannot be ordered."""
        if self.gone or self._closing:
            return GONE
        if self._is_full:
            return FULL
        self._out.append(command(*arguments))
        if answered:
            self._pending.append((self.engine.now.mono, take))
            if self._watch.when is None:
                self._watch.set(self.engine.now.mono + PATIENCE)
        self.soil()
        return None

    @property
    def _is_full(self) -> bool:
        return len(self._pending) >= MAX_PENDING or self.credit.unsent > self.limits.max_unsent

    # --- facts ---

    def received(self, data: bytes) -> None:
        """Answers and messages."""
        if self.gone:
            return
        try:
            for value in self._reader.feed(data):
                self._take(value)
        except RemoteProtocolError as error:
            self.engine.log(Level.ERROR, "cluster speaks no RESP", problem=str(error))
            self.drop()

    def read_closed(self) -> None:
        """The server goes."""
        self.drop()

    def closed(self, why: str) -> None:
        """Whoever waits hears it."""
        super().closed(why)
        self._watch.retire()
        pending, self._pending = self._pending, deque()
        for _, take in pending:
            if take is not None:
                take(GONE)
        self.engine.resume(self.over, None)

    def stop(self) -> None:
        """Nobody is left who needs it: say what is to be said, then go."""
        if self._closing:
            return
        self._closing = True
        self._watch.set(self.engine.now.mono + LINGER)
        self.soil()

    def reads_on(self) -> bool:
        """Always: answers are what makes room."""
        return True

    def flush_now(self) -> None:
        """All commands of this `handle` at once."""
        if self._out:
            data, self._out = b"".join(self._out), []
            self.write(data)
        if self._closing:
            self.engine.emit(CloseWrite(self.ch))

    def _take(self, value: object) -> None:
        if isinstance(value, Push):
            self._heard(value)
        elif self._pending:
            _, take = self._pending.popleft()
            if take is not None:
                take(_failed(value) if isinstance(value, RespError) else value)
        else:
            raise RemoteProtocolError("an answer that nobody has asked for")

    def _late(self) -> None:
        now = self.engine.now.mono
        if self._closing or (self._pending and self._pending[0][0] + PATIENCE <= now):
            self.drop()
        elif self._pending:
            self._watch.set(self._pending[0][0] + PATIENCE)


def _hello(where: RedisAddress) -> tuple[Argument, ...]:
    if not where.password:
        return ("HELLO", 3)
    return ("HELLO", 3, "AUTH", where.user or "default", where.password)


def _failed(error: RespError) -> Failure:
    return Failure(FailureKind.DENIED if error.code in _DENIED else FailureKind.INTERNAL, f"Redis says {error.code}")


_DENIED = ("NOAUTH", "WRONGPASS", "NOPERM")
