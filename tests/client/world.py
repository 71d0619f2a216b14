"""A world for one chore: a scripted server behind every connection, files, host work, a clock that jumps."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from attrs import Factory, define, field

from svc_proto.client.chore import Chore
from svc_proto.commands import (
    Compute,
    Connect,
    Exit,
    Level,
    Operation,
    Ready,
    Spawn,
    Spawned,
    Tell,
    WriteConfig,
)
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.facts import (
    Address,
    ChannelId,
    Done,
    Fact,
    Failed,
    Failure,
    FailureKind,
    OperationId,
    ReadClosed,
    Received,
    Started,
)
from svc_proto.wire.connection import Role
from svc_proto.wire.events import (
    AcceptSocket,
    Event,
    Headers,
    RequestData,
    RequestEnd,
    RequestHead,
    ResponseData,
    ResponseEnd,
    ResponseHead,
    TextMessage,
)
from svc_proto.wire.http1 import Http1Connection
from tests.book import Book, Ear, End, Node
from tests.http_book import FIRST, Peer
from tests.playbook import accepted, counting_entropy

__all__ = ["REFUSED", "SILENT", "STDIO", "Answer", "Asked", "World", "as_json"]

T = TypeVar("T")
STDIO = ChannelId(2)
TERMINAL = Address("stdio", 0)
REFUSED = Failure(FailureKind.UNREACHABLE, "connection refused")
SILENT = object()  # an answer that never comes
NO_PROGRAM = Failure(FailureKind.NOT_FOUND)


@define
class Asked:
    """A request as the scripted server got it."""

    method: str
    url: str  # scheme, host, port and target
    headers: Headers
    body: bytes = b""

    @property
    def path(self) -> str:
        return "/" + self.url.split("/", 3)[3]

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def as_json(value: object, status: int = 200) -> tuple[int, bytes]:
    """An answer."""
    return status, json.dumps(value).encode()


Answer = tuple[int, bytes] | Failure | object


@define(eq=False)
class Line(Peer):
    """One connection: the server's half of the wire."""

    world: World[Any] = field(kw_only=True)
    url: str = field(kw_only=True)
    request: Asked | None = None
    upgraded: bool = False
    open: bool = False  # its answer goes on

    def on_event(self, event: Event) -> None:
        world = self.world
        match event:
            case RequestHead(method=method, target=target, headers=headers, websocket=websocket, stream=stream):
                self.request = Asked(method, self.url + target, headers)
                self.upgraded = websocket and world.socket is not None
                if self.upgraded:
                    self.conn.send(AcceptSocket(stream))
            case RequestData(data=body) if self.request is not None:
                self.request.body += body
            case RequestEnd() if self.request is not None:
                world.asked.append(self.request)
                self._respond(self.request)
            case TextMessage(text=text, stream=stream):
                message = json.loads(text)
                world.said.append(message)
                assert world.socket is not None
                answers = world.socket(message)
                if answers is None:
                    self.finish("reset")
                for answer in answers or ():
                    self.conn.send(TextMessage(stream, json.dumps(answer)))
            case _:
                pass

    def flush(self) -> None:
        data, cut = self.conn.data_to_send(), self.world.cut
        broken = bool(cut) and len(data) > cut * 2
        if data and not self.gone:
            self.node.post(Received(self.ch, data[:-cut] if broken else data))
        if broken:
            self.finish("reset")

    def close_write(self) -> None:
        """It has more to say, perhaps."""

    def abort(self) -> None:
        self.finish()

    def _respond(self, asked: Asked) -> None:
        world = self.world
        answer = world.http(asked)
        if isinstance(answer, Failure):
            self.finish(answer.detail)
        elif isinstance(answer, tuple):
            status, body = answer
            kind = b"text/event-stream" if body.startswith((b"event:", b"data:")) else world.kind
            more = world.fields(asked) if world.fields is not None else []
            self.open = world.open_ended and kind == b"text/event-stream"
            size = [] if self.open else [(b"content-length", b"%d" % len(body))]
            self.conn.send(ResponseHead(FIRST, status, Headers([(b"content-type", kind), *size, *more])))
            self.go_on(body, end=not self.open)

    def go_on(self, body: bytes, *, end: bool) -> None:
        """More of an answer."""
        if body:
            self.conn.send(ResponseData(FIRST, body))
        if end:
            self.conn.send(ResponseEnd(FIRST))


@define(eq=False)
class Sink(Ear):
    """Standard output, or a program that lasts: `take` gets what goes there."""

    take: Callable[[bytes], None] = field(kw_only=True)

    def hear(self, data: bytes) -> None:
        self.take(data)


@define(eq=False, slots=False)
class World(Book, Generic[T]):
    """Make one with a plan, set what it needs, `run` it."""

    plan: Callable[[Engine], Flow[T]]
    http: Callable[[Asked], Answer] = field(default=lambda asked: REFUSED)
    dial: Callable[[str, int], Failure | None] = field(default=lambda host, port: None)
    socket: Callable[[Mapping[str, Any]], list[Mapping[str, Any]] | None] | None = None  # a WebSocket's answers
    fields: Callable[[Asked], list[tuple[bytes, bytes]]] | None = None  # more headers of an answer
    cut: int = 0  # bytes of an answer of more than that after which the line breaks; 0: never
    compute: dict[str, Callable[..., object]] = field(factory=dict)
    files: dict[str, bytes] = field(factory=dict)  # that are there from the start on
    programs: dict[str, bytes | Failure] = field(factory=dict)  # what a command line prints
    lasting: dict[str, ChannelId] = field(factory=dict)  # command lines that do not end by themselves, once they run
    kind: bytes = b"application/json"  # of what the server answers, if it is no event stream
    open_ended: bool = False  # event streams do not end by themselves: see `unfinished`
    watched: bool = False
    stdio: bool = False
    chore: Chore[T] = field(default=Factory(lambda self: Chore(self.plan, watched=self.watched), takes_self=True))
    script: list[tuple[float, Callable[[World[T]], None]]] = field(factory=list)  # s from the start on, what happens
    screen: str = ""  # what went to standard output
    told: list[Tell] = field(factory=list)
    asked: list[Asked] = field(factory=list)
    written: bytes = b""  # to programs that last
    said: list[Mapping[str, Any]] = field(factory=list)  # over WebSockets
    exit: Exit | None = None
    lines: list[Line] = field(factory=list)
    silent: dict[str, OperationId] = field(factory=dict)  # work whose answer is still to come

    def __attrs_post_init__(self) -> None:
        super().__init__(self.chore, log_level=Level.INFO)
        self.node.operations.handlers[Ready] = self._ready
        for path, data in self.files.items():
            self.disk.put(path, data)

    def run(self, *, until: float = 1000.0) -> T:
        """What the plan returned; AssertionError with the exit when it ended otherwise."""
        chore = self.go(until=until)
        assert self.exit == Exit(0), self.exit
        return chore.result

    def fails(self) -> Exit:
        """How a plan ended that must not succeed."""
        self.go()
        assert self.exit is not None
        assert self.exit.code
        return self.exit

    def go(self, *, until: float = 1000.0) -> Chore[T]:
        start = self.clock.now
        self.feed(Started())
        while not self.exits:
            due = self.next_deadline()
            if self.script and (due is None or start + self.script[0][0] <= due):
                after, happen = self.script.pop(0)
                self.clock.now = max(start + after, self.clock.now)
                happen(self)
                self.settle()
                continue
            assert due is not None, "it waits for ever"
            assert due <= start + until, "it takes too long"
            self.wake(due)
        (self.exit,) = self.exits
        self.told = [command for command in self.commands if isinstance(command, Tell)]
        return self.chore

    # --- for scripts ---

    @property
    def terminal(self) -> End:
        """Standard output."""
        end: End = self.node.ends[STDIO]
        return end

    @property
    def stalled(self) -> bool:
        """Whether the connections are not read."""
        return any(line.held for line in self.lines)

    def sit_down(self) -> None:
        """Somebody has a terminal."""
        self.plug_in(self.node, lambda node, ch: Sink(node, ch, take=self._show))
        self.enter(accepted(STDIO, TERMINAL))

    def keys(self, data: bytes | None) -> None:
        """Somebody types, or standard input ends."""
        self.enter(ReadClosed(STDIO) if data is None else Received(STDIO, data))

    def stick(self) -> None:
        """The screen takes no more."""
        self.terminal.reads = False

    def unstick(self) -> None:
        """It has taken everything."""
        self.terminal.read_on()

    def hang_up(self) -> None:
        """The screen is gone."""
        self.terminal.finish("gone")

    def push(self, message: Mapping[str, Any]) -> None:
        """The relay says something over the last WebSocket."""
        line = next(line for line in reversed(self.lines) if line.upgraded and not line.gone)
        line.conn.send(TextMessage(FIRST, json.dumps(message)))
        line.flush()

    def unfinished(self, body: bytes, *, end: bool = False) -> None:
        """More of the first answer that was left open."""
        line = next(line for line in self.lines if line.open and not line.gone)
        line.go_on(body, end=end)
        line.flush()

    def drop(self, why: str = "reset") -> None:
        """Every connection breaks."""
        for line in self.lines:
            line.finish(why)

    def answer(self, name: str, result: object) -> None:
        """Host work that was `SILENT` is done at last."""
        self._answer(self.silent[name], result)

    def enter(self, fact: Fact) -> None:
        """Something else happens."""
        self.node.post(fact)

    def _show(self, data: bytes) -> None:
        self.screen += data.decode()

    # --- the runtime ---

    @property
    def written_configs(self) -> dict[str, str]:
        """What was to be kept in the service home, by name."""
        return {command.name: command.text for command in self.commands if isinstance(command, WriteConfig)}

    def perform(self, node: Node, operation: Operation[Any]) -> None:
        """See `Book`."""
        match operation:
            case Spawn():
                self._spawn(operation)
            case Compute(op=op, name=name, args=args):
                function = self.compute.get(name)
                self.silent[name] = op  # should it be answered later
                self._answer(op, Failure(FailureKind.UNSUPPORTED) if function is None else function(*args))
            case _:
                super().perform(node, operation)

    def _answer(self, op: OperationId, result: Any) -> None:
        if result is not SILENT:
            self.node.post(Failed(op, result) if isinstance(result, Failure) else Done(op, result))

    def connect(self, node: Node, order: Connect) -> Any:
        """See `Book`."""
        problem = self.dial(order.host, order.port)
        if problem is not None:
            return problem
        url = f"{'https' if order.tls else 'http'}://{order.host}:{order.port}"
        conn = Http1Connection(Role.SERVER, entropy=counting_entropy())
        self.lines.append(Line(node, order.ch, conn=conn, world=self, url=url))
        return self.lines[-1]

    def _ready(self, command: Ready) -> None:
        if self.stdio:
            self.sit_down()

    def _write(self, data: bytes) -> None:
        self.written += data

    def _spawn(self, command: Spawn) -> None:
        line = " ".join(command.argv)
        output = self.programs.get(line, NO_PROGRAM)
        if isinstance(output, Failure):
            self._answer(command.op, output)
            return
        program = self.node.ends[command.ch] = Sink(self.node, command.ch, take=self._write)
        self._answer(command.op, Spawned(1))
        if output:
            self.node.post(Received(command.ch, output))
        if self.lasting.get(line) is not None:
            self.lasting[line] = command.ch
        else:
            program.finish(status=0)
