"""Choice of the coordinator: a relay that runs alone does not import the coordinator of a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc_proto.relay.cluster.local_coordinator import LocalCoordinator

if TYPE_CHECKING:
    from svc_proto.relay.cluster.coordinator import ClusterPort

__all__ = ["new_coordinator"]


def new_coordinator(relay: ClusterPort) -> LocalCoordinator:
    """Return a `ClusterCoordinator` if the relay's configuration names a cluster, else a `LocalCoordinator`."""
    if relay.config.cluster is None:
        return LocalCoordinator(relay)
    from svc_proto.relay.cluster.coordinator import ClusterCoordinator  # noqa: PLC0415, RUF100 - see above

    return ClusterCoordinator(relay, relay.config.cluster)
