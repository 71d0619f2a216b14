"""Fixtures: a toy MCP server and its clients."""

import pytest

from tests.mcp.http_harness import McpHttpHarness
from tests.mcp.stdio_harness import McpStdioHarness, ToyMcpServer


@pytest.fixture
def shop() -> ToyMcpServer:
    return ToyMcpServer()


@pytest.fixture
def peer(shop: ToyMcpServer) -> McpStdioHarness:
    return McpStdioHarness(shop.offer())


@pytest.fixture
def web() -> McpHttpHarness:
    return McpHttpHarness()
