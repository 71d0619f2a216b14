"""Tests with an MCP server as a real program."""

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from runtimes.host.host import Program
from runtimes.run import run
from svc_proto.cli.one_shot_service import OneShotService
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.service_clients import mcp_stdio_transport
from svc_proto.service_clients.mcp_client import McpClient, McpError
from svc_proto.service_clients.mcp_stdio_transport import McpStdioTransport

SERVER = r"""
import json, os, sys
def say(**members):
    os.write(1, json.dumps({"jsonrpc": "2.0", **members}).encode() + b"\n")
for line in sys.stdin:
    message = json.loads(line)
    if message["method"] == "initialize":
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}
        say(id=message["id"], result=result)
    elif message["method"] == "tools/call":
        name = message["params"]["name"]
        if name == "variables":
            say(id=message["id"], result={"content": sorted(os.environ)})
        elif name == "crash":
            sys.exit("no token")
        else:
            flood = b'{"jsonrpc":"2.0","method":"notifications/message"}\n' * 100
            try:
                while True:
                    os.write(1, flood if name == "flood" else b"x" * 65536)
            except OSError:
                pass
"""


def play(runtime: str, talk: Callable[[McpClient, Engine], Flow[Any]]) -> Any:
    program = mcp_stdio_transport.StdioParameters(argv=(sys.executable, "-I", "-S", "-c", SERVER), env=(("MINE", "1"),))

    def plan(engine: Engine) -> Flow[Any]:
        client = McpClient(engine, lambda client: McpStdioTransport(engine, program, client))
        try:
            yield from client.open(20.0)
            return (yield from talk(client, engine))
        except McpError as failed:
            return str(failed)
        finally:
            client.close()

    service = OneShotService(plan)
    assert run(Program(core=Engine(service, entropy=os.urandom)), runtime) == 0
    return service.result


def asked(client: McpClient, name: str, within: float = 20.0) -> Flow[Any]:
    return (yield from client.request("tools/call", {"name": name, "arguments": {}}, within=within))


def test_an_mcp_server_gets_the_environment_of_children(runtime: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SVC_MODEL_API_KEY", "sk-1")
    names = play(runtime, lambda client, engine: asked(client, "variables"))["content"]
    assert {"MINE", "PATH"} <= set(names)
    assert "SVC_MODEL_API_KEY" not in names


def test_a_flood_does_not_defeat_the_time_limit(runtime: str) -> None:
    def talk(client: McpClient, engine: Engine) -> Flow[Any]:
        while not client.ignored:  # on a busy machine the server may not have started yet
            with suppress(McpError):
                yield from asked(client, "flood", within=0.1)
        return client.ignored

    assert play(runtime, talk) > 0


def test_a_line_without_an_end_and_a_crash(runtime: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_stdio_transport, "MAX_MESSAGE", 500_000)
    said = play(runtime, lambda client, engine: asked(client, "line"))
    assert said == "it said more than 500000 bytes in one line"
    assert play(runtime, lambda client, engine: asked(client, "crash")) == "it has exited with status 1: no token"
