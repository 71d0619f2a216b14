"""Playbooks: dialogues of a test with a core, facts in and expected commands out.

    book = Playbook(engine)
    book >> Accepted(CH, PEER, LOCAL) << []
    book >> Received(CH, b"GET /health HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n") << [SendMatcher(CH, b"HTTP/1.1 200")]
    book.after(30.0) << [Abort(CH)]

Commands must be checked, by `<<` or `drain_commands`: unchecked commands fail the next step, and the end of the
`with` block. Time moves only by `after`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, Self, TypeAlias, TypeVar, cast

from attrs import define, evolve

from svc_proto.basics.moment import Moment
from svc_proto.boundary import Core
from svc_proto.commands import Command, Log, Operation, Send
from svc_proto.engine.channel import Channel
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.facts import Accepted, Address, ChannelId, Done, Fact, Failed, Failure, FailureKind
from svc_proto.wire.limits import DEFAULT_LIMITS

# Time stands still in a playbook, so an unauthenticated connection must never wait for its slice.
PATIENT = evolve(DEFAULT_LIMITS, unauthenticated_burst=1 << 30)
START = Moment(1000.0, 1_800_000_000.0)
CH = ChannelId(2)
MOST_SHOWN = 400  # characters of one fact or command in a message
LOCAL = Address("127.0.0.1", 8767)
PEER = Address("127.0.0.1", 50_000)
REMOTE = Address("203.0.113.7", 50_000)

Check: TypeAlias = "Command | Callable[[Command], bool]"
Order = TypeVar("Order", bound=Operation[Any])
T = TypeVar("T")


def accepted(ch: int = CH, peer: Address = PEER, *, tls: bool = False, alpn: str | None = None) -> Accepted:
    """Return the fact of a new connection from `peer` on channel `ch`."""
    return Accepted(ChannelId(ch), peer, LOCAL, tls, alpn)


def counting_entropy() -> Callable[[int], bytes]:
    """Return an entropy source that gives the same bytes in every run, from a counter of its calls."""
    state = 0

    def entropy(n: int) -> bytes:
        nonlocal state
        if n > 64:  # an amount for many uses at once
            return b"".join(entropy(16) for _ in range(-(-n // 16)))[:n]
        state += 1
        seed = state.to_bytes(8, "big")
        return (seed[::-1] * (n // 8 + 1))[:n]

    return entropy


class IdleService:
    """Service that does nothing by itself."""

    def bind(self, engine: Engine) -> None:
        self.engine = engine

    def on_started(self) -> None: ...

    def on_accepted(self, fact: Accepted) -> Channel | None:
        return None

    def on_stopping(self) -> None: ...


class FlowService(IdleService):
    """Service that runs one flow at its start; the result is added to `results`, an exception to `errors`."""

    def __init__(self, flow: Callable[[Engine], Flow[Any]]) -> None:
        self.flow = flow
        self.results: list[Any] = []
        self.errors: list[Exception] = []

    def on_started(self) -> None:
        self.task = self.engine.spawn(self._whole(), on_done=self.results.append, on_error=self.errors.append)

    def _whole(self) -> Flow[Any]:
        return (yield from self.flow(self.engine))


def make_flow(value: T) -> Flow[T]:
    """Return a flow that returns `value` without waiting."""
    yield from ()
    return value


def run_flow(flow: Flow[T]) -> T:
    """Return the result of a flow that does not wait."""
    try:
        next(flow)
    except StopIteration as ended:
        return cast("T", ended.value)
    raise AssertionError("the flow waits")


@define
class SendMatcher:
    """Matcher of a `Send` on a channel whose bytes have a given beginning and part."""

    ch: int
    startswith: bytes = b""
    contains: bytes = b""

    def __call__(self, command: Command) -> bool:
        return (
            isinstance(command, Send)
            and command.ch == self.ch
            and command.data.startswith(self.startswith)
            and self.contains in command.data
        )


def wire_bytes(commands: Iterable[Command], ch: int = CH) -> bytes:
    """Return the bytes of all `Send` commands for a channel."""
    return b"".join(command.data for command in commands if isinstance(command, Send) and command.ch == ch)


class Logs(list[Log]):
    """List of the log records of a core; a record of a bug in the product fails the test, unless `bugs` is set."""

    bugs = False

    def append(self, record: Log) -> None:
        super().append(record)
        assert self.bugs or record.event != "bug" or "/tests/" in str(record.fields["at"]), record.fields


class Playbook:
    """Dialogue of a test with one core. Log records are collected in `logs`."""

    def __init__(self, core: Core) -> None:
        self.core = core
        self.now = START
        self.logs = Logs()
        self._commands: list[Command] = []
        self._checked = True
        self._history: list[object] = []  # facts and commands, formatted only for a failure

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if kind is None:
            self._require_checked()

    def __rshift__(self, fact: Fact) -> Self:
        self._require_checked()
        self._step(fact)
        return self

    def __lshift__(self, expected: list[Check]) -> Self:
        self._checked = True
        found = self._commands
        matched = len(found) == len(expected) and all(
            check(command) if callable(check) else check == command
            for check, command in zip(expected, found, strict=True)
        )
        if not matched:
            lines = [*map(_line, self._history), "expected:", *map(_short, expected), "got:", *map(_short, found)]
            raise AssertionError("\n".join(["the playbook went another way", *lines]))
        return self

    def after(self, seconds: float) -> Self:
        """Advance the clock by `seconds`, and call the core at each deadline until then, and at the end."""
        self._require_checked()
        end = self.now.mono + seconds
        gathered: list[Command] = []
        while (due := self.core.next_deadline()) is not None and due <= end:
            self.now = self.now.at(max(due, self.now.mono))
            self._step(None)
            gathered += self._commands
        self.now = self.now.at(end)
        self._step(None)
        self._commands = gathered + self._commands
        self._checked = not self._commands
        return self

    def act(self, call: Callable[[], object]) -> Self:
        """Call a function inside `handle` of the engine; the next `<<` checks its commands."""
        self._require_checked()
        cast("Engine", self.core).timers.timer(lambda: _ignore_result(call())).set(self.now.mono)
        self._step(None)
        return self

    def drain_commands(self) -> list[Command]:
        """Return the commands of the last step, which counts as checked."""
        self._checked = True
        return self._commands

    def order(self, kind: type[Order]) -> Order:
        """Return the only operation of the type `kind` among the commands of the last step, which counts as checked."""
        (found,) = [command for command in self.drain_commands() if isinstance(command, kind)]
        return found

    def answer(self, operation: Operation[object], result: object) -> Self:
        """Report that the runtime has executed an operation with `result`."""
        return self >> Done(operation.op, result)

    def fail(self, operation: Operation[object], kind: FailureKind = FailureKind.INTERNAL) -> Self:
        """Report that the runtime failed to execute an operation."""
        return self >> Failed(operation.op, Failure(kind))

    def _step(self, fact: Fact | None) -> None:
        self._history.append((self.now.mono, fact))
        commands = self.core.handle(fact, self.now)
        self._commands = [command for command in commands if not isinstance(command, Log)]
        self._history += self._commands
        self._checked = not self._commands
        for command in commands:
            if isinstance(command, Log):
                self.logs.append(command)

    def _require_checked(self) -> None:
        if not self._checked:
            raise AssertionError("these commands were never checked:\n" + "\n".join(map(_short, self._commands)))


def _ignore_result(result: object) -> None:
    pass


def _line(entry: object) -> str:
    match entry:
        case (mono, fact):
            return f">> {_short(fact)} at {mono}"
        case _:
            return f"<< {_short(entry)}"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}… ({len(text)} characters)"
