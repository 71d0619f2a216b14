"""Build hook: the wheel and the source archive carry the commit that they were built from."""

from __future__ import annotations

import runpy
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

__all__ = ["CommitBuildHook"]


class CommitBuildHook(BuildHookInterface[Any]):
    """Adds `commit.txt`, which `runtimes/files/installed_version.py` reads, to wheel and source archive."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the file to the build, unless it exists, the build is editable, or the commit is unknown."""
        root = Path(self.root)
        names = runpy.run_path(str(root / "runtimes/files/installed_version.py"))
        commit, target = names["find_commit"](root, length=None), names["COMMIT_FILE"]
        if version == "editable" or not commit or (root / target).exists():
            return
        self._folder = tempfile.TemporaryDirectory(prefix="svc-commit-")
        path = Path(self._folder.name) / "commit.txt"
        path.write_text(f"{commit}\n")
        build_data["force_include"][str(path)] = target

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Delete the temporary file, if there is one."""
        if hasattr(self, "_folder"):
            self._folder.cleanup()
