"""Harness for a one-shot service: scripted servers behind every connection, files, host work, a simulated clock."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Generic, Self, TypeVar

from runtimes.failures import HostError
from svc_proto import facts
from svc_proto.cli.one_shot_service import OneShotService
from svc_proto.commands import Compute, Connect, Exit, Level, Notify, Operation, Ready, Spawn, Spawned, WriteConfig
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.wire.events import TextMessage
from tests.support.channel_ends import HarnessChild
from tests.support.core_harness import REFUSED, HarnessNode, PassiveEnd
from tests.support.http_harness import FIRST, SILENT, HttpHarness, Reply, UpstreamRequest, as_json
from tests.support.playbook import accepted

__all__ = ["REFUSED", "SILENT", "STDIO", "UpstreamRequest", "Reply", "OneShotHarness", "as_json"]

T = TypeVar("T")
STDIO = facts.ChannelId(2)
TERMINAL = facts.Address("stdio", 0)
NO_PROGRAM = facts.Failure(facts.FailureKind.NOT_FOUND)
LAN, PUBLIC = "ws://192.0.2.1:8767", "ws://home.example:8767"
ROUTES = tuple(  # of a stored session
    {"role": role, "priority": place, "relay": {"url": url}}
    for place, (role, url) in enumerate((("lan", LAN), ("public", PUBLIC)))
)


class OneShotHarness(HttpHarness, Generic[T]):
    """Harness for a one-shot service or its flow, with its servers and host."""

    terminal: PassiveEnd  # standard output, from `open_terminal` on

    def __init__(
        self,
        plan: Callable[[Engine], Flow[T]] | OneShotService[T],
        *,
        http: Callable[[UpstreamRequest], Reply] | Reply = REFUSED,  # a function's answer, or always the same
        dial: Callable[[str, int], facts.Failure | None] | None = None,
        socket: Callable[[Mapping[str, Any]], Sequence[Mapping[str, Any]] | None] | None = None,
        compute: Mapping[str, Callable[..., object]] | None = None,
        files: Mapping[str, bytes | str] | None = None,
        programs: Mapping[str, bytes | facts.Failure] | None = None,  # the output for each command line
        lasting: Collection[str] = (),  # programs that do not exit by themselves
        stdio: bool = False,
        script: Iterable[tuple[float, Callable[[OneShotHarness[T]], None]]] = (),  # actions by seconds since the start
    ) -> None:
        self.service = plan if isinstance(plan, OneShotService) else OneShotService(plan)
        super().__init__(self.service, files=files, log_level=Level.INFO)
        self.http = http if callable(http) else lambda asked: http
        self.dial = dial
        self.socket = socket
        self.host.compute |= compute or {}
        self.programs = programs or {}
        self.lasting = lasting
        self.stdio = stdio
        self.script = list(script)
        self.told: list[Notify] = []
        self.children: list[HarnessChild] = []
        self.exit: Exit | None = None
        self.silent: dict[str, facts.OperationId] = {}  # work whose answer is still pending
        self.node.operations.handlers[Ready] = self._ready

    def run(self, *, until: float = 1000.0) -> T:
        """Run the service to its end, and return its result; fail if it exits with an error."""
        service = self.advance(until=until)
        assert self.exit == Exit(0), self.exit
        return service.result

    def finished(self) -> Self:
        """Run the service to its end, and return this harness; fail if it exits with an error."""
        self.run()
        return self

    def fails(self) -> Exit:
        """Run the service to its end, and return its exit; assert that its code is not 0."""
        self.advance()
        assert self.exit is not None
        assert self.exit.code
        return self.exit

    def advance(self, *, until: float = 1000.0) -> OneShotService[T]:
        start = self.clock.now
        self.feed(facts.Started())
        while not self.exits:
            due = self.next_deadline()
            if self.script and (due is None or start + self.script[0][0] <= due):
                after, happen = self.script.pop(0)
                self.clock.now = max(start + after, self.clock.now)
                happen(self)
                self.run_until_idle()
                continue
            assert due is not None, "it waits for ever"
            assert due <= start + until, "it takes too long"
            self.wake(due)
        (self.exit,) = self.exits
        self.told = [command for command in self.commands if isinstance(command, Notify)]
        return self.service

    # --- for scripts ---

    @property
    def screen(self) -> str:
        """Return all text that the service has written to standard output."""
        return self.terminal.heard.decode()

    @property
    def stalled(self) -> bool:
        """Report whether the service has paused reading from one of its servers."""
        return any(upstream.held for upstream in self.upstreams)

    def open_terminal(self) -> None:
        """Accept standard input and output of the service as the channel of a terminal."""
        self.terminal = self.plug_in(self.node, PassiveEnd)
        self.node.post(accepted(STDIO, TERMINAL))

    def keys(self, data: bytes | None) -> None:
        """Type these bytes on the terminal; None ends standard input."""
        self.node.post(facts.ReadClosed(STDIO) if data is None else facts.Received(STDIO, data))

    def push(self, message: Mapping[str, Any]) -> None:
        """Send a message of the relay over the last WebSocket that is open."""
        upstream = next(upstream for upstream in reversed(self.upstreams) if upstream.upgraded and not upstream.gone)
        upstream.conn.send(TextMessage(FIRST, json.dumps(message)))
        upstream.flush()

    def unfinished(self, body: bytes, *, end: bool = False) -> None:
        """Send more of the body of the first upstream response that is still open; `end` completes it."""
        upstream = next(upstream for upstream in self.upstreams if upstream.open and not upstream.gone)
        upstream.go_on(body, end=end)
        upstream.flush()

    def break_connections(self, why: str = "reset") -> None:
        """Break every connection."""
        for upstream in self.upstreams:
            upstream.finish(why)

    def answer(self, name: str, result: object) -> None:
        """Complete the call of the host function `name`, whose prepared result was `SILENT`."""
        self._answer(self.silent[name], result)

    # --- the runtime ---

    @property
    def written_configs(self) -> dict[str, str]:
        """Return the text of the last `WriteConfig` operation for each file name."""
        return {command.name: command.text for command in self.commands if isinstance(command, WriteConfig)}

    def execute(self, node: HarnessNode, operation: Operation[Any]) -> None:
        match operation:
            case Spawn():
                self._spawn(operation)
            case Compute(op=op, name=name, args=args):
                self.silent[name] = op  # for an answer at a later time
                try:
                    self._answer(op, self.host.work(name, args))
                except HostError as error:
                    self._answer(op, error.failure)
            case _:
                super().execute(node, operation)

    def _answer(self, op: facts.OperationId, result: Any) -> None:
        if result is not SILENT:
            self.node.post(facts.Failed(op, result) if isinstance(result, facts.Failure) else facts.Done(op, result))

    def connect(self, node: HarnessNode, order: Connect) -> Any:
        problem = None if self.dial is None else self.dial(order.host, order.port)
        return problem or super().connect(node, order)

    def _ready(self, command: Ready) -> None:
        if self.stdio:
            self.open_terminal()

    def _spawn(self, order: Spawn) -> None:
        line = " ".join(order.argv)
        output = self.programs.get(line, b"" if line in self.lasting else NO_PROGRAM)
        if isinstance(output, facts.Failure):
            self._answer(order.op, output)
            return
        child = self.node.ends[order.ch] = HarnessChild(self.node, order.ch, order=order)
        self.children.append(child)
        self._answer(order.op, Spawned(1))
        if output:
            self.node.post(facts.Received(order.ch, output))
        if line not in self.lasting:
            child.end(status=0)
