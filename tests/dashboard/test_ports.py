"""The dashboard has every member of the protocols in its module `ports`; mypy checks their types."""

import pytest

from svc_proto.dashboard import ports
from svc_proto.dashboard.config import DashboardConfig
from svc_proto.dashboard.service import Dashboard
from svc_proto.engine.core import Engine
from tests.support.port_members import missing_members


@pytest.mark.parametrize("name", ports.__all__)
def test_dashboard_has_the_members_of_each_port(name: str) -> None:
    dashboard = Dashboard(DashboardConfig(), {})
    Engine(dashboard, entropy=bytes)
    assert missing_members(getattr(ports, name), dashboard) == []
