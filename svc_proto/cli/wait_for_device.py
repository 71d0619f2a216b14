"""Waiting of the operator's command until a device pairs with the new code."""

from __future__ import annotations

from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow, sleep
from svc_proto.service_clients.relay_client import RelayClient
from svc_proto.service_clients.service_client import ServiceCallError

__all__ = ["wait_for_device"]

POLL_INTERVAL = 1.0  # s


def wait_for_device(engine: Engine, relay: RelayClient, *, since: float, until: float) -> Flow[str | None]:
    """Return the name of a device that pairs from `since` on, or None at `until`; both in epoch seconds.

    A device without a name gets a text in its place. A request to the relay that fails is repeated.
    """
    while engine.now.wall < until:
        try:
            listed = yield from relay.sessions(engine)
        except ServiceCallError:
            listed = []
        for session in listed:
            if session.number("created_at", since) is not None:
                return session.text("device_name") or "a device without a name"
        yield from sleep(engine, POLL_INTERVAL)
    return None
