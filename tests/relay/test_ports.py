"""The relay has every member of the protocols in its module `ports`; mypy checks their types."""

import pytest

from svc_proto.relay import ports
from tests.relay.harness import RelayHarness
from tests.support.port_members import missing_members


@pytest.mark.parametrize("name", ports.__all__)
def test_relay_has_the_members_of_each_port(name: str) -> None:
    assert missing_members(getattr(ports, name), RelayHarness().relay) == []
