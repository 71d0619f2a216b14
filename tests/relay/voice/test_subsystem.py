"""Modules that importing the relay's program does not load, and voice and MCP subsystems created at their first use."""

import subprocess
import sys
from pathlib import Path

from tests.relay.harness import PairedPhone, RelayHarness

ROOT = Path(__file__).resolve().parents[3]
LATER = (
    "svc_proto.voice.service", "svc_proto.mcp.streamable_http", "svc_proto.relay.voice.subsystem",
    "svc_proto.wire.http2", "h2",
)  # fmt: skip


def test_start_loads_no_voice_module() -> None:
    code = f"import sys, servers.launch, servers.relay_program; sys.exit(not set(sys.modules).isdisjoint({LATER!r}))"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


def test_subsystems_are_created_at_their_first_use(book: RelayHarness, paired: PairedPhone) -> None:
    book.request("PATCH", f"/sessions/{paired.prefix}", {"grants": {"bridge": 60}}, token=paired.token)
    assert book.request("DELETE", f"/sessions/{paired.prefix}", token=paired.token).status == 200
    book.stop()
    assert (book.relay._voice, book.relay._mcp) == (None, None)
    relay = RelayHarness().relay
    assert relay.voice_side is relay.voice_side
    assert relay.mcp is relay.mcp
