"""Tests of the official Python client of MCP with a phone."""

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from svc_proto.agent.tools.phone_tools import PHONE_TOOLS
from tests.conformance.mcp_phone_environment import CALLS, STATELESS, WANTED, carried_out

CLIENT = Path(__file__).parent / "client_mcp_phone.py"


@pytest.mark.skipif(find_spec("mcp") is None, reason="the package mcp is not installed")
def test_the_official_client() -> None:
    assert carried_out("asyncio", (sys.executable, str(CLIENT))) == WANTED | STATELESS


def test_every_tool_has_the_arguments_that_it_needs() -> None:
    names = {f"phone_{row.name}": row for row in PHONE_TOOLS}
    assert set(CALLS) <= set(names)
    for name, row in names.items():
        assert set(row.tool.required) <= set(CALLS.get(name, {})), name
