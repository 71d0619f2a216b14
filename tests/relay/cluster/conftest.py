"""Simulated clusters of two and of three nodes, whose invariants are checked after the test."""

from collections.abc import Iterator

import pytest

from fuzz.cluster.deployment import ClusterDeployment


@pytest.fixture
def two_nodes() -> Iterator[ClusterDeployment]:
    """Return a started cluster of two nodes."""
    yield from _checked(2)


@pytest.fixture
def three_nodes() -> Iterator[ClusterDeployment]:
    """Return a started cluster of three nodes."""
    yield from _checked(3)


def _checked(nodes: int) -> Iterator[ClusterDeployment]:
    deployment = ClusterDeployment(0, nodes)
    deployment.start()
    yield deployment
    deployment.check_invariants()
