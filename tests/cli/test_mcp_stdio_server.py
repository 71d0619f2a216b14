import pytest

from svc_proto.cli import line_service
from svc_proto.cli.mcp_stdio_server import McpStdioServer
from svc_proto.commands import Abort, Ready
from svc_proto.engine.core import Engine
from svc_proto.facts import Accepted, ChannelId, Started
from svc_proto.machines.line_buffer import LineBuffer
from tests.mcp.stdio_harness import McpStdioHarness, ToyMcpServer
from tests.support.playbook import CH, LOCAL, PEER, Playbook, counting_entropy


def test_too_long_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_service, "LineBuffer", lambda: LineBuffer(100))
    peer = McpStdioHarness(ToyMcpServer().offer())
    (problem,) = peer.bytes(b"x" * 101)
    assert problem["error"] == {"code": -32700, "message": "a line has more than 100 bytes"}
    assert peer.is_closed


def test_pending_calls_are_answered_before_the_end() -> None:
    peer = McpStdioHarness(ToyMcpServer().offer())
    peer.open()
    peer.send(id=1, method="tools/call", params={"name": "wait"})
    assert peer.end() == []
    assert not peer.is_closed
    (answer,) = peer.after(1e9)
    assert answer["id"] == 1
    assert peer.is_closed


def test_one_client_only() -> None:
    server = McpStdioServer(lambda engine: ToyMcpServer().offer())
    book = Playbook(Engine(server, entropy=counting_entropy()))
    book >> Started() << [Ready()]
    server.send_line(b"into the void")
    server.ended("no client is there")
    book >> Accepted(CH, PEER, LOCAL) << []
    book >> Accepted(ChannelId(4), PEER, LOCAL) << [Abort(ChannelId(4))]
