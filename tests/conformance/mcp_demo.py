"""`make demo-mcp`: the official MCP client opens an app and reads the screen of the reference phone, by `svc mcp`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from tests.conformance.mcp_suite import MCP
from tests.conformance.tools import ROOT, pip_target, run, stopping
from tests.ports import free_port

HERE = Path(__file__).parent
WITHIN = 60.0  # s
PYTHON = sys.executable


def main() -> None:
    """A relay of its own in a folder of its own, a phone that is paired with it, and the client."""
    folder, port = pip_target("mcp", MCP), str(free_port())
    with tempfile.TemporaryDirectory(prefix="svc-demo-mcp-") as home, ExitStack() as stack:
        url = f"http://127.0.0.1:{port}"
        env = {"SVC_HOME": home, "HOME": home, "RELAY_PORT": port, "SVC_RELAY_URL": url, "PYTHONPATH": str(ROOT)}

        def start(*command: str) -> None:
            quiet = subprocess.DEVNULL
            program = [PYTHON, "-m", *command]
            process = subprocess.Popen(
                program, cwd=ROOT, env={**os.environ, **env}, stdout=quiet, stderr=quiet, text=True
            )
            stack.enter_context(stopping(process))

        def svc(*command: str) -> str:
            return run((PYTHON, "-m", "clients.commands.svc", *command), within=WITHIN, env=env)

        start("servers.relay", "--host", "127.0.0.1", "--no-ssl")
        code = json.loads(_again(lambda: svc("pair", "--json")))["relay"]["code"]
        start("clients.phone", "--remote", f"ws://127.0.0.1:{port}", "--code", code, "--master", "on", "--allow")
        client: Sequence[str] = (PYTHON, str(HERE / "mcp_client_official.py"), str(folder))
        server = (PYTHON, "-m", "clients.commands.svc", "mcp")
        sys.stdout.write(_again(lambda: run((*client, *server), within=WITHIN, env=env)))


def _again(what: Callable[[], str]) -> str:
    """Until it works: programs take a while to be there."""
    until = time.monotonic() + WITHIN
    while True:
        try:
            return what()
        except RuntimeError:
            if time.monotonic() > until:
                raise
            time.sleep(0.2)


if __name__ == "__main__":
    main()
