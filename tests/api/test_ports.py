"""The API server has every member of its ports; mypy checks their types."""

from __future__ import annotations

import pytest

from svc_proto.api import ports
from tests.api.harness import ApiHarness


@pytest.mark.parametrize("name", ports.__all__)
def test_api_has_the_members_of_each_port(name: str) -> None:
    port = getattr(ports, name)
    members = {each for kind in port.__mro__[:-2] for each in (*vars(kind).get("__annotations__", ()), *vars(kind))}
    public = {each for each in members if not each.startswith("_")}
    assert public
    assert [each for each in public if not hasattr(ApiHarness().api, each)] == []
