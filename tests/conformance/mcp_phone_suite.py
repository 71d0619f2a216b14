"""Suites of external MCP clients at a relay with a phone: the official packages, and the inspector."""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from svc_proto.agent.tools.phone_tools import PHONE_TOOLS
from tests.conformance.external_tools import attempt, node, npm_package, pip_target, program
from tests.conformance.mcp_phone_environment import STATELESS, WANTED, McpPhoneEnvironment, carried_out, in_a_world
from tests.conformance.mcp_suite import MCP, NODE
from tests.conformance.result import Result
from tests.support.ports import free_port

HERE = Path(__file__).parent
SDK = "@modelcontextprotocol/sdk@1.32.2"
INSPECTOR = "@modelcontextprotocol/inspector@2.12.0"
WITHIN = 60.0  # s for one command
ADDRESS = re.compile(rb"(http://[^\s\x07\x1b]+/oauth/authorize[^\s\x07\x1b]+)[\x07\x1b\r]")
AUTH_REQUIRED = 3  # exit code of the inspector where it would need a user
BY_OAUTH = {
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
"""What is seen of a client that comes in by OAuth. A tool answers whether it has failed."""


def mcp_python(runtime: str) -> Result:
    """Run the official package for Python, and compare its observations."""
    folder = pip_target("mcp", MCP)
    command = (sys.executable, str(HERE / "client_mcp_phone.py"), str(folder))
    return _compared(runtime, MCP, *command, wanted=WANTED | STATELESS)


def mcp_oauth(runtime: str) -> Result:
    """Run the official client with OAuth, and compare what it observes: calls, refresh, return, and revocation."""
    folder = pip_target("mcp", MCP)
    command = (sys.executable, str(HERE / "client_mcp_oauth.py"), str(folder))
    return _compared(runtime, f"{MCP} by OAuth", *command, wanted=BY_OAUTH)


def mcp_typescript(runtime: str) -> Result:
    """Run the official package for TypeScript, and compare its observations."""
    env = {"NODE_PATH": str(npm_package(SDK))}
    return _compared(runtime, SDK, program("node"), str(HERE / "client_mcp_phone.cjs"), env=env)


def _compared(
    runtime: str, package: str, *command: str, env: dict[str, str] | None = None, wanted: Mapping[str, object] = WANTED
) -> Result:
    result = Result(f"a phone by MCP, {package} on {runtime}")
    seen = carried_out(runtime, command, env)
    for case, value in wanted.items():
        result.compare(case, seen.get(case), value)
    return result


def mcp_inspector(runtime: str) -> Result:
    """Run the inspector's command line: with a token, without one, and by OAuth."""
    folder = npm_package(INSPECTOR) / "@modelcontextprotocol/inspector"
    script = folder / json.loads((folder / "package.json").read_text())["bin"]["mcp-inspector"]
    command = (node(NODE), str(script), "--cli", "--format", "json")
    result = Result(f"a phone by MCP, {INSPECTOR} on {runtime}")
    with tempfile.TemporaryDirectory() as home, in_a_world(runtime) as world:
        way = (f"http://127.0.0.1:{world.port}/mcp", "--transport", "http")
        header = ("--header", f"Authorization: Bearer {world.token}")
        env = {"HOME": home, "MCP_INSPECTOR_SECRET_STORE": "file"}

        def asked(*words: str) -> Any:
            done = attempt((*command, *way, *words), within=WITHIN, env=env)
            return json.loads(done.stdout) if done.returncode == 0 else done.stderr.decode()[-500:]

        listed = asked(*header, "--method", "tools/list")
        result.compare("lists", _names(listed), [f"phone_{row.name}" for row in PHONE_TOOLS])
        tap = ("--method", "tools/call", "--tool-name", "phone_tap", "--tool-arg", "x=10", "--tool-arg", "y=10")
        result.compare("calls", _result(asked(*header, *tap)).get("isError"), False)
        read = _result(asked(*header, "--method", "resources/read", "--uri", "phone://devices"))
        result.compare("reads", "Reference phone" in json.dumps(read), True)
        silent = attempt((*command, *way, "--stored-auth-only", *tap), within=WITHIN, env=env)
        result.compare("is refused without a token", silent.returncode, AUTH_REQUIRED)
        done = _by_oauth(world, (*command, *way), env, tap)
        result.compare("calls by OAuth", _result(done).get("isError"), False)
        again = asked("--stored-auth-only", *tap)
        result.compare("comes back with what it has stored", _result(again).get("isError"), False)
    return result


def _by_oauth(
    world: McpPhoneEnvironment, command: tuple[str, ...], env: Mapping[str, str], words: tuple[str, ...]
) -> Any:
    """Run the inspector by OAuth; return its JSON output or, if it failed, its text on the terminal up to the address.

    Only on a terminal it prints an address for a browser and waits for the redirect.
    """
    callback = f"http://127.0.0.1:{free_port()}/oauth/callback"
    told = [*command, "--callback-url", callback, *words]
    ours, theirs = os.openpty()
    with open(ours, "rb", buffering=0) as terminal:
        quiet = subprocess.DEVNULL
        with subprocess.Popen(
            told, stdin=quiet, stdout=subprocess.PIPE, stderr=theirs, env={**os.environ, **env}
        ) as process:
            os.close(theirs)
            said = b""
            while (found := ADDRESS.search(said)) is None:
                said += terminal.read(4096)
            world.allow(found[1].decode())
            out, _ = process.communicate(timeout=WITHIN)
    return json.loads(out) if process.returncode == 0 else said.decode()


def _names(listed: Any) -> list[str]:
    return [tool["name"] for tool in listed["result"]["tools"]] if isinstance(listed, dict) else [str(listed)]


def _result(told: Any) -> Mapping[str, Any]:
    return told["result"] if isinstance(told, dict) else {"isError": told}
