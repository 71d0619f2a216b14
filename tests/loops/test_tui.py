"""Tests of the TUI channel, from a desktop to the agent gateway."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.loops.clients import WebSocketTestClient
from tests.loops.environment import ApiHandle, Environment
from tests.loops.terminal_client import runs
from tests.support.scenario_plan import PLAIN

GATEWAY = (sys.executable, "-P", "-m", "clients.gateway")
KEY = "a-key-of-32-characters-or-longer-1"
CHILD = (sys.executable, "-c")


@pytest.fixture
def api(host: Environment) -> ApiHandle:
    server = host.api(key="k3y")
    host.start_relay(tui_command=GATEWAY, webapi_url=f"http://127.0.0.1:{server.server.port}", api_key="k3y")
    return server


def attach(world: Environment, ws: WebSocketTestClient | None = None) -> tuple[WebSocketTestClient, int]:
    """Attach a desktop to its gateway; return its WebSocket and the gateway's process id."""
    ws = ws or world.pair()
    ws.send_envelope("tui", "tui.attach", {"cols": 80, "rows": 24})
    message = ws.receive_message()
    assert message["type"] == "tui.attached", message
    return ws, message["payload"]["pid"]


def event(ws: WebSocketTestClient, kind: str) -> dict[str, Any]:
    """Return the parameters of the next event of this type; other events and responses are skipped."""
    while True:
        message = ws.receive_message()
        assert message["type"] in ("tui.rpc.event", "tui.rpc.response"), message
        if message["payload"].get("params", {}).get("type") == kind:
            params: dict[str, Any] = message["payload"]["params"]
            return params


def call(ws: WebSocketTestClient, method: str, **params: object) -> dict[str, Any]:
    """Call a method and return its response; events before it are skipped."""
    ws.send_envelope(
        "tui", "tui.rpc.request", {"jsonrpc": "2.0", "id": f"r-{method}", "method": method, "params": params}
    )
    while True:
        message = ws.receive_message()
        if message["type"] == "tui.rpc.response" and message["payload"]["id"] == f"r-{method}":
            payload: dict[str, Any] = message["payload"]
            return payload


def child(world: Environment, script: str) -> None:
    """Start a relay whose gateway runs a Python script."""
    world.start_relay(tui_command=(*CHILD, f"import json, os, signal, sys, time\n{script}"))


def test_a_chat(host: Environment, api: ApiHandle) -> None:
    ws, pid = attach(host)
    assert event(ws, "gateway.ready")["payload"]["skin"] == {}
    session = call(ws, "session.create", cols=80)["result"]["session_id"]
    assert call(ws, "prompt.submit", session_id=session, text="/echo Grüße 😀")["result"] == {"status": "streaming"}
    assert event(ws, "message.start")["session_id"] == session
    assert "Grüße 😀" in event(ws, "message.complete")["payload"]["text"]
    assert call(ws, "session.list")["result"]["sessions"][0]["message_count"] == 2
    assert call(ws, "session.resume", session_id=session)["result"]["message_count"] == 2
    ws.send_envelope("tui", "tui.resize", {"cols": 97, "rows": 31, "session_id": session})
    assert ws.receive_message()["payload"]["result"] == {"cols": 97}
    ws.send_envelope("tui", "tui.detach")
    host.eventually(lambda: not runs(pid))


def test_lines_of_five_megabytes_both_ways(host: Environment) -> None:
    child(
        host,
        "for line in sys.stdin: print(json.dumps({'id': 'r-echo', 'result': json.loads(line)['params']}), flush=True)",
    )
    ws, _ = attach(host, host.pair(deflate=host.name == PLAIN))  # deflating costs the same on each loop
    text = os.urandom(2_500_000).hex()
    assert call(ws, "echo", text=text)["result"] == {"text": text}


def test_a_line_over_the_unread_limit_keeps_the_socket(host: Environment) -> None:
    """A gateway's line of 30 MB and all messages after it arrive, though the limit of unsent data is 16 MiB."""
    child(
        host,
        "print(json.dumps({'id': 'big', 'result': 'z' * 30_000_000}), flush=True)\n"
        "for n in range(200): print(json.dumps({'n': n}), flush=True)\n"
        "sys.exit(3)",
    )
    ws, _ = attach(host, host.pair(deflate=False))
    other = host.pair("Other")
    for _ in range(20):
        other.pong()  # while the first does not read
    assert len(ws.receive_message()["payload"]["result"]) == 30_000_000
    assert [ws.receive_message()["payload"]["n"] for _ in range(200)] == list(range(200))
    assert ws.receive_message()["payload"] == {"message": "the agent gateway exited with 3"}
    ws.pong()


def test_an_exited_gateway_is_reported(host: Environment) -> None:
    child(host, "print(json.dumps({'last': 'words'}), flush=True); sys.exit(7)")
    ws, _ = attach(host)
    assert ws.receive_message()["payload"] == {"last": "words"}
    message = ws.receive_message()
    assert (message["type"], message["payload"]) == ("tui.error", {"message": "the agent gateway exited with 7"})
    assert call(ws, "anything")["error"]["code"] == -32000


def test_a_gateway_may_clean_up_when_the_relay_stops(host: Environment, tmp_path: Path) -> None:
    child(
        host,
        f"def bye(*_):\n    time.sleep(0.2); open({str(tmp_path / 'bye')!r}, 'w'); sys.exit(0)\n"
        "signal.signal(15, bye); print('{}', flush=True)\nwhile True: time.sleep(60)",
    )
    ws, pid = attach(host)
    assert ws.receive_message()["type"] == "tui.rpc.event"
    host.relay.begin_stop()
    ws.wait_closed()
    ws.wire.close()
    assert host.relay.exit_code() == 0
    assert (tmp_path / "bye").exists()
    assert not runs(pid)


def test_a_flood_of_a_gateway_that_ignores_signals_delays_no_others(host: Environment) -> None:
    flood = "line = json.dumps({'x': os.urandom(4000).hex()})\nwhile True: print(line)"
    child(host, f"signal.signal(15, signal.SIG_IGN); {flood}")
    ws, pid = attach(host)
    phone = host.fake_phone("Phone")
    for _ in range(20):
        phone.pong()
    ws.send_envelope("tui", "tui.detach")
    ws.pong()
    host.eventually(lambda: not runs(pid))
