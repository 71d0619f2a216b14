"""Pairs a device for a check: a pairing code, a client socket and a session."""

from __future__ import annotations

from typing import Any

from attrs import frozen

from fuzz.simulation.checks.check_context import Audit, Seat
from runtimes.sim.host import SimHost


@frozen(eq=False)
class Paired:
    """A paired device, its open client socket and what it told about itself."""

    token: str
    host: SimHost
    seat: Seat
    shown: dict[str, object]

    @property
    def prefix(self) -> str:
        """First eight characters of the token, by which a session is named."""
        return self.token[:8]


def register(audit: Audit) -> str:
    """Register a pairing code as the operator."""
    code = f"A{audit.crowd.number():05}"
    audit.right(audit.ask_here("POST", "/pairing/register", {"code": code}), 200)
    return code


def sign_in(audit: Audit, host: SimHost, payload: dict[str, object]) -> Seat:
    """Open a client socket and show a credential."""
    seat = audit.sit(host)
    if not seat.over:
        seat.say("system", "auth", payload, "auth-1")
    return seat


def pair(audit: Audit, *, device_id: str = "", surface: str = "desktop", form: str = "desktop") -> Paired:
    """Pair a device with a new code."""
    host = audit.host()
    shown: dict[str, object] = {"device_id": device_id or audit.word(), "device_name": f"device {audit.word()}"}
    shown |= {"client_surface": surface, "device_form_factor": form}
    seat = sign_in(audit, host, {"pairing_code": register(audit), **shown})
    answer = seat.take()
    audit.same((answer["channel"], answer["type"], answer["id"]), ("system", "auth.ok", "auth-1"), "a new pairing code")
    token = answer["payload"]["session_token"]
    audit.world.secrets[token] = f"the token {token[:8]}"
    return Paired(token, host, seat, shown)


def listed(audit: Audit) -> dict[str, dict[str, Any]]:
    """Return the sessions that the relay lists, by the prefixes of their tokens."""
    records = audit.right(audit.ask_here("GET", "/sessions"), 200)["sessions"]
    found = {record["token_prefix"]: record for record in records}
    audit.same(len(records), len(found), "number of listed sessions")
    return found
