"""Connection to a Redis, Valkey or Sentinel server over RESP3, with greeting, pipelining and timeouts.

Commands are written and answered in order, so many may be pending at once. Those of one `handle` leave in one write. A
reply later than `REPLY_TIMEOUT` aborts the connection. So does an error `READONLY`, by which a master has become a
replica. Each pending command then receives a `Failure` at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

from svc_proto.basics.errors import RemoteProtocolError
from svc_proto.commands import CloseWrite, Connect, Level
from svc_proto.engine.channel import Channel
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, run_operation, wait
from svc_proto.facts import ChannelId, Failure, FailureKind
from svc_proto.wire.limits import DEFAULT_LIMITS
from svc_proto.wire.resp import Argument, Push, RespError, RespReader, encode_command

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

REPLY_TIMEOUT = 2.0  # s for a reply; then the connection is aborted
CONNECT_TIMEOUT = 0.5  # s; the server is close, and the end of a network failure must be detected soon
MAX_PENDING = 10_000  # commands without a reply; a further one fails at once
LINGER = 0.5  # s from our last command to the server's FIN, when the process stops

Reply: TypeAlias = object
"""A RESP3 value, or a `Failure`, also for an error of the server."""

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
    """Connect, greet and subscribe; return the connection after the replies to the greetings, or the first failure.

    `judge` checks the reply to HELLO. A confirmation of the subscription is not awaited.
    """
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
    """Send all greetings and the subscription at once; return the first failure of the greetings, or None.

    `judge` may return a failure for the reply to the first greeting.
    """
    engine, answers = link.engine, list[Reply]()
    ticket = engine.new_op()

    def on_reply(answer: Reply) -> None:
        answers.append(answer)
        if len(answers) == len(greetings) or isinstance(answer, Failure):
            engine.resume(ticket, None)

    for greeting in greetings:
        link.send_command(greeting, on_reply)
    if channels:
        link.send_command(("SUBSCRIBE", *channels), None, answered=False)
    yield from wait(ticket, engine.now.mono + REPLY_TIMEOUT)
    if len(answers) < len(greetings):
        answers.append(CONNECTION_LOST)
    return next((answer for answer in answers if isinstance(answer, Failure)), None) or judge(answers[0])


def hello_command(user: str, password: str) -> tuple[Argument, ...]:
    """Return the command HELLO for RESP3, with credentials if there is a password."""
    return ("HELLO", 3, "AUTH", user or "default", password) if password else ("HELLO", 3)


class RedisConnection(Channel):
    """Redis connection. A stopping engine stops it last, since requests that are being finished may need it."""

    survives_stop = True

    __slots__ = ("_closing", "_on_push_message", "_out", "_pending", "_reader", "_watch", "over")

    def __init__(self, engine: Engine, ch: ChannelId, heard: Callable[[Push], None]) -> None:
        super().__init__(engine, ch, DEFAULT_LIMITS)
        self.over = engine.new_op()  # resumed when the connection ends
        self._on_push_message = heard
        self._reader = RespReader()
        self._out: list[bytes] = []
        self._pending: deque[tuple[float, Callable[[Reply], object] | None]] = deque()
        self._watch = engine.timers.timer(self._late)
        self._closing = False

    def send_command(
        self, arguments: Sequence[Argument], on_reply: Callable[[Reply], object] | None, *, answered: bool = True
    ) -> Failure | None:
        """Send a command; `on_reply` gets its reply or `Failure` once, unless a `Failure` is returned here.

        A command with `answered` False has no reply of its own.
        """
        if self.gone or self._closing:
            return CONNECTION_LOST
        if self._is_full:
            return TOO_MANY_PENDING
        self._out.append(encode_command(*arguments))
        if answered:
            self._pending.append((self.engine.now.mono, on_reply))
            if self._watch.when is None:
                self._watch.set(self.engine.now.mono + REPLY_TIMEOUT)
        self.mark_dirty()
        return None

    @property
    def _is_full(self) -> bool:
        return len(self._pending) >= MAX_PENDING or self.credit.unsent > self.limits.max_unsent

    def execute(self, *arguments: Argument) -> Flow[Reply]:
        """Execute one command and return its reply; a `Failure` without a reply, and for an error of the server."""
        ticket = self.engine.new_op()
        problem = self.send_command(arguments, partial(self.engine.resume, ticket))
        if problem is not None:
            return problem
        return (yield from wait(ticket, self.engine.now.mono + 2 * REPLY_TIMEOUT))

    # --- facts ---

    def received(self, data: bytes) -> None:
        """Parse replies and messages, and pass them on; abort if the bytes are not RESP."""
        if self.gone:
            return
        try:
            for value in self._reader.feed(data):
                self._on_reply(value)
        except RemoteProtocolError as error:
            self.engine.log(Level.ERROR, "cluster speaks no RESP", problem=str(error))
            self.abort()

    def read_closed(self) -> None:
        """Abort: the server closes."""
        self.abort()

    def closed(self, why: str) -> None:
        """Fail all pending commands, and resume the flow that waits for the end."""
        super().closed(why)
        self._watch.retire()
        pending, self._pending = self._pending, deque()
        for _, on_reply in pending:
            if on_reply is not None:
                on_reply(CONNECTION_LOST)
        self.engine.resume(self.over, None)

    def stop(self) -> None:
        """Send the remaining commands and a FIN; abort if the server does not close within `LINGER` seconds."""
        if self._closing:
            return
        self._closing = True
        self._watch.set(self.engine.now.mono + LINGER)
        self.mark_dirty()

    def reads_while_unsent(self) -> bool:
        """Return True: only replies make room for more commands."""
        return True

    def flush(self) -> None:
        """Write all commands of this `handle` at once, then a FIN if the connection is closing."""
        if self.gone:
            return
        if self._out:
            data, self._out = b"".join(self._out), []
            self.write(data)
        if self._closing:
            self.engine.emit(CloseWrite(self.ch))

    def _on_reply(self, value: object) -> None:
        if isinstance(value, Push):
            self._on_push_message(value)
        elif self._pending:
            _, on_reply = self._pending.popleft()
            if on_reply is not None:
                on_reply(_failed(value) if isinstance(value, RespError) else value)
            if isinstance(value, RespError) and value.code == _DEMOTED:
                self.abort()
        else:
            raise RemoteProtocolError("an answer to no command")

    def _late(self) -> None:
        now = self.engine.now.mono
        if self._closing or (self._pending and self._pending[0][0] + REPLY_TIMEOUT <= now):
            self.abort()
        elif self._pending:
            self._watch.set(self._pending[0][0] + REPLY_TIMEOUT)


def _failed(error: RespError) -> Failure:
    return Failure(FailureKind.DENIED if error.code in _DENIED else FailureKind.INTERNAL, f"Redis says {error.code}")
