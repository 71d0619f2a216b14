"""What a desktop makes of an invite: the code, and the routes to the relay in tiers (wire core 3.2, 3.3, 10.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from attrs import field, frozen

from svc_proto.basics.errors import Refused, RemoteProtocolError
from svc_proto.basics.visible import is_visible
from svc_proto.client.inputs import clean_remote, strip_controls
from svc_proto.client.problem import MISUSED, Problem
from svc_proto.client.routes import bracketed
from svc_proto.device.route_choice import Candidate
from svc_proto.machines.pairing import normalise
from svc_proto.machines.qr import parse_invite
from svc_proto.settings import http_address
from svc_proto.wire.urls import parse_url

__all__ = ["Invitation", "read_candidates", "read_invitation"]

MAX_CANDIDATES = 16  # of one invite; further ones are ignored
HOW = "show a new one with svc pair on the relay's host"


@frozen
class Invitation:
    """A code and where to use it, best first; `stored` are the candidates as the session file keeps them."""

    code: str = field(repr=False)
    candidates: tuple[Candidate, ...]
    stored: tuple[Mapping[str, object], ...] = ()
    apis: Mapping[str, str] = {}  # where the API server is, by the relay's address of a route
    api_key: str = field(default="", repr=False)


def read_invitation(text: str, name: str = "--pair-qr") -> Invitation:
    """Read any form of an invite. Raises `Problem`, code 2."""
    try:
        payload = parse_invite(strip_controls(text))
    except Refused as error:
        raise Problem(f"{name} is no invite: {error.message}; {HOW}", code=MISUSED) from None
    relay = payload.get("relay")
    members = cast("dict[str, object]", relay) if isinstance(relay, dict) else {}
    url, code = members.get("url"), members.get("code")
    if not isinstance(url, str) or not isinstance(code, str):
        raise Problem(f"{name} leads to no relay: it was down when the invite was made; {HOW}", code=MISUSED)
    try:
        word = normalise(code)
    except Refused:
        raise Problem(f"{name} holds no usable pairing code; {HOW}", code=MISUSED) from None
    if not url.lower().startswith(("ws://", "wss://")):
        raise Problem(f"the relay's address in {name} must begin with ws:// or wss://; {HOW}", code=MISUSED)
    endpoints = payload.get("endpoints")
    key, direct = payload.get("key"), _api_url(payload)
    known = key if isinstance(key, str) and is_visible(key) else ""
    found = read_candidates(endpoints if isinstance(endpoints, list) else (), "transport_hint")
    if not found:
        host = payload.get("host")
        role = _role_of(host if isinstance(host, str) else "")
        only = Candidate(role, 0, clean_remote(url, f"the relay's address in {name}"))
        return Invitation(word, (only,), apis={only.url: direct} if direct else {}, api_key=known)
    apis = {each.url: _api_url(_object(kept.get("api"))) or direct for each, kept in found}
    return Invitation(
        word,
        tuple(each for each, _ in found),
        tuple(kept for _, kept in found),
        {relay_url: api for relay_url, api in apis.items() if api},
        known,
    )


def read_candidates(endpoints: Sequence[object], hint_name: str) -> list[tuple[Candidate, Mapping[str, object]]]:
    """The usable candidates among these, and how the session file keeps each; the inner names there are camelCase."""
    found = (_candidate(each, hint_name) for each in endpoints[:MAX_CANDIDATES])
    return [each for each in found if each is not None]


def _candidate(value: object, hint_name: str) -> tuple[Candidate, Mapping[str, object]] | None:
    members = _object(value)
    role, priority = members.get("role"), members.get("priority", 0)
    relay, api = _object(members.get("relay")), _object(members.get("api"))
    url, hint = relay.get("url"), relay.get(hint_name)
    if not isinstance(role, str) or not role or isinstance(priority, bool) or not isinstance(priority, int):
        return None
    try:
        if not isinstance(url, str) or parse_url(url).scheme not in ("ws", "wss"):
            return None
    except RemoteProtocolError:
        return None
    kept: dict[str, object] = {"role": role, "priority": priority}
    if api:
        kept["api"] = {name: api[name] for name in ("host", "port", "tls") if name in api}
    kept["relay"] = {"url": url, "transportHint": hint} if isinstance(hint, str) else {"url": url}
    return Candidate(role, priority, clean_remote(url)), kept


def _api_url(members: Mapping[str, object]) -> str:
    """Where an API server is that these describe; empty if they do not, or not so that it can be used."""
    host, port, tls = members.get("host"), members.get("port"), members.get("tls") is True
    if not isinstance(host, str) or isinstance(port, bool) or not isinstance(port, int):
        return ""
    url = f"{'https' if tls else 'http'}://{bracketed(host)}:{port}"
    return "" if http_address(url) is None else url


def _role_of(host: str) -> str:
    """The role of the one candidate of an invite without any (wire core 3.2)."""
    return "tailscale" if host.endswith(".ts.net") or host.startswith("100.") else "lan"


def _object(value: object) -> Mapping[str, object]:
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}
