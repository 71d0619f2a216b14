"""Cost of a tool call by MCP, compared with the equivalent route, and cost of idle sessions."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from http.client import HTTPConnection

from bench.contestants import RELAYS, Address, Contestant, Server, available, missing, placement, running, wait_healthy
from bench.load import PATIENCE, Phone, drive, new_code
from bench.measure import BenchError, Progress, Scale, rotated
from bench.report import Column, Row, Table
from bench.rounds import TURNS, TimedRounds, notes_on, take_timed_round
from bench.wire import request

__all__ = ["mcp_section"]

HANDSHAKE = "2025-11-25"
MODERN = "2026-07-28"
TYPES = {"Accept": "application/json, text/event-stream"}
PLAY = {"action": "play"}
SETTLE = 0.5  # s in which the server finishes work for the last session
PER_CALLER = 25  # sessions: a caller may have 32
WAYS = ("route", "session", "stateless")
CALLS = [
    Column("cpu_us", "server CPU µs", 1),
    Column("cpu_ratio", "of the route's", 2),
    Column("waited_percent", "kept waiting %", 0),
]
HELD = [
    Column("one_mib", "one session, MiB"),
    Column("idle_kb", "idle, kB each", 2),
    Column("heard_kb", "with a listener, kB each", 2),
]


def mcp_section(scale: Scale, progress: Progress, *, relays: tuple[Contestant, ...] = RELAYS) -> list[Table]:
    """Return two tables with rows for each relay: tool calls by MCP beside the equivalent route, and idle sessions."""
    ours = available(relays)
    with ExitStack() as stack:
        servers = [stack.enter_context(running(one)) for one in ours]
        for server in servers:
            wait_healthy(server.address)
        rows, notes = [], list[str]()
        for server in servers:
            rows += _calls(server, scale, progress, notes, stack)
    said = "CPU time of the server, by ways that take turns; one call in flight"
    calls = Table(
        "mcp_calls", "A tool by MCP, and its route", CALLS, rows, [said, *notes, placement(), *missing(relays)]
    )
    held = [Row(one.name, _held(one, scale.sessions, progress)) for one in ours]
    counted = [
        f"kB: 1,000 bytes for each of {scale.sessions:,} sessions after the first",
        f"idle: no connection; a listener has one, with GET. {PER_CALLER} sessions of each token",
    ]
    return [calls, Table("mcp_memory", "Resident memory with idle sessions of MCP", HELD, held, counted)]


# --- calls --------------------------------------------------------------------------------------------------------


def _calls(server: Server, scale: Scale, progress: Progress, notes: list[str], stack: ExitStack) -> list[Row]:
    phone = Phone(server.address, "bench-phone", new_code(server.address))
    stack.callback(phone.close)
    session = _open(server.address, phone.token)
    rows = []
    for name, method, path, arguments in (("media", "POST", "/media", PLAY), ("ping", "GET", "/ping", {})):
        ways = {
            "route": request(
                method, path, token=phone.token, body=json.dumps(arguments).encode() if arguments else b""
            ),
            "session": _told(
                phone.token, name, arguments, {"Mcp-Session-Id": session, "MCP-Protocol-Version": HANDSHAKE}
            ),
            "stateless": _told(phone.token, name, arguments, {"MCP-Protocol-Version": MODERN}),
        }
        runs = {way: TimedRounds() for way in WAYS}
        seconds = scale.seconds / scale.load_rounds / TURNS
        for way in WAYS:
            drive(server.address, ways[way], callers=1, seconds=0.1, most=scale.most_requests, phone=phone)
        for turn in range(scale.load_rounds * TURNS):
            for way in rotated(WAYS, turn):
                progress(f"mcp: {name} by {way}, turn {turn + 1}, {server.contestant.name}")
                run = partial(
                    drive, server.address, ways[way], callers=1, seconds=seconds, most=scale.most_requests, phone=phone
                )
                take_timed_round(runs[way], server, run)
        route = runs["route"].cpu / runs["route"].amount
        for way, done in runs.items():
            cost = done.cpu / done.amount
            values = {
                "cpu_us": cost * 1e6,
                "cpu_ratio": cost / route if route else 0.0,
                "waited_percent": done.figures(done)["waited_percent"],
            }
            rows.append(Row(f"{server.contestant.name}: {name}, {way}", values))
        notes += notes_on({f"{server.contestant.name}: {name}": done for done in runs.values()}, "calls")[1:]
    return rows


def _told(token: str, name: str, arguments: Mapping[str, object], fields: Mapping[str, str]) -> bytes:
    """Return an MCP request that calls the tool `phone_NAME`, in the session named in `fields`, or without one."""
    params: dict[str, object] = {"name": f"phone_{name}", "arguments": arguments}
    if "Mcp-Session-Id" not in fields:
        meta = {"protocolVersion": MODERN, "clientCapabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        params["_meta"] = {f"io.modelcontextprotocol/{name}": value for name, value in meta.items()}
        fields = {**fields, "Mcp-Method": "tools/call", "Mcp-Name": f"phone_{name}"}
    return request("POST", "/mcp", token=token, body=_message("tools/call", params), fields={**TYPES, **fields})


def _message(method: str, params: Mapping[str, object]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()


def _open(address: Address, token: str) -> str:
    """Open a session and return its id."""
    about = {"protocolVersion": HANDSHAKE, "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
    conn = HTTPConnection(*address, timeout=PATIENCE)
    try:
        fields = {"Authorization": f"Bearer {token}", "Content-Type": "application/json", **TYPES}
        conn.request("POST", "/mcp", _message("initialize", about), fields)
        answer = conn.getresponse()
        answer.read()
    finally:
        conn.close()
    session = answer.getheader("Mcp-Session-Id")
    if session is None:
        raise BenchError(f"no session of MCP: {answer.status}")
    return session


# --- sessions -----------------------------------------------------------------------------------------------------


def _held(one: Contestant, count: int, progress: Progress) -> dict[str, float]:
    values: dict[str, float] = {}
    for key, heard in (("idle_kb", False), ("heard_kb", True)):
        progress(f"mcp: {count:,} idle sessions, {one.name}")
        with ExitStack() as stack:
            server = stack.enter_context(running(one))
            wait_healthy(server.address)
            phones = []
            for number in range(1 + count // PER_CALLER):
                phones.append(Phone(server.address, f"bench-{number}", new_code(server.address)))
                stack.callback(phones[-1].close)
                _hold(server.address, phones[-1].token, stack, heard=heard)  # memory that each caller needs once
            time.sleep(SETTLE)
            begun = server.resident()
            for number in range(count):
                _hold(server.address, phones[number // PER_CALLER].token, stack, heard=heard)
            time.sleep(SETTLE)
            values |= {"one_mib": begun / 2**20, key: max(server.resident() - begun, 0) / count / 1000}
    return values


def _hold(address: Address, token: str, stack: ExitStack, *, heard: bool) -> None:
    session = _open(address, token)
    if heard:
        conn = HTTPConnection(*address, timeout=PATIENCE)
        stack.callback(conn.close)
        fields = {"Authorization": f"Bearer {token}", "Accept": "text/event-stream", "Mcp-Session-Id": session}
        conn.request("GET", "/mcp", headers=fields)
        answer = conn.getresponse()
        stack.callback(answer.close)
        if answer.status != 200:
            raise BenchError(f"the stream of an MCP session was refused: {answer.status}")
