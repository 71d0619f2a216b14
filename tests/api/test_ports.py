"""The API server has every member of the protocols in its module `ports`; mypy checks their types."""

import pytest

from svc_proto.api import ports
from tests.api.harness import ApiHarness
from tests.support.port_members import missing_members


@pytest.mark.parametrize("name", ports.__all__)
def test_api_has_the_members_of_each_port(name: str) -> None:
    assert missing_members(getattr(ports, name), ApiHarness().api) == []
