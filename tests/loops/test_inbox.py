"""Test of concurrent uploads of pasted images (wire core 7)."""

from __future__ import annotations

import base64
import os
from pathlib import Path

from tests.loops.environment import Environment, bearer
from tests.loops.simulated_environment import SimulatedEnvironment


def inbox(world: Environment, tmp_path: Path) -> list[str]:
    if isinstance(world, SimulatedEnvironment):
        return sorted(world.relay_host.disk.files(f"{world.relay_host.state}/images/inbox"))
    return sorted(os.listdir(tmp_path / "images" / "inbox"))


def test_many_pastes_at_once_are_as_many_files(relayed: Environment, tmp_path: Path) -> None:
    token = relayed.pair().token
    body = {"format": "gif", "bytes_base64": base64.b64encode(b"GIF87a").decode()}
    callers = [relayed.client().begin("POST", "/clipboard/inbox", body, headers=bearer(token)) for _ in range(20)]
    paths = {caller.finish().json["path"] for caller in callers}
    assert len(paths) == len(inbox(relayed, tmp_path)) == 20
