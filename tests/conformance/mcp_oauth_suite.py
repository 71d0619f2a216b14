"""The official client of MCP (PyPI) at the relay, by OAuth, with the reference phone behind it."""

from __future__ import annotations

import json
import sys
import tempfile
import urllib.request
from pathlib import Path

from tests.conformance.mcp_suite import MCP
from tests.conformance.result import Result
from tests.conformance.tools import pip_target, run
from tests.servers.support import running, running_relay

__all__ = ["mcp_oauth"]

HERE = Path(__file__).parent
WITHIN = 120.0  # s
WANTED = {
    "comes in": [False, False],
    "token": ["Bearer", 3600, "bridge"],
    "refreshes": [False],
    "another token": True,
    "comes back": [False],
    "was asked once": 1,
    "listed": "MCP: Conformance",
    "revoked": "PermissionError",
    "asked anew": 1,
    "without a grant": "PermissionError",
    "only looks": [False, True],
}
"""What has to be seen. A tool answers whether it has failed."""


def mcp_oauth(runtime: str) -> Result:
    """It is let in, calls, has its token renewed, comes back, and is sent away."""
    folder = pip_target("mcp", MCP)
    result = Result(f"OAuth of /mcp, {MCP} on {runtime}")
    with tempfile.TemporaryDirectory() as home, running_relay(Path(home), runtime=runtime) as (_, port):
        url = f"http://127.0.0.1:{port}"
        with urllib.request.urlopen(urllib.request.Request(f"{url}/pairing", method="POST")) as answer:
            code = json.load(answer)["code"]
        ways = ("--remote", f"ws://127.0.0.1:{port}", "--code", code, "--master", "on", "--allow")
        with running(Path(home), "clients.phone", *ways) as phone:
            phone.line("^paired: session ")
            command = (sys.executable, str(HERE / "client_mcp.py"), str(folder), url)
            seen = json.loads(run(command, within=WITHIN))
    for case, wanted in WANTED.items():
        result.compare(case, seen.get(case), wanted)
    return result
