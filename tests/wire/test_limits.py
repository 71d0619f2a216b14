"""The limits: their consistency, their defaults, and the shares of servers in one process."""

import pytest

from svc_proto.wire.limits import DEFAULT_LIMITS


@pytest.mark.parametrize(
    ("descriptors", "servers", "connections", "budget", "share"),
    [
        (65_536, 1, 10_000, 48, 16),
        (65_536, 3, 10_000, 48 / 3, 16),
        (4096, 3, 1194, 48 / 3, 16),
        (1024, 1, 512, 48, 16),
        (1024, 2, 256, 24, 16),
        (64, 1, 32, 48, 16),
        (1, 8, 1, 6, 6),
    ],
)
def test_servers_share_the_limits_of_a_process(
    descriptors: int, servers: int, connections: int, budget: float, share: int
) -> None:
    limits = DEFAULT_LIMITS.shared(descriptors=descriptors, servers=servers)
    assert limits.max_connections == connections
    assert limits.unauthenticated_budget == int(budget * 2**20)
    assert limits.unauthenticated_share == share * 2**20


def test_marks_are_in_order() -> None:
    limits = DEFAULT_LIMITS
    assert limits.low_water < limits.high_water <= limits.max_unsent
    assert limits.ping_timeout < limits.ping_interval
