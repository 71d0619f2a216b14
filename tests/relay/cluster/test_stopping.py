"""MCP calls, readers of events and voice sockets while their node, or the node of their phone, stops."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, cast

import pytest

from fuzz.cluster.actors import ClusterPhone
from fuzz.cluster.deployment import ClusterDeployment
from svc_proto.mcp.http_sessions import RETRY
from svc_proto.relay.cluster.phone_moves import MOVE_TIMEOUT, SPREAD
from tests.relay.cluster.test_request_forwarding import MCP, Speaker, initialized, speaking

if TYPE_CHECKING:
    from tests.support.sim_http import Pairs, RequestClient

INFO = {"clientCapabilities": {}, "clientInfo": {"name": "x", "version": "1"}, "protocolVersion": "2026-07-28"}
MODERN = {**MCP, "mcp-protocol-version": INFO["protocolVersion"]}
META = {f"io.modelcontextprotocol/{name}": value for name, value in INFO.items()}


def start_call(
    cluster: ClusterDeployment, node: int, phone: ClusterPhone, tool: str, session: Pairs | None = None
) -> RequestClient:
    """Call an MCP tool in a session or, without one, in the stateless mode."""
    params: dict[str, Any] = {"name": tool, "arguments": {"device": phone.device} if tool == "phone_ping" else {}}
    if session is None:
        params["_meta"] = META
        session = cast("Pairs", {**MODERN, "mcp-method": "tools/call", "mcp-name": tool})
    call = {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": params}
    return cluster.request(node, "POST", "/mcp", token=phone.token, body=call, fields=session)


def succeeded(call: RequestClient) -> bool:
    """Report whether a tool call was answered with its result."""
    return call.status == 200 and call.answer.json["result"].get("isError") is False


@pytest.mark.parametrize("at", [0, 1])
def test_mcp_calls_in_progress_are_answered_before_the_stop(two_nodes: ClusterDeployment, at: int) -> None:
    phone = two_nodes.pair_phone("P", at)
    session = initialized(two_nodes, 0, phone.token)
    phone.delay = 1.0
    calls = [start_call(two_nodes, 0, phone, "phone_ping", fields) for fields in (session, None)]
    two_nodes.run(lambda: len(phone.performed) == 2)
    began = two_nodes.sim.now
    two_nodes.stop(0)
    two_nodes.run(lambda: all(call.is_closed for call in calls))
    assert [succeeded(call) for call in calls] == [True, True]
    assert two_nodes.sim.now - began < phone.delay + 0.1
    two_nodes.run(lambda: not two_nodes.nodes[0].alive, limit=SPREAD + 0.5)


def test_readers_of_events_reconnect_at_different_times(two_nodes: ClusterDeployment) -> None:
    phones = [two_nodes.pair_phone(f"P{n}", 1) for n in range(8)]
    readers = []
    for phone in phones:
        session = initialized(two_nodes, 0, phone.token)
        readers.append(two_nodes.request(0, "GET", "/mcp", token=phone.token, fields=session))
    two_nodes.run(lambda: all(reader.head is not None for reader in readers))
    two_nodes.stop(0)
    two_nodes.run(lambda: all(reader.is_closed for reader in readers), limit=0.5)
    told = [re.fullmatch(rb"retry: ([0-9]+)\n\n", reader.answer.body) for reader in readers]
    pauses = {int(match[1]) for match in told if match is not None}
    assert len(pauses) == len(readers)
    assert all(RETRY[0] <= pause <= RETRY[1] for pause in pauses)


@pytest.mark.parametrize("stateless", [True, False])
def test_an_mcp_call_waits_for_a_phone_that_moves(two_nodes: ClusterDeployment, stateless: bool) -> None:
    phone = two_nodes.pair_phone("P", 1)
    session = None if stateless else initialized(two_nodes, 0, phone.token)
    two_nodes.stop(1)
    two_nodes.run(lambda: phone.closed)
    calls = [
        start_call(two_nodes, 0, phone, name, session) for name in ("phone_ping", "phone_screenshot")[: 1 + stateless]
    ]
    read = {"jsonrpc": "2.0", "id": 4, "method": "resources/read", "params": {"uri": "phone://devices", "_meta": META}}
    fields = cast("Pairs", {**MODERN, "mcp-method": "resources/read", "mcp-name": "phone://devices"})
    listed = two_nodes.request(0, "POST", "/mcp", token=phone.token, body=read, fields=fields)
    two_nodes.run(lambda: listed.is_closed, limit=0.2)
    assert "devices" in listed.answer.json["result"]["contents"][0]["text"]
    two_nodes.sim.run_for(1.0)
    assert not any(call.is_closed for call in calls)
    back = two_nodes.new_phone("P", 0, token=phone.token)
    two_nodes.run(lambda: all(call.is_closed for call in calls))
    assert succeeded(calls[0])
    assert len(back.performed) == len(calls)


def test_an_mcp_call_that_is_cancelled_while_its_phone_moves_is_not_sent(two_nodes: ClusterDeployment) -> None:
    phone = two_nodes.pair_phone("P", 1)
    two_nodes.stop(1)
    two_nodes.run(lambda: phone.closed)
    call = start_call(two_nodes, 0, phone, "phone_ping")
    two_nodes.sim.run_for(0.5)
    call.disconnect()
    two_nodes.sim.run_for(0.1)
    back = two_nodes.new_phone("P", 0, token=phone.token)
    two_nodes.sim.run_for(MOVE_TIMEOUT)
    assert back.is_authenticated
    assert not back.performed


def test_voice_sockets_are_closed_at_once(two_nodes: ClusterDeployment) -> None:
    phone = two_nodes.pair_phone("P", 1)
    speaker = Speaker(two_nodes, 0, speaking(two_nodes, phone.token), phone.token)
    two_nodes.run(lambda: bool(speaker.heard))
    two_nodes.stop(0)
    two_nodes.run(lambda: speaker.over, limit=0.1)
    two_nodes.run(lambda: not two_nodes.nodes[0].alive, limit=0.5)
