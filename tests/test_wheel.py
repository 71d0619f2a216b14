"""What a wheel brings, by the build's own selection of files: our packages, and that they have types."""

from __future__ import annotations

from pathlib import Path

from hatchling.builders.wheel import WheelBuilder

ROOT = Path(__file__).parent.parent
PACKAGES = ("svc_proto", "runtimes", "servers", "clients")


def test_each_package_says_that_it_has_types() -> None:
    selected = {file.distribution_path for file in WheelBuilder(str(ROOT)).recurse_included_files()}
    assert {path.partition("/")[0] for path in selected} == set(PACKAGES)
    assert {f"{package}/py.typed" for package in PACKAGES} <= selected  # PEP 561
