"""One connection to a Redis, a Valkey or a Sentinel (RESP3): opened, greeted, watched.

Commands are written in the order in which they are asked for and answered in that order, so as many as one likes are
under way at once. Those of one `handle` leave together. An answer that is later than `REPLY_TIMEOUT` takes the
connection with it, and so does one by which the server is not who it was: a master that has become a replica. Whoever
waits then hears a `Failure`, at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from svc_proto.basics.errors import RemoteProtocolError
from svc_proto.commands import CloseWrite, Connect, Level
from svc_proto.engine.channel import Channel
from svc_proto.engine.flow import Flow, run_operation, wait
from svc_proto.facts import ChannelId, Failure, FailureKind
from svc_proto.wire.limits import DEFAULT_LIMITS
from svc_proto.wire.resp import Argument, Push, RespError, RespReader, encode_command

if TYPE_CHECKING:
    from svc_proto.engine.core import Engine

__all__ = [
    "CONNECT_TIMEOUT",
    "CONNECTION_LOST",
    "MAX_PENDING",
    "REPLY_TIMEOUT",
    "RedisConnection",
    "Reply",
    "hello_command",
    "connect_redis",
]

REPLY_TIMEOUT = 2.0  # s for an answer; the connection is dropped then
CONNECT_TIMEOUT = 0.5  # s: it is near, and a network that is whole again has to be noticed soon
MAX_PENDING = 10_000  # commands without an answer; a further one fails at once
LINGER = 0.5  # s from our last word to the server's FIN, when the process stops

Reply: TypeAlias = object
"""What RESP3 has, or a `Failure`: the server's no is one, too."""

CONNECTION_LOST = Failure(FailureKind.UNREACHABLE, "no connection to the cluster's Redis")
TOO_MANY_PENDING = Failure(FailureKind.NO_SPACE, "too many commands wait for the cluster's Redis")
_DENIED = ("NOAUTH", "WRONGPASS", "NOPERM")
_DEMOTED = "READONLY"


def connect_redis(
    engine: Engine,
    order: Connect,
    greetings: Sequence[Sequence[Argument]],
    channels: Sequence[str],
    heard: Callable[[Push], None],
    judge: Callable[[Reply], Failure | None] = lambda greeted: None,
) -> Flow[RedisConnection | Failure]:
    """A connection that was greeted and has subscribed, or the first that was refused. `judge` is shown who answers."""
    opened = yield from run_operation(engine, order, within=CONNECT_TIMEOUT)
    if isinstance(opened, Failure):
        return opened
    link = RedisConnection(engine, order.ch, heard)
    engine.attach(link)
    failure: Failure | None = CONNECTION_LOST
    try:
        failure = yield from _greet(link, greetings, channels, judge)
    finally:
        if failure is not None or link.gone:
            link.abort()
    return failure or link


def _greet(
    link: RedisConnection,
    greetings: Sequence[Sequence[Argument]],
    channels: Sequence[str],
    judge: Callable[[Reply], Failure | None],
) -> Flow[Failure | None]:
    """All at once."""
    engine, answers = link.engine, list[Reply]()
    ticket = engine.new_op()

    def take(answer: Reply) -> None:
        answers.append(answer)
        if len(answers) == len(greetings) or isinstance(answer, Failure):
            engine.resume(ticket, None)

    for greeting in greetings:
        link.send_command(greeting, take)
    if channels:
        link.send_command(("SUBSCRIBE", *channels), None, answered=False)
    yield from wait(ticket, engine.now.mono + REPLY_TIMEOUT)
    if len(answers) < len(greetings):
        answers.append(CONNECTION_LOST)
    return next((answer for answer in answers if isinstance(answer, Failure)), None) or judge(answers[0])


def hello_command(user: str, password: str) -> tuple[Argument, ...]:
    """Who we are, and that we speak RESP3."""
    return ("HELLO", 3, "AUTH", user or "default", password) if password else ("HELLO", 3)


class RedisConnection(Channel):
    """One connection. What a process that ends has still to finish may need it."""

    survives_stop = True

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

    def send_command(
        self, arguments: Sequence[Argument], take: Callable[[Reply], object] | None, *, answered: bool = True
    ) -> Failure | None:
        """Order a command; `take` hears its answer or its `Failure`, once, unless it cannot be ordered."""
        if self.gone or self._closing:
            return CONNECTION_LOST
        if self._is_full:
            return TOO_MANY_PENDING
        self._out.append(encode_command(*arguments))
        if answered:
            self._pending.append((self.engine.now.mono, take))
            if self._watch.when is None:
                self._watch.set(self.engine.now.mono + REPLY_TIMEOUT)
        self.mark_dirty()
        return None

    @property
    def _is_full(self) -> bool:
        return len(self._pending) >= MAX_PENDING or self.credit.unsent > self.limits.max_unsent

    def execute(self, *arguments: Argument) -> Flow[Reply]:
        """One command, and its answer."""
        ticket = self.engine.new_op()
        problem = self.send_command(arguments, partial(self.engine.resume, ticket))
        if problem is not None:
            return problem
        return (yield from wait(ticket, self.engine.now.mono + 2 * REPLY_TIMEOUT))

    # --- facts ---

    def received(self, data: bytes) -> None:
        """Answers and messages."""
        if self.gone:
            return
        try:
            for value in self._reader.feed(data):
                self._on_reply(value)
        except RemoteProtocolError as error:
            self.engine.log(Level.ERROR, "cluster speaks no RESP", problem=str(error))
            self.abort()

    def read_closed(self) -> None:
        """The server goes."""
        self.abort()

    def closed(self, why: str) -> None:
        """Whoever waits hears it."""
        super().closed(why)
        self._watch.retire()
        pending, self._pending = self._pending, deque()
        for _, take in pending:
            if take is not None:
                take(CONNECTION_LOST)
        self.engine.resume(self.over, None)

    def stop(self) -> None:
        """Nobody is left who needs it: say what is to be said, then go."""
        if self._closing:
            return
        self._closing = True
        self._watch.set(self.engine.now.mono + LINGER)
        self.mark_dirty()

    def reads_while_unsent(self) -> bool:
        """Always: answers are what makes room."""
        return True

    def flush(self) -> None:
        """All commands of this `handle` at once."""
        if self.gone:
            return
        if self._out:
            data, self._out = b"".join(self._out), []
            self.write(data)
        if self._closing:
            self.engine.emit(CloseWrite(self.ch))

    def _on_reply(self, value: object) -> None:
        if isinstance(value, Push):
            self._heard(value)
        elif self._pending:
            _, take = self._pending.popleft()
            if take is not None:
                take(_failed(value) if isinstance(value, RespError) else value)
            if isinstance(value, RespError) and value.code == _DEMOTED:
                self.abort()
        else:
            raise RemoteProtocolError("an answer that nobody has asked for")

    def _late(self) -> None:
        now = self.engine.now.mono
        if self._closing or (self._pending and self._pending[0][0] + REPLY_TIMEOUT <= now):
            self.abort()
        elif self._pending:
            self._watch.set(self._pending[0][0] + REPLY_TIMEOUT)


def _failed(error: RespError) -> Failure:
    return Failure(FailureKind.DENIED if error.code in _DENIED else FailureKind.INTERNAL, f"Redis says {error.code}")
