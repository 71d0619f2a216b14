"""What the Makefile makes of an installation that fails: a wheel that is missing is no reason to stop, all else is."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PIP = """#!/bin/sh
case "$*" in *voice.lock*) if [ -n "$SAYS" ]; then echo "$SAYS" >&2; exit 1; fi ;; esac
"""


@pytest.mark.parametrize(
    ("says", "works", "told"),
    [
        ("", True, ""),
        ("ERROR: No matching distribution found for pocketsphinx==5.0.4", True, "no wheels of the voice engines"),
        ("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES", False, "DO NOT MATCH THE HASHES"),
        ("ERROR: Could not install packages due to an OSError", False, "OSError"),
    ],
)
def test_the_voice_engines(tmp_path: Path, says: str, works: bool, told: str) -> None:
    pip = tmp_path / "pip"
    pip.write_text(PIP)
    pip.chmod(0o755)
    rules = tmp_path / "rules.mk"
    rules.write_text("include Makefile\ntry:\n\t$(call install,run,it)\n")
    env = {**os.environ, "SAYS": says}
    make = ["make", "-f", str(rules), "try", f"PIP={pip}"]
    made = subprocess.run(make, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert (made.returncode == 0) is works
    assert told in made.stderr
