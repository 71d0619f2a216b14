"""The version of the package and of the protocol."""

import tomllib
from pathlib import Path

from svc_proto.version import VERSION


def test_the_version_is_that_of_the_package() -> None:
    project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())["project"]
    assert project["version"] == VERSION
