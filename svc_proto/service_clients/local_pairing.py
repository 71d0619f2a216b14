"""Pairing of the agent with the relay on its own host: a code by loopback, then `system/auth` with it.

The session is an ordinary one (wire core 1, 2): the operator sees it by its name, "Agent on this host" by default,
and can revoke it. The agent requests only the grant that it needs, and has the others withheld.
"""

from svc_proto.basics.entropy import new_uuid
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.machines.grants import CHANNELS
from svc_proto.schema.oauth import SCOPE_READ
from svc_proto.service_clients.relay_client import RelayClient
from svc_proto.service_clients.relay_connection import connect_relay
from svc_proto.service_clients.service_client import ServiceCallError, ServiceClient, ServiceFault

__all__ = ["DEVICE_NAME", "pair_locally", "refusal_of"]

DEVICE_NAME = "Agent on this host"
STEP_TIMEOUT = 10.0  # s for each step
NO_GRANTS = dict.fromkeys(CHANNELS, False)
GRANTS = {**NO_GRANTS, "bridge": 0}  # s; 0: as long as the session; false: withheld
READ_ONLY_GRANTS = {**NO_GRANTS, SCOPE_READ: 0}  # only the operator can give this grant


def pair_locally(
    engine: Engine,
    relay: RelayClient,
    name: str = DEVICE_NAME,
    *,
    ttl: int | None = None,
    looks: bool = False,
    audience: str = "",
) -> Flow[str]:
    """Return a new session token of a relay on this host, for a device of this name. Raises `ServiceCallError`.

    The requested lifetime is `ttl` seconds, or the relay's default for None. With `looks` the session permits
    only reading the phone. With an `audience` it is valid for that audience only.
    """
    granted = READ_ONLY_GRANTS if looks else None
    payload = {
        "pairing_code": (yield from relay.new_code(engine, within=STEP_TIMEOUT, grants=granted, audience=audience)),
        "device_name": name,
        "device_id": new_uuid(engine.entropy),
        "client_surface": "agent",
        "device_form_factor": "host",
        "grants": GRANTS,
        **({} if ttl is None else {"ttl_seconds": ttl}),
    }
    socket = ServiceClient(relay.name, f"ws{relay.url.removeprefix('http')}/ws")
    link, welcome = yield from connect_relay(engine, socket, payload, within=STEP_TIMEOUT)
    link.close()
    return welcome.token


def refusal_of(error: ServiceCallError) -> str:
    """Return the reason for a failed pairing, for users."""
    if error.fault is ServiceFault.REJECTED:
        return "the relay refused the pairing code"
    if error.fault is ServiceFault.CONNECTION_LOST:
        return "the relay did not answer system/auth"
    if error.answer is None:
        return error.why
    what = "refused the socket" if error.peer.url.startswith("ws") else "gave no pairing code"
    return f"the relay {what}: {error.status}"
