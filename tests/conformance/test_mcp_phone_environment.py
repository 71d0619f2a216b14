"""Tests of the official Python client of MCP with a phone, and of the proxy of its environment."""

import socket
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from svc_proto.agent.tools.phone_tools import PHONE_TOOLS
from tests.conformance.mcp_phone_environment import CALLS, STATELESS, WANTED, CuttableProxy, carried_out

CLIENT = Path(__file__).parent / "client_mcp_phone.py"


@pytest.mark.skipif(find_spec("mcp") is None, reason="the package mcp is not installed")
def test_the_official_client() -> None:
    assert carried_out("asyncio", (sys.executable, str(CLIENT))) == WANTED | STATELESS


def test_every_tool_has_the_arguments_that_it_needs() -> None:
    names = {f"phone_{row.name}": row for row in PHONE_TOOLS}
    assert set(CALLS) <= set(names)
    for name, row in names.items():
        assert set(row.tool.required) <= set(CALLS.get(name, {})), name


def test_the_proxy_cuts_connections() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        cutter = CuttableProxy(listener.getsockname()[1])

        def came_back() -> bool:
            return cutter.came_back

        with socket.create_connection(("127.0.0.1", cutter.port), timeout=20.0) as near:
            far, _ = listener.accept()
            with far:
                near.sendall(b"GET /mcp HTTP/1.1\r\nLast-Event-ID: 0-1\r\n\r\n")
                assert far.recv(100).startswith(b"GET")
                assert not came_back()
                near.sendall(b"GET /mcp HTTP/1.1\r\nlast-event-id:1-1\r\n\r\n")
                assert far.recv(100).startswith(b"GET")
                assert came_back()
                far.sendall(b"yes")
                assert near.recv(10) == b"yes"
                cutter.cut()
                assert (near.recv(1), far.recv(1)) == (b"", b"")
        cutter.close()
