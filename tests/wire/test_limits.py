"""The limits: their consistency, their defaults, and the shares of servers in one process."""

from __future__ import annotations

import attrs
import pytest

from svc_proto.wire.limits import DEFAULT_LIMITS

MIB = 1024 * 1024


def test_every_limit_is_positive() -> None:
    assert all(value > 0 for value in attrs.astuple(DEFAULT_LIMITS))


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


def test_the_defaults() -> None:
    assert attrs.asdict(DEFAULT_LIMITS) == {
        "max_head": 32 * 1024,
        "max_fields": 100,
        "head_timeout": 15.0,
        "body_timeout": 30.0,
        "idle_timeout": 75.0,
        "write_timeout": 60.0,
        "file_timeout": 300.0,
        "min_body_rate": 1024,
        "linger": 2.0,
        "max_linger": 64 * MIB,
        "max_drain": 256 * 1024,
        "max_skipped": 64 * 1024,
        "max_message": 8 * MIB,
        "unauthenticated_message": 64 * 1024,
        "unauthenticated_budget": 48 * MIB,
        "unauthenticated_share": 16 * MIB,
        "unauthenticated_connections": 256,
        "unauthenticated_burst": 4 * 1024,
        "unauthenticated_rate": 16.0 * 1024 * 1024,
        "unauthenticated_timeout": 5.0,
        "large_input": MIB,
        "large_inputs": 10_000,
        "large_input_timeout": 120.0,
        "ping_interval": 30.0,
        "ping_timeout": 20.0,
        "close_timeout": 5.0,
        "high_water": 256 * 1024,
        "low_water": 64 * 1024,
        "max_unsent": 16 * MIB,
        "max_connections": 10_000,
        "local_connections": 32,
    }
