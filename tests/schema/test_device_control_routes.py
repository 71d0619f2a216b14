"""A made-up row of the Device Control table, and the parts of the project that find it."""

import json
import subprocess
import sys

from tests.support.made_up_route import SUMMARY


def test_a_made_up_route_is_found_everywhere() -> None:
    found = subprocess.run(
        [sys.executable, "-m", "tests.support.made_up_route"], capture_output=True, text=True, timeout=120, check=False
    )
    assert found.stderr == ""
    assert json.loads(found.stdout) == {
        "argument check": [400, "ms"],
        "relay": ["POST", "/vibrate", {"ms": 5}, {"vibrated": 5}],
        "summary": SUMMARY,
        "required members": ["ms"],
        "reference page": True,
        "gate, master off": "bridge_disabled",
        "gate, target": "blocked package com.chase.sig.android",
        "gate, open": [200, 1, 0],
        "reference phone": {"vibrated": 5},
        "agent": ["vibrate", "Let the phone vibrate.", ["ms"]],
        "MCP": ["Let the phone vibrate.", False],
        "dashboard": ["POST", "/vibrate"],
        "phone's page": "/vibrate",
        "sentence": True,
        "access matrix": "in",
        "authority": [True, True],
    }
