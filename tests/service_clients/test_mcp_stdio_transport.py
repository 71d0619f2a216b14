import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from svc_proto.commands import SignalName
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, sleep
from svc_proto.service_clients import mcp_stdio_transport
from svc_proto.service_clients.mcp_client import McpClient, McpError
from svc_proto.service_clients.mcp_stdio_transport import McpStdioTransport, StdioParameters
from tests.agent.harness import AgentHarness
from tests.service_clients.mcp_http_harness import Talk, converse
from tests.support.servers.mcp_program import McpProgram, install

SHOP = StdioParameters(argv=("/bin/shop", "--all"), env=(("TOKEN", "tok-12"), ("N", "token")), cwd="/srv")


def run(kind: type[McpProgram] | None, talk: Talk) -> tuple[Any, list[str], list[McpProgram]]:
    """Run a conversation; return its result or failure, the reasons of ended connections, and the started programs."""
    world = AgentHarness()
    started: list[McpProgram] = []
    if kind is not None:
        started = install(world.agent_host, kind)
        world.disk.folder("/srv")
    result, ended = converse(world, lambda engine, client: McpStdioTransport(engine, SHOP, client), talk)
    return result, ended, started


def call(client: McpClient, engine: Engine) -> Flow[Any]:
    yield from client.open(10.0)
    return (yield from client.request("tools/call", {"name": "read", "arguments": {"a": 1}}, within=3.0))


def leave(client: McpClient, engine: Engine) -> Flow[Any]:
    yield from client.open(10.0)
    client.close()
    yield from sleep(engine, 10.0)
    return "left"


def test_a_call() -> None:
    result, ended, (shop,) = run(McpProgram, call)
    assert result["content"] == [{"type": "text", "text": 'read {"a": 1}'}]
    assert (shop.child.argv, shop.child.env, shop.child.cwd) == (SHOP.argv, {"TOKEN": "tok-12", "N": "token"}, "/srv")
    assert [message["method"] for message in shop.seen] == ["initialize", "notifications/initialized", "tools/call"]
    assert ended == []
    assert "tok-12" not in repr(SHOP)


def test_no_such_program() -> None:
    assert run(None, call)[0] == "'/bin/shop' cannot be started: there is no such program, or folder"


def test_close_closes_the_input_of_the_program() -> None:
    result, _, (shop,) = run(McpProgram, leave)
    assert (result, shop.child.status, shop.child.signals) == ("left", 0, [])


@pytest.mark.parametrize("stubborn", [False, True])
def test_remaining_program_is_terminated_then_killed(stubborn: bool) -> None:
    class Shop(McpProgram):
        def on_input_closed(self) -> None:
            pass

        def on_signal(self, signal: SignalName) -> None:
            told.append(signal)
            if not stubborn:
                self.child.exit(3)

    told: list[SignalName] = []
    result, _, (shop,) = run(Shop, leave)
    assert (result, told) == ("left", [SignalName.TERMINATE])
    assert shop.child.status == (-9 if stubborn else 3)


def test_stop_terminates_the_program_at_once() -> None:
    class Shop(McpProgram):
        def on_input_closed(self) -> None:
            pass

    def stopping(client: McpClient, engine: Engine) -> Flow[Any]:
        yield from client.open(10.0)
        engine.stopping = True
        client.close()
        engine.stopping = False
        yield from sleep(engine, 1.0)

    _, _, (shop,) = run(Shop, stopping)
    assert shop.child.signals == [SignalName.TERMINATE]


@pytest.mark.parametrize(
    ("end", "why"),
    [
        (lambda child: child.exit(0), "it has exited with status 0: Error: no token [redacted]"),
        (lambda child: child.exit(1), "it has exited with status 1: Error: no token [redacted]"),
        (lambda child: child.die(SignalName.KILL), "it was ended by signal 9: Error: no token [redacted]"),
    ],
)
def test_end_reason_is_the_last_error_line(end: Callable[[Any], None], why: str) -> None:
    class Shop(McpProgram):
        def tools_call(self, name: str, arguments: Mapping[str, Any], **params: object) -> None:
            self.child.emit_error(b"x" * 5_000 + b"\nTraceback\nError: no")
            self.child.after(0.005, lambda: self.child.emit_error(b" token tok-12\n"))
            self.child.after(0.01, lambda: end(self.child))

    result, ended, _ = run(Shop, call)
    assert (result, ended) == (why, [why])


def test_exit_without_error_output() -> None:
    class Shop(McpProgram):
        def initialize(self, protocolVersion: str, **about: object) -> None:  # noqa: N803 - its name
            self.child.exit(2)

    assert run(Shop, call)[0] == "it has exited with status 2"


def test_unknown_exit_status() -> None:
    world = AgentHarness()
    told: list[McpError] = []

    def plan(parts: object, engine: Engine) -> Flow[None]:
        client = McpClient(engine, lambda client: McpStdioTransport(engine, SHOP, client))
        client.transport_closed = told.append  # type: ignore[method-assign, assignment]  # records the end
        carrier = McpStdioTransport(engine, SHOP, client)
        carrier.send(b"x", None)  # without effect before the start, as the close
        carrier.close()
        carrier.on_exit(None)
        yield from ()

    world.run(plan)
    assert str(told[0]) == "it has ended"


def test_a_line_without_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_stdio_transport, "MAX_MESSAGE", 100_000)

    class Shop(McpProgram):
        def tools_call(self, name: str, arguments: Mapping[str, Any], **params: object) -> None:
            self.say_bytes(b"x" * 100_001)

    result, ended, _ = run(Shop, call)
    assert (result, ended) == ("it said more than 100000 bytes in one line", [result])


def test_noise_between_messages_is_ignored() -> None:
    class Shop(McpProgram):
        def tools_call(self, name: str, arguments: Mapping[str, Any], **params: object) -> Mapping[str, Any]:
            self.say_bytes(b"Listening on stdio...\n\n  \n[1]\n")
            return {"content": []}

    assert run(Shop, call)[0] == {"content": []}


def test_a_flood_is_read_a_second_at_a_time() -> None:
    class Shop(McpProgram):
        def tools_call(self, name: str, arguments: Mapping[str, Any], **params: object) -> None:
            self.flood()

        def flood(self) -> None:
            note = json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {}}).encode()
            while self.child.room:
                self.say_bytes((note + b"\n") * 200)

        def on_room(self) -> None:
            self.flood()

    seen: list[int] = []

    def count(client: McpClient, engine: Engine) -> Flow[Any]:
        try:
            return (yield from call(client, engine))
        finally:
            seen.append(client.ignored)

    result, _, _ = run(Shop, count)
    assert result == "there was no answer in 3 s"
    assert 2 * 500 < seen[0] < 4 * 1_600  # output that was in transit when reading stopped is parsed, too


def test_unread_input_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_stdio_transport, "MAX_UNREAD", 100_000)

    class Shop(McpProgram):
        def tools_call(self, name: str, arguments: Mapping[str, Any], **params: object) -> None:
            self.child.stop_reading()

    def fill(client: McpClient, engine: Engine) -> Flow[Any]:
        yield from client.open(10.0)
        transport: Any = client._carrier
        failures: list[tuple[str, bool]] = []
        for _ in range(2):
            try:
                yield from client.request("tools/call", {"name": "x", "arguments": {}}, within=1.0)
            except McpError as failed:
                failures.append((str(failed), failed.unheard))
            transport.send(b"x" * (100_000 - transport._child.credit.unsent - len(b"\n")), None)
        client.close()
        return failures

    result, ended, _ = run(Shop, fill)
    assert result == [("there was no answer in 1 s", False), ("it does not read", False)]
    assert ended == ["it does not read"]
