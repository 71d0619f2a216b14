"""How the agent gets a session token of the relay on its own host: a code by loopback, then `system/auth` with it.

The session is an ordinary one (wire core 1, 2): the operator sees it as "Agent on this host" and can revoke it. It
asks for the grant that it needs, and to have the others withheld.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc_proto.basics.entropy import new_uuid
from svc_proto.engine.flow import Flow
from svc_proto.machines.grants import CHANNELS
from svc_proto.schema.oauth import SCOPE_READ
from svc_proto.service_clients.relay_client import RelayClient
from svc_proto.service_clients.relay_connection import open_link
from svc_proto.service_clients.service_client import Peer, PeerFailed, PeerFault

if TYPE_CHECKING:
    from svc_proto.engine.core import Engine

__all__ = ["DEVICE_NAME", "pair", "refusal_of"]

DEVICE_NAME = "Agent on this host"
WITHIN = 10.0  # s for each of the steps
WITHHELD = dict.fromkeys(CHANNELS, False)
GRANTS = {**WITHHELD, "bridge": 0}  # s; 0: as long as the session; false: withheld
LOOKS = {**WITHHELD, SCOPE_READ: 0}  # which only the operator gives


def pair(
    engine: Engine, relay: RelayClient, name: str = DEVICE_NAME, *, ttl: int | None = None, looks: bool = False
) -> Flow[str]:
    """A fresh session token of a relay on this host, for a device of this name. Raises `PeerFailed`.

    It lasts for `ttl` seconds; None: as long as the relay thinks fit. With `looks` it may look at the phone only.
    """
    payload = {
        "pairing_code": (yield from relay.new_code(engine, within=WITHIN, grants=LOOKS if looks else None)),
        "device_name": name,
        "device_id": new_uuid(engine.entropy),
        "client_surface": "agent",
        "device_form_factor": "host",
        "grants": GRANTS,
        **({} if ttl is None else {"ttl_seconds": ttl}),
    }
    socket = Peer(relay.name, f"ws{relay.url.removeprefix('http')}/ws")
    link, welcome = yield from open_link(engine, socket, payload, within=WITHIN)
    link.close()
    return welcome.token


def refusal_of(error: PeerFailed) -> str:
    """Why there is no token, for people."""
    if error.fault is PeerFault.REJECTED:
        return "the relay refused the pairing code"
    if error.fault is PeerFault.CUT:
        return "the relay did not answer system/auth"
    if error.answer is None:
        return error.why
    what = "refused the socket" if error.peer.url.startswith("ws") else "gave no pairing code"
    return f"the relay {what}: {error.status}"
