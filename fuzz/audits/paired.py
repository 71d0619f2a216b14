"""Who is paired for an audit: a device, its socket and its session, with the terms that it has to have."""

from __future__ import annotations

from typing import Any

from attrs import define

from fuzz.audit import Audit, Seat
from fuzz.terms import NOTHING, Terms, Wish, in_json, paired
from runtimes.sim.host import Host
from svc_proto.version import VERSION

__all__ = ["Paired", "in_words", "listed", "pair", "register", "sign_in"]

NEVER = float("inf")


@define(eq=False)
class Paired:
    """A device, as it has to be listed."""

    token: str
    host: Host
    seats: list[Seat]
    terms: Terms
    shown: dict[str, Any]

    @property
    def prefix(self) -> str:
        """What it is named by."""
        return self.token[:8]

    @property
    def seat(self) -> Seat:
        """Its newest socket."""
        return self.seats[-1]


def register(audit: Audit, wish: Wish = NOTHING, **more: object) -> str:
    """A code of the operator's."""
    code = f"A{audit.crowd.number():05}"
    body = {"code": code, **more}
    if wish.ttl is not None:
        body["ttl_seconds"] = wish.ttl
    if wish.grants is not None:
        body["grants"] = in_json(wish.grants)
    audit.same(
        audit.right(audit.ask_here("POST", "/pairing/register", body), 200), {"ok": True, "code": code}, "a code"
    )
    return code


def sign_in(audit: Audit, host: Host, payload: dict[str, object], **headers: str) -> Seat:
    """Open a socket and show a credential."""
    seat = audit.sit(host, **headers)
    if not seat.over:
        seat.say("system", "auth", payload, "auth-1")
    return seat


def pair(
    audit: Audit,
    *,
    host: Host | None = None,
    name: str = "",
    device_id: str = "",
    surface: str = "desktop",
    form: str = "desktop",
    wish: Wish = NOTHING,
    asks: Wish = NOTHING,
    leaves: bool = False,
) -> Paired:
    """A device comes with a fresh code; what it is told is what is due. `leaves`: it has a token, and no socket."""
    host = host or audit.host()
    hint = audit.pick((None, "wss", "ws", "unknown"))
    code = register(audit, wish, **({} if hint is None else {"transport_hint": hint}))
    name, device_id = name or f"device {audit.word()}", device_id or audit.word()
    payload: dict[str, object] = {"pairing_code": audit.pick((code, f" {code.lower()} ")), "device_id": device_id}
    payload |= {"device_name": name, "client_surface": surface, "device_form_factor": form}
    if asks.ttl is not None:
        payload["ttl_seconds"] = asks.ttl
    if asks.grants is not None:
        payload["grants"] = in_json(asks.grants)
    seat = sign_in(audit, host, payload)
    told = seat.take()
    audit.same((told["channel"], told["type"], told["id"]), ("system", "auth.ok", "auth-1"), "a code that is good")
    members, wall = told["payload"], audit.wall
    token = members.pop("session_token")
    audit.world.secrets[token] = f"the token {token[:8]}"
    expires_at, due = members["expires_at"], paired(wish.or_else(asks), audit.policy, wall)
    created = wall
    if isinstance(expires_at, int | float):  # the very moment is the relay's
        audit.near(expires_at, due.expires_at, "the end of a session")
        created = wall + expires_at - due.expires_at
        due = paired(wish.or_else(asks), audit.policy, created)
    grants = members.pop("grants")
    audit.same({*grants}, {*due.grants}, "the channels that are granted")
    for channel, end in grants.items():
        if end is None or due.grants[channel] == NEVER:
            audit.same(end, in_words(due.grants[channel]), f"the end of {channel}")
        else:
            audit.near(end, due.grants[channel], f"the end of {channel}")
    members.pop("profiles")
    is_ = {
        "server_version": VERSION,
        "expires_at": expires_at if due.expires_at < NEVER else None,
        "transport_hint": hint or "ws",
        "client_surface": surface,
        "device_form_factor": form,
    }
    audit.same(members, is_, "what a device is told")
    terms = Terms(
        NEVER if expires_at is None else expires_at,
        {channel: NEVER if end is None else end for channel, end in grants.items()},
    )
    shown = {"token_prefix": token[:8], "device_name": name, "device_id": device_id, "transport_hint": hint or "ws"}
    shown |= {"client_surface": surface, "device_form_factor": form, "device_model": "unknown"}
    shown |= {"device_platform": "unknown", "is_current": False}
    if leaves:
        seat.hang_up()
    return Paired(token, host, [seat], terms, shown)


def listed(audit: Audit) -> dict[str, dict[str, Any]]:
    """The sessions that the relay lists, by the prefixes of their tokens; each is there once."""
    records = audit.right(audit.ask_here("GET", "/sessions"), 200)["sessions"]
    found = {record["token_prefix"]: record for record in records}
    audit.same(len(records), len(found), "how many sessions are listed")
    return found


def in_words(end: float) -> float | None:
    """An end as the relay tells it."""
    return None if end == NEVER else end
