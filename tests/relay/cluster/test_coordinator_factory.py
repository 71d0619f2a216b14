"""The coordinator of a relay that runs alone."""

from svc_proto.relay.cluster.local_coordinator import LocalCoordinator
from svc_proto.relay.service import Relay
from svc_proto.relay_config import RelayConfig


def test_relay_that_runs_alone_has_a_local_coordinator() -> None:
    assert type(Relay(RelayConfig()).coordinator) is LocalCoordinator
