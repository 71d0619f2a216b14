"""Invites as a desktop reads them: code, and candidates for the relay (wire core 3.2, 3.3, 10.3)."""

from collections.abc import Mapping, Sequence

from attrs import evolve, field, frozen

from svc_proto.basics.errors import Refused
from svc_proto.basics.sanitize import is_printable_ascii
from svc_proto.cli.errors import USAGE_ERROR, CliError
from svc_proto.cli.input_parsing import parse_relay_url, strip_escapes
from svc_proto.machines.candidate_selection import Candidate
from svc_proto.machines.pairing_codes import normalize_code
from svc_proto.machines.pairing_payload import parse_invite
from svc_proto.schema.json_object import JsonObject
from svc_proto.service_clients.bind_addresses import bracket_ipv6
from svc_proto.service_clients.candidate_prober import parse_candidate
from svc_proto.settings import http_address

__all__ = ["DesktopInvite", "parse_candidates", "parse_desktop_invite"]

MAX_CANDIDATES = 16  # of one invite; further ones are ignored
HOW = "show a new one with svc pair on the relay's host"


@frozen
class DesktopInvite:
    """A code and its candidates, in the invite's order; `stored` are the candidates in the session file's form."""

    code: str = field(repr=False)
    candidates: tuple[Candidate, ...]
    stored: tuple[Mapping[str, object], ...] = ()
    apis: Mapping[str, str] = {}  # API server's address by the relay's address of a route
    api_key: str = field(default="", repr=False)


def parse_desktop_invite(text: str, name: str = "--pair-qr") -> DesktopInvite:
    """Parse the text of an invite, in any of its forms.

    Raises `CliError`, code 2, if it is invalid or has no usable relay and code.
    """
    try:
        payload = parse_invite(strip_escapes(text))
    except Refused as error:
        raise CliError(f"{name} is no invite: {error.message}; {HOW}", code=USAGE_ERROR) from None
    relay, key, direct = payload.get_object("relay"), payload.text("key"), _api_url(payload)
    url, code = relay.string("url"), relay.string("code")
    if url is None or code is None:
        raise CliError(f"{name} leads to no relay: it was down when the invite was made; {HOW}", code=USAGE_ERROR)
    try:
        word = normalize_code(code)
    except Refused:
        raise CliError(f"{name} holds no usable pairing code; {HOW}", code=USAGE_ERROR) from None
    if not url.lower().startswith(("ws://", "wss://")):
        raise CliError(f"the relay's address in {name} must begin with ws:// or wss://; {HOW}", code=USAGE_ERROR)
    known = key if is_printable_ascii(key) else ""
    found = parse_candidates(payload.array("endpoints"), "transport_hint")
    if not found:
        role = _role_of(payload.text("host"))
        only = Candidate(role, 0, parse_relay_url(url, f"the relay's address in {name}"))
        return DesktopInvite(word, (only,), apis={only.url: direct} if direct else {}, api_key=known)
    apis = {each.url: _api_url(JsonObject.of(kept.get("api"))) or direct for each, kept in found}
    return DesktopInvite(
        word,
        tuple(each for each, _ in found),
        tuple(kept for _, kept in found),
        {relay_url: api for relay_url, api in apis.items() if api},
        known,
    )


def parse_candidates(endpoints: Sequence[object], hint_name: str) -> list[tuple[Candidate, Mapping[str, object]]]:
    """Return the usable ones of the first `MAX_CANDIDATES` candidates, each also in the form of the session file."""
    found = (_candidate(each, hint_name) for each in endpoints[:MAX_CANDIDATES])
    return [each for each in found if each is not None]


def _candidate(value: object, hint_name: str) -> tuple[Candidate, Mapping[str, object]] | None:
    found = parse_candidate(value)
    if found is None:
        return None
    members = JsonObject.of(value)
    api, hint = members.get_object("api"), members.get_object("relay").string(hint_name)
    kept: dict[str, object] = {"role": found.role, "priority": found.priority}
    if api:
        kept["api"] = {name: api[name] for name in ("host", "port", "tls") if name in api}
    kept["relay"] = {"url": found.url} if hint is None else {"url": found.url, "transportHint": hint}
    return evolve(found, url=parse_relay_url(found.url)), kept


def _api_url(members: JsonObject) -> str:
    """Return the address of an API server from its members; empty if it is missing or unusable."""
    scheme = "https" if members.get("tls") is True else "http"
    url = f"{scheme}://{bracket_ipv6(members.text('host'))}:{members.integer('port')}"
    return "" if http_address(url) is None else url


def _role_of(host: str) -> str:
    """Return `tailscale` or `lan` by the host: the role for an invite that lists no candidates (wire core 3.2)."""
    return "tailscale" if host.endswith(".ts.net") or host.startswith("100.") else "lan"
