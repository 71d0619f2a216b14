"""Suite of our MCP client with external servers: the official package's, and scenarios of the conformance suite."""

import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.conformance.external_tools import attempt, connected, node, npm_package, pip_target, run_json, stopping
from tests.conformance.result import Result
from tests.servers.program_process import ROOT
from tests.support.ports import free_port

HERE = Path(__file__).parent
MCP = "mcp==2.3.0"
CONFORMANCE = "@modelcontextprotocol/conformance@0.1.16"
NODE = 22  # required major version
SCENARIOS = ("initialize", "tools_call", "sse-retry")
LEFT_OUT = {
    "elicitation-sep1034-client-defaults": "the agent lets no server ask its user",
    "auth/*": "no OAuth: a server's token is a header of the configuration",
}
WITHIN = 60.0  # s


def mcp(runtime: str) -> Result:
    """Run our MCP client, on one loop, against the official server and the conformance scenarios."""
    result = Result(f"MCP servers, {MCP} and {CONFORMANCE} on {runtime}")
    folder = pip_target("mcp", MCP)
    server = (sys.executable, str(HERE / "mcp_server_official.py"), str(folder))
    _official(result, "stdio", _run_client(runtime, *server))
    port = free_port()
    with stopping(
        subprocess.Popen([*server, str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True)
    ):
        connected(port).close()
        _official(result, "HTTP", _run_client(runtime, f"http://127.0.0.1:{port}/mcp"))
    suite = npm_package(CONFORMANCE) / "@modelcontextprotocol/conformance/dist/index.js"
    for scenario in SCENARIOS:
        client = f"{sys.executable} -m tests.conformance.mcp_client {runtime}"
        command = (node(NODE), str(suite), "client", "--scenario", scenario, "--command", client)
        tried = attempt(command, within=WITHIN, env={"PYTHONPATH": str(ROOT)})
        result.note(scenario, None if tried.returncode == 0 else tried.stdout[-500:].decode("utf-8", "replace"))
    for name, reason in LEFT_OUT.items():
        result.leave_out(name, reason)
    return result


def _official(result: Result, way: str, seen: dict[str, Any]) -> None:
    result.compare(f"{way}: a result", seen.get("add", {}).get("structuredContent"), {"result": 6})
    result.compare(f"{way}: a tool that fails", seen.get("fail", {}).get("isError"), True)
    result.compare(f"{way}: no problem", seen.get("problem"), None)


def _run_client(runtime: str, *target: str) -> dict[str, Any]:
    command = (sys.executable, "-m", "tests.conformance.mcp_client", runtime, *target)
    return run_json(command, within=WITHIN, env={"PYTHONPATH": str(ROOT)})
