"""The limits fit each other."""

from __future__ import annotations

import attrs
import pytest

from svc_proto.wire.limits import DEFAULT_LIMITS


def test_every_limit_is_positive() -> None:
    assert all(value > 0 for value in attrs.astuple(DEFAULT_LIMITS))


@pytest.mark.parametrize(
    ("descriptors", "servers", "connections", "budget", "share"),
    [
        (65_536, 1, 10_000, 64, 16),
        (65_536, 3, 10_000, 64 / 3, 16),
        (4096, 3, 1194, 64 / 3, 16),
        (1024, 1, 512, 64, 16),
        (1024, 2, 256, 32, 16),
        (64, 1, 32, 64, 16),
        (1, 8, 1, 8, 8),
    ],
)
def test_servers_share_what_a_process_has(
    descriptors: int, servers: int, connections: int, budget: float, share: int
) -> None:
    limits = DEFAULT_LIMITS.shared(descriptors=descriptors, servers=servers)
    assert limits.max_connections == connections
    assert limits.stranger_budget == int(budget * 2**20)
    assert limits.stranger_share == share * 2**20


def test_marks_are_in_order() -> None:
    limits = DEFAULT_LIMITS
    assert limits.low_water < limits.high_water <= limits.max_unsent
    assert limits.ping_patience < limits.ping_interval
