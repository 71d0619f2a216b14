"""A world for one chore: a scripted server behind every connection, files, host work, a clock that jumps."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from attrs import define, field

from svc_proto.basics.moment import Moment
from svc_proto.client.chore import Chore
from svc_proto.commands import (
    Abort,
    Cancel,
    Command,
    Compute,
    Connect,
    Connected,
    EnsureSecret,
    Exit,
    Log,
    OpenedFile,
    OpenFile,
    Operation,
    PauseReading,
    ReadConfig,
    ReadFile,
    Ready,
    ResumeReading,
    Send,
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
    Closed,
    Done,
    Fact,
    Failed,
    Failure,
    FailureKind,
    OperationId,
    ReadClosed,
    Received,
    Sent,
    Started,
)
from svc_proto.wire.connection import Connection, Role
from svc_proto.wire.events import (
    AcceptSocket,
    Headers,
    RequestData,
    RequestEnd,
    RequestHead,
    ResponseData,
    ResponseEnd,
    ResponseHead,
    StreamId,
    TextMessage,
)
from svc_proto.wire.http1 import Http1Connection
from tests.playbook import START, Logs, accepted, counting_entropy

__all__ = ["REFUSED", "SILENT", "STDIO", "Answer", "Asked", "World", "as_json"]

T = TypeVar("T")
STDIO = ChannelId(2)
REFUSED = Failure(FailureKind.UNREACHABLE, "connection refused")
SILENT = object()  # an answer that never comes
NO_FILE = Failure(FailureKind.NOT_FOUND)


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


@define
class _Line:
    """One connection: the server's half of the wire."""

    url: str
    conn: Connection
    asked: Asked | None = None
    upgraded: bool = False
    open: bool = False  # its answer goes on


@define
class World(Generic[T]):
    """Make one with a plan, set what it needs, `run` it."""

    plan: Callable[[Engine], Flow[T]]
    http: Callable[[Asked], Answer] = field(default=lambda asked: REFUSED)
    connect: Callable[[str, int], Failure | None] = field(default=lambda host, port: None)
    socket: Callable[[Mapping[str, Any]], list[Mapping[str, Any]] | None] | None = None  # a WebSocket's answers
    fields: Callable[[Asked], list[tuple[bytes, bytes]]] | None = None  # more headers of an answer
    cut: int = 0  # bytes of an answer of more than that after which the line breaks; 0: never
    compute: dict[str, Callable[..., object]] = field(factory=dict)
    files: dict[str, bytes | Failure] = field(factory=dict)
    configs: dict[str, str | Failure] = field(factory=dict)
    written_configs: dict[str, str | Failure] = field(factory=dict)  # by name; a `Failure` refuses
    secret: bytes | Failure = bytes(range(32))
    programs: dict[str, bytes | Failure] = field(factory=dict)  # what a command line prints
    lasting: dict[str, ChannelId] = field(factory=dict)  # command lines that do not end by themselves, once they run
    kind: bytes = b"application/json"  # of what the server answers, if it is no event stream
    open_ended: bool = False  # event streams do not end by themselves: see `unfinished`
    watched: bool = False
    stdio: bool = False
    chore: Chore[T] | None = None  # instead of one that is made of the plan
    script: list[tuple[float, Callable[[World[T]], None]]] = field(factory=list)  # s from the start on, what happens
    now: Moment = START
    screen: str = ""  # what went to standard output
    stuck: bool = False  # standard output takes no more
    held: dict[ChannelId, bool] = field(factory=dict)
    told: list[Tell] = field(factory=list)
    asked: list[Asked] = field(factory=list)
    written: bytes = b""  # to programs that last
    said: list[Mapping[str, Any]] = field(factory=list)  # over WebSockets
    logs: Logs = field(factory=Logs)
    exit: Exit | None = None
    _facts: deque[Fact] = field(factory=deque)
    _lines: dict[ChannelId, _Line] = field(factory=dict)
    _silent: dict[str, OperationId] = field(factory=dict)
    _handles: dict[int, bytes] = field(factory=dict)

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
        chore = self.chore or Chore(self.plan, watched=self.watched)
        core = Engine(chore, entropy=counting_entropy())
        self._facts.append(Started())
        start = self.now.mono
        while self.exit is None:
            if self._facts:
                commands = core.handle(self._facts.popleft(), self.now)
            else:
                due = core.next_deadline()
                if self.script and (due is None or start + self.script[0][0] <= due):
                    after, happen = self.script.pop(0)
                    self.now = self.now.at(max(start + after, self.now.mono))
                    happen(self)
                    continue
                assert due is not None, "it waits for ever"
                assert due <= start + until, "it takes too long"
                self.now = self.now.at(max(due, self.now.mono))
                commands = core.handle(None, self.now)
            for command in commands:
                self._carry_out(command)
        return chore

    # --- for scripts ---

    def keys(self, data: bytes | None) -> None:
        """Somebody types, or standard input ends."""
        self._facts.append(ReadClosed(STDIO) if data is None else Received(STDIO, data))

    def unstick(self, n: int) -> None:
        """The screen has taken so much."""
        self.stuck = False
        self._facts.append(Sent(STDIO, n))

    def hang_up(self) -> None:
        """The screen is gone."""
        self._facts.append(Closed(STDIO, "gone"))

    def push(self, message: Mapping[str, Any]) -> None:
        """The relay says something over the last WebSocket."""
        ch, line = next((ch, line) for ch, line in reversed(self._lines.items()) if line.upgraded)
        line.conn.send(TextMessage(StreamId(1), json.dumps(message)))
        self._flush(ch, line)

    def unfinished(self, body: bytes, *, end: bool = False) -> None:
        """More of the first answer that was left open."""
        ch, line = next((ch, line) for ch, line in self._lines.items() if line.open)
        line.conn.send(ResponseData(StreamId(1), body))
        if end:
            line.conn.send(ResponseEnd(StreamId(1)))
        self._flush(ch, line)

    def drop(self, why: str = "reset") -> None:
        """Every connection breaks."""
        for ch in list(self._lines):
            del self._lines[ch]
            self._facts.append(Closed(ch, why))

    def answer(self, name: str, result: object) -> None:
        """Host work that was `SILENT` is done at last."""
        self._answer(self._silent[name], result)

    def enter(self, fact: Fact) -> None:
        """Something else happens."""
        self._facts.append(fact)

    def _carry_out(self, command: Command) -> None:
        match command:
            case Exit():
                self.exit = command
            case Tell():
                self.told.append(command)
            case Log():
                self.logs.append(command)
            case Ready() if self.stdio:
                self._facts.append(accepted(STDIO, Address("stdio", 0)))
            case PauseReading(ch=ch) | ResumeReading(ch=ch):
                self.held[ch] = isinstance(command, PauseReading)
            case Send(ch=ch, data=data):
                self._take(ch, data)
            case Abort(ch=ch):
                if self._lines.pop(ch, None) is not None:
                    self._facts.append(Closed(ch))
            case Cancel(op=op):
                self._facts.append(Failed(op, Failure(FailureKind.CANCELLED)))
            case Operation():
                self._operate(command)
            case _:
                pass

    def _take(self, ch: ChannelId, data: bytes) -> None:
        if ch == STDIO:
            self.screen += data.decode()
        if ch != STDIO or not self.stuck:
            self._facts.append(Sent(ch, len(data)))
        if ch != STDIO:
            self._serve(ch, data)
        if ch in self.lasting.values():
            self.written += data

    def _operate(self, command: Operation[Any]) -> None:
        match command:
            case Connect():
                self._connect(command)
            case Spawn():
                self._spawn(command)
            case Compute(op=op, name=name, args=args):
                function = self.compute.get(name)
                self._silent[name] = op  # should it be answered later
                self._answer(op, Failure(FailureKind.UNSUPPORTED) if function is None else function(*args))
            case OpenFile(op=op, path=path):
                data = self.files.get(path, NO_FILE)
                if isinstance(data, bytes):
                    self._handles[op] = data
                self._answer(op, OpenedFile(op, path, len(data), 0.0) if isinstance(data, bytes) else data)
            case ReadFile(op=op, handle=handle):
                self._answer(op, self._handles[handle])
            case ReadConfig(op=op, name=name):
                self._answer(op, self.configs.get(name, NO_FILE))
            case WriteConfig(op=op, name=name, text=text):
                refused = self.written_configs.get(name)
                if not isinstance(refused, Failure):
                    self.written_configs[name] = text
                self._answer(op, refused if isinstance(refused, Failure) else None)
            case EnsureSecret(op=op):
                self._answer(op, self.secret)
            case _:
                raise AssertionError(f"nobody carries out {command}")

    def _answer(self, op: Any, result: object) -> None:
        if result is SILENT:
            return
        self._facts.append(Failed(op, result) if isinstance(result, Failure) else Done(op, result))

    def _connect(self, command: Connect) -> None:
        problem = self.connect(command.host, command.port)
        if problem is not None:
            self._answer(command.op, problem)
            return
        url = f"{'https' if command.tls else 'http'}://{command.host}:{command.port}"
        self._lines[command.ch] = _Line(url, Http1Connection(Role.SERVER, entropy=counting_entropy()))
        self._facts.append(Done(command.op, Connected(Address(command.host, command.port))))

    def _spawn(self, command: Spawn) -> None:
        output = self.programs.get(" ".join(command.argv), Failure(FailureKind.NOT_FOUND))
        if isinstance(output, Failure):
            self._answer(command.op, output)
            return
        self._facts.append(Done(command.op, Spawned(1)))
        if output:
            self._facts.append(Received(command.ch, output))
        if self.lasting.get(" ".join(command.argv)) is not None:
            self.lasting[" ".join(command.argv)] = command.ch
        else:
            self._facts.append(Closed(command.ch, exit=0))

    def _serve(self, ch: ChannelId, data: bytes) -> None:
        line = self._lines.get(ch)
        if line is None:
            return
        line.conn.receive_data(data)
        while (event := line.conn.next_event()) is not None:
            match event:
                case RequestHead(method=method, target=target, headers=headers, websocket=websocket, stream=stream):
                    line.asked = Asked(method, line.url + target, headers)
                    if websocket and self.socket is not None:
                        line.conn.send(AcceptSocket(stream))
                        line.upgraded = True
                case RequestData(data=body):
                    assert line.asked is not None
                    line.asked.body += body
                case RequestEnd(stream=stream):
                    assert line.asked is not None
                    self.asked.append(line.asked)
                    self._respond(line, stream, ch)
                case TextMessage(text=text, stream=stream):
                    message = json.loads(text)
                    self.said.append(message)
                    assert self.socket is not None
                    answers = self.socket(message)
                    if answers is None:
                        self._lines.pop(ch)
                        self._facts.append(Closed(ch, "reset"))
                        return
                    for answer in answers:
                        line.conn.send(TextMessage(stream, json.dumps(answer)))
                case _:
                    pass
        self._flush(ch, line)

    def _respond(self, line: _Line, stream: Any, ch: ChannelId) -> None:
        assert line.asked is not None
        answer = self.http(line.asked)
        if isinstance(answer, Failure):
            self._lines.pop(ch)
            self._facts.append(Closed(ch, answer.detail))
        elif isinstance(answer, tuple):
            status, body = answer
            kind = b"text/event-stream" if body.startswith((b"event:", b"data:")) else self.kind
            more = self.fields(line.asked) if self.fields is not None else []
            line.open = self.open_ended and kind == b"text/event-stream"
            size = [] if line.open else [(b"content-length", b"%d" % len(body))]
            headers = Headers([(b"content-type", kind), *size, *more])
            line.conn.send(ResponseHead(stream, status, headers))
            if body:
                line.conn.send(ResponseData(stream, body))
            if not line.open:
                line.conn.send(ResponseEnd(stream))

    def _flush(self, ch: ChannelId, line: _Line) -> None:
        data = line.conn.data_to_send()
        if self.cut and len(data) > self.cut * 2:
            self._facts += [Received(ch, data[: -self.cut]), Closed(ch, "reset")]
            self._lines.pop(ch)
        elif data:
            self._facts.append(Received(ch, data))
