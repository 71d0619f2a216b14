"""The gateway and a scripted API server, with the bytes between them passed on at once, in memory."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable
from typing import Any

from clients.gateway.api import ApiSettings
from clients.gateway.service import Gateway
from svc_proto.basics.moment import Moment
from svc_proto.commands import (
    Abort,
    Cancel,
    CloseWrite,
    Command,
    Connect,
    Connected,
    Exit,
    Log,
    OpenedFile,
    OpenFile,
    PauseReading,
    ReadFile,
    Send,
)
from svc_proto.engine.core import Engine
from svc_proto.facts import (
    Accepted,
    Address,
    ChannelId,
    Closed,
    Done,
    Fact,
    Failed,
    Failure,
    FailureKind,
    ReadClosed,
    Received,
    Sent,
    Started,
    Stopping,
)
from tests.peers.api import ScriptedApi
from tests.playbook import LOCAL, PEER, START, counting_entropy

__all__ = ["GatewayBook"]

LINES = ChannelId(2)  # of the client at the gateway
STDIO = Address("stdio", 0)


class GatewayBook:
    """See the module. A channel n of the gateway is channel 2n of the API server."""

    def __init__(self, *, settings: ApiSettings | None = None, key: str = "", resume: str = "") -> None:
        self.api = ScriptedApi(key)
        self.gateway = Gateway(settings or ApiSettings(key=key), resume=resume)
        self.engines = {
            "gateway": Engine(self.gateway, entropy=counting_entropy()),
            "api": Engine(self.api, entropy=counting_entropy()),
        }
        self.now: Moment = START
        self.up = True  # the API server
        self.files: dict[str, bytes] = {}  # one at most
        self.reads = True  # the client
        self.unread = 0
        self.output = b""
        self.commands: list[Command] = []
        self.logs: list[Log] = []
        self._seen = 0
        self._facts: deque[tuple[str, Fact | None]] = deque()
        for name in self.engines:
            self.feed(Started(), to=name)
        self.feed(Accepted(LINES, STDIO, STDIO))

    def feed(self, fact: Fact | None, *, to: str = "gateway") -> None:
        self._facts.append((to, fact))
        while self._facts:
            name, next_fact = self._facts.popleft()
            for command in self.engines[name].handle(next_fact, self.now):
                self._carry_out(name, command)

    def after(self, seconds: float) -> None:
        self.now = self.now.at(self.now.mono + seconds)
        for name in self.engines:
            self.feed(None, to=name)

    # --- the client ---

    def call(self, method: str, params: object = None, identity: object = "r1") -> list[dict[str, Any]]:
        """Call a method; everything that was said since."""
        message = {"jsonrpc": "2.0", "id": identity, "method": method}
        if params is not None:
            message["params"] = params
        return self.say(json.dumps(message).encode() + b"\n")

    def say(self, data: bytes) -> list[dict[str, Any]]:
        self.feed(Received(LINES, data))
        return self.heard()

    def heard(self) -> list[dict[str, Any]]:
        """What was said since the last look."""
        lines = self.output.splitlines()
        fresh, self._seen = lines[self._seen :], len(lines)
        return [json.loads(line) for line in fresh]

    def result(self, method: str, params: object = None) -> Any:
        """The result of a call that says nothing else."""
        (answer,) = self.call(method, params)
        assert answer["id"] == "r1", answer
        return answer["result"]

    def error(self, method: str, params: object = None) -> tuple[int, str]:
        """The error of a call that says nothing else."""
        (answer,) = self.call(method, params)
        return answer["error"]["code"], answer["error"]["message"]

    def leave(self) -> None:
        self.feed(ReadClosed(LINES))

    def read_on(self) -> None:
        self.reads = True
        unread, self.unread = self.unread, 0
        self.feed(Sent(LINES, unread))

    def stop(self) -> None:
        self.feed(Stopping(5.0))

    @property
    def exits(self) -> list[int]:
        return [command.code for command in self.commands if isinstance(command, Exit)]

    @property
    def pauses(self) -> int:
        return sum(isinstance(command, PauseReading) for command in self.commands)

    # --- the runtime ---

    def _carry_out(self, name: str, command: Command) -> None:
        if name == "gateway":
            self.commands.append(command)
        match command:
            case Log():
                self.logs.append(command)
            case Connect():
                self._connect(name, command)
            case Send(ch=ch, data=data) if name == "gateway" and ch == LINES:
                self.output += data
                if self.reads:
                    self._facts.append((name, Sent(ch, len(data))))
                else:
                    self.unread += len(data)
            case Send(ch=ch, data=data):
                other, there = self._other(name, ch)
                self._facts += [(name, Sent(ch, len(data))), (other, Received(there, data))]
            case CloseWrite(ch=ch):
                other, there = self._other(name, ch)
                self._facts.append((other, ReadClosed(there)))
            case Abort(ch=ch):
                self._facts.append((name, Closed(ch)))
                if not (name == "gateway" and ch == LINES):
                    other, there = self._other(name, ch)
                    self._facts.append((other, Closed(there, "reset")))
            case OpenFile() | ReadFile():
                self._facts.append((name, self._read(command)))
            case Cancel(op=op):
                self._facts.append((name, Failed(op, Failure(FailureKind.CANCELLED))))
            case _:
                pass

    def _connect(self, name: str, command: Connect) -> None:
        if self.up:
            self._facts.append((name, Done(command.op, Connected(Address("127.0.0.1", 8642)))))
            self._facts.append(("api", Accepted(ChannelId(command.ch * 2), PEER, LOCAL)))
        else:
            refused = Failure(FailureKind.UNREACHABLE, "connection refused")
            self._facts.append((name, Failed(command.op, refused)))

    def _read(self, command: OpenFile | ReadFile) -> Fact:
        op = command.op
        if isinstance(command, ReadFile):
            (data,) = self.files.values()
            return Done(op, data)
        if command.path not in self.files:
            return Failed(op, Failure(FailureKind.NOT_FOUND))
        return Done(op, OpenedFile(op, command.path, len(self.files[command.path]), 0.0))

    def _other(self, name: str, ch: ChannelId) -> tuple[str, ChannelId]:
        return ("api", ChannelId(ch * 2)) if name == "gateway" else ("gateway", ChannelId(ch // 2))


def kinds(messages: Iterable[dict[str, Any]]) -> list[str]:
    """Types of events, and `answer` for answers."""
    return ["answer" if "id" in message else message["params"]["type"] for message in messages]
