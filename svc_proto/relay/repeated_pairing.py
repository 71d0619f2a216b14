"""End of the earlier sessions of a device that has paired again (wire core 1.9)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc_proto.engine.flow import Flow

if TYPE_CHECKING:
    from svc_proto.machines.paired_session import PairedSession
    from svc_proto.relay.service import Relay

__all__ = ["end_earlier_sessions"]

REASON = "the device has paired again"


def end_earlier_sessions(relay: Relay, session: PairedSession) -> Flow[None]:
    """Revoke the other sessions of the device of a new session, since their tokens are of no use to it."""
    for earlier in relay.sessions.of_device(session.device_id, relay.engine.now):
        if earlier is not session and earlier.created_at <= session.created_at:
            yield from relay.revoke(earlier, REASON)
    yield from relay.coordinator.flush_best_effort()
