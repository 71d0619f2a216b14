from collections.abc import Callable
from typing import Any, cast

import pytest

from svc_proto.agent import mcp_servers
from svc_proto.agent.agent_factory import AgentParts
from svc_proto.agent.mcp_servers import McpServers
from svc_proto.agent.tool_selection import ToolPolicy
from svc_proto.agent.tools.tool import ToolResult
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, sleep
from svc_proto.engine.message import Request, empty_response, json_response
from tests.agent.harness import AgentHarness
from tests.service_clients.mcp_http_harness import PORT, Server
from tests.support.servers.mcp_program import McpProgram, install, tool

A: dict[str, Any] = {"command": "/bin/a"}


class Pair(McpProgram):
    tools = (tool("x"), tool("y"))


def run(plan: Callable[[McpServers, Engine], Flow[Any]], kind: type[McpProgram] = McpProgram) -> Any:
    world = AgentHarness()
    install(world.agent_host, kind, "/bin/a")
    return run_in(world, plan)


def run_in(world: AgentHarness, plan: Callable[[McpServers, Engine], Flow[Any]]) -> Any:
    def both(parts: AgentParts, engine: Engine) -> Flow[Any]:
        parts.use_servers({"nothing": {}})
        assert parts.servers is not None
        result = yield from plan(parts.servers, engine)
        parts.stop()
        return result

    return world.run(both)


def test_change_restarts_the_changed_server_only(world: AgentHarness) -> None:
    ones, others = [install(world.agent_host, McpProgram, f"/bin/{name}") for name in "ab"]

    def plan(servers: McpServers, engine: Engine) -> Flow[None]:
        servers.configure({"a": A, "b": {"command": "/bin/b"}})
        yield from servers.ready()
        servers.configure({"a": {**A, "timeout": 5}, "b": {"command": "/bin/b"}})
        yield from servers.ready()
        assert [len(ones), len(others)] == [2, 1]
        servers.configure({"b": {"command": "/bin/b"}})
        yield from sleep(engine, 5.0)
        assert [shop.child.alive for shop in ones] == [False, False]
        assert others[0].child.alive
        yield from servers.reload()
        assert [len(ones), len(others)] == [2, 2]
        servers.configure({})
        yield from servers.ready()
        assert servers.toolsets() == ()
        assert servers.report() == []

    run_in(world, plan)


class SilentProgram(McpProgram):
    def on_message(self, message: dict[str, Any]) -> None:
        pass


def test_restarting_server_does_not_delay_a_turn() -> None:
    def plan(servers: McpServers, engine: Engine) -> Flow[Any]:
        servers.configure({"a": {**A, "connect_timeout": 5}})
        yield from servers.ready()
        yield from sleep(engine, 2.0)
        begun = engine.now.mono
        yield from servers.ready()
        return servers.report()[0]["state"], engine.now.mono - begun

    assert run(plan, SilentProgram) == ("starting", 0.0)


def test_servers_that_do_not_answer_are_waited_for_together() -> None:
    def plan(servers: McpServers, engine: Engine) -> Flow[float]:
        begun = engine.now.mono
        servers.configure({"a": A, "b": {**A, "args": ["b"]}})
        yield from servers.ready()
        return engine.now.mono - begun

    assert run(plan, SilentProgram) == mcp_servers.READY_TIMEOUT


def test_bounds_over_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_servers, "MAX_TOOLS", 3)

    def plan(servers: McpServers, engine: Engine) -> Flow[Any]:
        servers.configure({"a": A, "b": A})
        yield from servers.ready()
        return [[each.name for each in one.tools] for one in servers.toolsets()], servers.report()[1]["left_out"]

    assert run(plan, Pair) == ([["mcp_a_x", "mcp_a_y"], ["mcp_b_x"]], 1)
    monkeypatch.setattr(mcp_servers, "MAX_BYTES", 150)
    assert run(plan, Pair) == ([["mcp_a_x", "mcp_a_y"], []], 2)


def test_size_limit_of_all_tools() -> None:
    def plan(servers: McpServers, engine: Engine) -> Flow[Any]:
        servers.configure({"a": A})
        yield from servers.ready()
        (offered,) = servers.toolsets()
        size = sum(len(each.description) + len(repr(each.parameters)) for each in offered.tools)
        found = []
        for most in (size, size - 1):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(mcp_servers, "MAX_BYTES", most)
                found.append([each.name for each in servers.toolsets()[0].tools])
        return found

    assert run(plan, Pair) == [["mcp_a_x", "mcp_a_y"], ["mcp_a_x"]]


def test_the_report() -> None:
    def plan(servers: McpServers, engine: Engine) -> Flow[Any]:
        found = {"a": {**A, "auto": ["read"]}, "b": {"command": "/bin/b"}, "c": {**A, "enabled": False}, "d": {}}
        servers.configure({**found, "e": {"url": "http://127.0.0.1:9/"}})
        begun = servers.report()
        yield from servers.ready()
        return begun[0], servers.report()

    begun, rows = run(plan)
    assert begun["state"] == "not started"
    tools = [{"name": "mcp_a_read", "asks": False}, {"name": "mcp_a_write", "asks": True}]
    state = {"name": "a", "transport": "stdio", "state": "ready"}
    assert rows[0] == {**state, "problem": None, "tools": tools, "left_out": 0}
    assert [(row["name"], row["transport"], row["state"]) for row in rows[1:]] == [
        ("b", "stdio", "failed"),
        ("e", "http", "failed"),
        ("c", None, "off"),
        ("d", None, "not usable"),
    ]


def test_toolsets_of_the_api_and_the_operators_choice() -> None:
    world = AgentHarness(tools=ToolPolicy(only=("memory",)))
    started = install(world.agent_host, McpProgram, "/bin/a")

    def plan(parts: AgentParts, engine: Engine) -> Flow[Any]:
        parts.use_servers({"a": A})
        offered = yield from parts.toolbox.visible_tools()
        row = parts.toolbox.toolsets()[-1]
        parts.stop()
        return list(offered), (row["name"], row["label"], row["enabled"], row["configured"]), len(started)

    assert world.run(plan) == (["memory"], ("mcp-a", "a", False, False), 0)
    assert ToolPolicy(only=("mcp",)).includes("mcp-a")


def test_expired_session_is_reopened_and_the_call_repeated() -> None:
    class Forgetful(Server):
        calls = 0
        forgets: tuple[int, ...] = ()

        def post(self, message: dict[str, Any], request: Request) -> Any:
            if message.get("method") == "tools/list":
                rows = [{"name": "read"}]
                return json_response(200, {"jsonrpc": "2.0", "id": message["id"], "result": {"tools": rows}})
            return super().post(message, request)

        def call(self, message: dict[str, Any]) -> Any:
            self.calls += 1
            return empty_response(404) if self.calls in self.forgets else super().call(message)

    def plan(parts: AgentParts, engine: Engine) -> Flow[Any]:
        parts.use_servers({"a": {"url": f"http://127.0.0.1:{PORT}/mcp", "auto": ["read"]}})
        assert parts.servers is not None
        yield from parts.servers.ready()
        read = parts.servers.tool("mcp_a_read")
        assert read is not None
        try:
            return cast("ToolResult", (yield from read.run({}))).text
        except Exception as failed:  # for the second case
            return str(failed)
        finally:
            parts.stop()

    for forgets, result in (
        ((1,), "(the result is empty)"),
        ((1, 2), "the MCP server a did not do it: it does not know the session any more"),
    ):
        server = Forgetful()
        server.forgets = forgets
        world = AgentHarness()
        world.serve(server, PORT)
        assert world.run(plan) == result
        assert server.methods.count("initialize") == 2
