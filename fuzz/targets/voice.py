"""The sockets of voice sessions: whatever clients say, in whatever order sockets come and go, and time passes.

The first byte of an input chooses the family: output, lab or agent. Then each line is a deed:

    ~1      the socket that owns the session is lost, with the code that the digit names
    +       another socket comes, and speaks from now on
    -       the first socket that is still there speaks from now on
    |  and  /    the one that speaks stops reading, and reads again
    .2      time passes, as much as the digit names
    ?       the disk fails from now on
    else    it says this; `{token}` stands for the resume token
"""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any, TypeVar, cast

from svc_proto.basics.errors import Refused
from svc_proto.basics.moment import Moment
from svc_proto.commands import AppendFile, Cancel, Command, Level, Log, Operation, SweepFolder
from svc_proto.engine.channel import Channel
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.engine.socket import Socket, SocketHandler
from svc_proto.facts import Accepted, Done, Fact, Failed, Failure, FailureKind, Started
from svc_proto.relay.voice_side import FAMILIES
from svc_proto.voice.principal import Principal
from svc_proto.voice.service import Voice
from svc_proto.voice_config import VoiceConfig

__all__ = ["VoiceEngine", "voice"]

T = TypeVar("T")
ORDER = ("output", "lab", "agent")
NUMBERED = ("output", "agent")
LOST_WITH = (1006, 1000, 1001, 1005, 4999)
TIMES = (0.0, 0.3, 5.0, 29.9, 31.0, 61.0, 121.0, 400.0)  # s
CODES = (1000, 1001, 1008, 1009, 1011, 1013, 4000, 4003, 4008, 4009)
MOST_DEEDS = 200
MOST_SOCKETS = 40
FOR_EVER = 10_000.0  # s: longer than anything of a session may last
PRINCIPAL = Principal(kind="session", device_id="phone", bearer_hash="a" * 64)


def voice(data: bytes) -> None:
    """No bug, ids that rise, replays that are as they were, known close codes, and in the end nothing is left."""
    game = _Game(ORDER[(data or b"0")[0] % len(ORDER)])
    for line in data[1:].split(b"\n")[:MOST_DEEDS]:
        game.deed(line.decode("utf-8", "replace"))
    game.end()


class _Client:
    """One socket, from both sides."""

    def __init__(self, game: _Game, number: int, handler: SocketHandler) -> None:
        self._game = game
        self.handler = handler
        self.number = number
        self.writable = True
        self.gone = False
        self.last = 0  # the last id that was no replay

    def send_text(self, text: str) -> bool:
        assert not self.gone, "something was said to a socket that has closed"
        self._game.heard(self, json.loads(text), text)
        return True

    def close(self, code: int = 1000, reason: str = "") -> None:
        assert code in CODES, f"closed with {code}"
        assert len(reason.encode()) <= 123, "the reason does not fit a close frame"
        self.gone = True

    def ping_every(self, seconds: float) -> None:
        assert seconds == 20.0, "another ping interval"


class VoiceEngine:
    """An engine without a service: what is called happens inside of a `handle`, its disk is a dict, time is moved."""

    def __init__(self, now: Moment, entropy: Callable[[int], bytes], log_level: Level = Level.INFO) -> None:
        self.now = now
        self.engine = Engine(_Nothing(), entropy=entropy, log_level=log_level)
        self.disk: dict[str, bytes] = {}
        self.disk_problem: FailureKind | None = None
        self.logs: list[Log] = []
        self.handle(Started())

    def handle(self, fact: Fact | None) -> list[Command]:
        """Give the engine a fact and carry out what it orders; what is left is returned."""
        left: list[Command] = []
        facts = [fact]
        while facts:
            for command in self.engine.handle(facts.pop(0), self.now):
                match command:
                    case Log():
                        assert command.event != "bug", f"a bug: {command}"
                        self.logs.append(command)
                    case Cancel(op=op):
                        facts.append(Failed(op, Failure(FailureKind.CANCELLED)))
                    case Operation() if (answer := self.perform(command)) is not None:
                        facts.append(answer)
                    case _:
                        left.append(command)
        return left

    def perform(self, order: Operation[Any]) -> Fact | None:
        """The disk's answer; nothing else can be reached."""
        if self.disk_problem is not None:
            return Failed(order.op, Failure(self.disk_problem))
        match order:
            case AppendFile(op=op, data=data, name=name, head=head):
                whole = self.disk.get(name, b"") + data
                self.disk[name] = head + whole[len(head) :]
                return Done(op, len(whole))
            case SweepFolder(op=op):
                return Done(op, 0)
            case _:
                return Failed(order.op, Failure(FailureKind.UNREACHABLE))

    def do(self, call: Callable[[], T]) -> T:
        """Call something inside of a `handle`; what it raises is raised here."""
        outcome: list[T] = []
        problem: list[Exception] = []

        def run() -> None:
            try:
                outcome.append(call())
            except Exception as error:  # noqa: BLE001, RUF100 - passed on below
                problem.append(error)

        self.engine.timers.timer(run).set(self.now.mono)
        self.handle(None)
        if problem:
            raise problem[0]
        return outcome[0]

    def flow(self, flow: Flow[T]) -> T:
        """Run a flow that comes to its end without help."""
        results: list[T] = []
        problems: list[Exception] = []
        self.do(lambda: self.engine.spawn(flow, on_done=results.append, on_error=problems.append))
        if problems:
            raise problems[0]
        return results[0]

    def after(self, seconds: float) -> None:
        """Let time pass, waking the engine at each deadline."""
        end = self.now.mono + seconds
        while (due := self.engine.next_deadline()) is not None and due <= end:
            self.now = self.now.at(max(due, self.now.mono))
            self.handle(None)
        self.now = self.now.at(end)


class _Game(VoiceEngine):
    def __init__(self, family: str) -> None:
        super().__init__(Moment(1000.0, 1_800_000_000.0), Random(1).randbytes)
        self.numbered = family in NUMBERED
        self.known: dict[int, str] = {}  # what was told with which id
        self.clients: list[_Client] = []
        self.sockets = 0  # that there have been
        self.speaker: _Client | None = None
        self.family = self.do(lambda: FAMILIES[family](Voice(self.engine, VoiceConfig(home="/home"))))
        self.answer: dict[str, Any] = self.flow(self.family.create({"provider": "stub"}, PRINCIPAL))
        self.token = str(self.answer.get("resume_token", "none"))
        self.come()

    # --- deeds ---

    def deed(self, line: str) -> None:
        speaker = self.speaker
        match line[:1]:
            case "~":
                if speaker is not None:
                    self.leave(speaker, LOST_WITH[_digit(line) % len(LOST_WITH)])
            case "+":
                self.come()
            case "-":
                self.next_speaker()
            case "|":
                if speaker is not None:
                    speaker.writable = False
            case "/":
                if speaker is not None and not speaker.writable:
                    speaker.writable = True
                    self.do(speaker.handler.on_writable)
            case ".":
                self.after(TIMES[_digit(line) % len(TIMES)])
            case "?":
                self.disk_problem = FailureKind.NO_SPACE
            case _:
                self.say(line)
        self.sweep()

    def say(self, line: str) -> None:
        speaker = self.speaker
        if speaker is None:
            self.come()
        elif line.startswith("\x00"):
            self.do(lambda: speaker.handler.on_binary(line.encode()))
        else:
            self.do(lambda: speaker.handler.on_text(line.replace("{token}", self.token)))

    def come(self) -> None:
        if len(self.clients) >= MOST_SOCKETS:
            return
        try:
            handler = self.do(lambda: self.family.open(PRINCIPAL, self.answer["session_id"]))
        except Refused as refused:
            if refused.status not in (404, 410):
                raise
            return
        self.sockets += 1
        client = _Client(self, self.sockets, handler)
        self.clients.append(client)
        self.speaker = client
        self.do(lambda: handler.on_open(cast("Socket", client)))
        self.sweep()

    def leave(self, client: _Client, code: int) -> None:
        client.gone = True
        self.clients.remove(client)
        self.do(lambda: client.handler.on_closed(code, ""))

    def next_speaker(self) -> None:
        self.speaker = self.clients[0] if self.clients else None

    def sweep(self) -> None:
        """Sockets that were closed answer the close frame."""
        for client in [client for client in self.clients if client.gone]:
            self.leave(client, 1000)
        if self.speaker not in self.clients:
            self.next_speaker()

    def heard(self, client: _Client, event: dict[str, Any], text: str) -> None:
        assert isinstance(event["type"], str), "an event without a type"
        assert isinstance(event["at_ms"], float), "an event without a time"
        if not self.numbered:
            assert "event_id" not in event, "an id where there is none"
            return
        number = event["event_id"]
        if event.pop("replayed", False):
            before = self.known.get(number)  # None: it was said while nobody listened
            assert before is None or json.loads(before) == event, "a replay that is not as it was"
            text = json.dumps(event)
        else:
            assert number > client.last, "ids that do not rise"
            client.last = number
        self.known.setdefault(number, text)

    def end(self) -> None:
        """Everybody goes, and time passes."""
        self.disk_problem = None
        for client in list(self.clients):
            self.leave(client, 1006)
        self.after(FOR_EVER)
        assert not self.family.sessions(), "a session is left"
        assert self.engine.next_deadline() is None, "a timer is left"
        logs = [data for name, data in self.disk.items() if name.endswith(".jsonl")]
        for line in b"".join(logs).splitlines():
            assert isinstance(json.loads(line)["unix_ms"], int), "a line without a time"


class _Nothing:
    """A service that does nothing by itself."""

    def bind(self, engine: Engine) -> None:
        """Nothing to keep."""

    def on_started(self) -> None:
        """Nothing to load."""

    def on_accepted(self, fact: Accepted) -> Channel | None:
        """Nobody comes."""
        return None

    def on_stopping(self) -> None:
        """Nothing to end."""


def _digit(line: str) -> int:
    return ord(line[1]) - ord("0") if len(line) > 1 else 0
