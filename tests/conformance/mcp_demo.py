"""`make demo-mcp`: the official MCP client opens an app and reads the screen of the reference phone, by `svc mcp`."""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.conformance.external_tools import pip_target, run
from tests.conformance.mcp_phone_environment import in_a_world
from tests.conformance.mcp_suite import MCP
from tests.servers.program_process import ROOT

CLIENT = Path(__file__).parent / "mcp_client_official.py"
WITHIN = 60.0  # s


def main() -> None:
    """Run a relay with a paired phone and the official client, which starts `svc mcp`; print the client's output."""
    folder = pip_target("mcp", MCP)
    command = (sys.executable, CLIENT, folder, sys.executable, "-m", "clients.commands.svc", "mcp")
    with in_a_world("asyncio") as world, TemporaryDirectory(prefix="svc-demo-mcp-") as home:
        url = f"http://127.0.0.1:{world.port}"
        env = {"SVC_HOME": home, "HOME": home, "SVC_RELAY_URL": url, "PYTHONPATH": str(ROOT)}
        sys.stdout.write(run(command, within=WITHIN, env=env))


if __name__ == "__main__":
    main()
