"""Rules of a simulation: when the relay requires the local secret, and what must end with a session."""

from random import Random
from typing import cast

from fuzz.simulation.invariants import Invariant, violated
from fuzz.simulation.script import Script
from fuzz.steps import DegradeDisk, FillDisk, KillProgram, RefuseSessionRecord, RevokeOnFullDisk, StopProgram
from runtimes.sim.host import SimHost
from svc_proto.engine.core import Engine
from svc_proto.engine.exchange import Exchange
from svc_proto.machines.exchange import RESPONSE_STARTED, UNANSWERED
from svc_proto.relay.service import Relay
from svc_proto.relay.websocket.client_connection import ClientState
from svc_proto.service_clients.local_secret import HEADER, LOCAL_SECRET

SECRET_SHARE = 0.3  # share of scripts without a restart of the relay in which programs must send the local secret
# In these cases the secret changes, or is not stored.
RESTARTS = (StopProgram, KillProgram, RefuseSessionRecord, RevokeOnFullDisk, DegradeDisk, FillDisk)

ANSWERING = (*UNANSWERED, *RESPONSE_STARTED)  # an answered exchange may still discard the rest of a body


def asks_for_secret(script: Script) -> bool:
    """Report whether the relay requires the local secret in this script."""
    lasts = not any(type(step) in RESTARTS for step in script.steps)
    return lasts and Random(f"door {script.seed}").random() < SECRET_SHARE


def secret_of(home: SimHost) -> tuple[str, str] | None:
    """Return the header field with the local secret, as programs of the relay's user send it; None without a secret."""
    path = f"{home.state}/{LOCAL_SECRET}"
    return (HEADER.decode(), home.disk.get(path).decode()) if home.disk.exists(path) else None


def check_ends(engine: Engine, relay: Relay) -> None:
    """Check that the relay has no open request or socket of an ended session.

    Requests with `DELETE` are exempt, since a client that ends its own session waits for the store.
    """
    for held, holder in engine.revocables.items():
        exchange = cast("Exchange", held)
        is_answering = exchange.state in ANSWERING and exchange._request.method != "DELETE"
        if is_answering and relay.sessions.hashed(holder) is None:
            violated(Invariant.AFTER_END, "a request is under way for a session that was ended")
    for client in relay.clients.values():
        session = client.session
        is_ended = session is not None and relay.sessions.hashed(session.token_hash) is None
        if session is not None and is_ended and client.state is ClientState.OPEN:
            violated(Invariant.AFTER_END, f"a socket of {session.token_prefix} is open, and its session was ended")
