"""Output of the operator's commands, line by line (wire core 10.1); some lines contain secrets."""

from svc_proto.basics.sanitize import sanitize_line
from svc_proto.cli.durations import NEVER, duration_label
from svc_proto.cli.key_rotation import KeyRotationResult
from svc_proto.cli.operator_pairing import NewInvite
from svc_proto.machines.grants import CHANNELS, build_grants, build_rights
from svc_proto.machines.paired_session_registry import session_expiry
from svc_proto.machines.pairing_codes import CODE_LIFETIME, PairingMeta
from svc_proto.schema.json_object import JsonObject
from svc_proto.schema.oauth import SCOPE_ACT

__all__ = [
    "agent_lines",
    "granted_durations",
    "invite_json",
    "invite_lines",
    "mask",
    "meta_lines",
    "rotated_lines",
    "public_route_lines",
    "security_lines",
]

FULLY_MASKED = 8  # characters of a key up to which all of it is masked (wire core 10.1)
OWN_KEY = "this pairing's own: it ends with the session, and with the code if no device pairs"
MAIN_KEY = "the main key: the QR holds it, and it outlives the session; svc key rotate makes a new one"
MINUTES = f"{CODE_LIFETIME / 60:.0f} minutes"


HIDDEN = "not shown"
NOT_A_TERMINAL_TEXT = "not shown, as this is no terminal: --show shows it, with code and key; --json is for programs"


def agent_lines(asked: JsonObject) -> list[str]:
    """Return the lines that ask the operator about an agent's OAuth request.

    Its untrusted texts are made safe to display.
    """
    there = " (a program on the computer that asks)" if asked.get("answer_stays_there") is True else ""
    scope = asked.text("scope")
    return [
        "An agent asks for your phone.",
        f"  Calls itself  {sanitize_line(asked.text('client_name'))}   (not verified)",
        f"  Asked from    {sanitize_line(asked.text('address'))}",
        f"  Answer goes   to {sanitize_line(asked.text('answer_goes_to'))}{there}",
        f"  May           {'look and act' if scope == SCOPE_ACT else 'look'} ({sanitize_line(scope)})",
        "Allow it only if you have just connected it yourself.",
    ]


def mask(key: str) -> str:
    """Return a key masked: its first 4 and last 3 characters, and its length; of up to 8 characters only asterisks."""
    if len(key) <= FULLY_MASKED:
        return "*" * len(key)
    return f"{key[:4]}…{key[-3:]} ({len(key)} characters)"


def invite_lines(invite: NewInvite, *, hidden: bool = False) -> list[str]:
    """Return the lines that describe an invite to the operator, from the API server's address to the invite URL.

    With `hidden`, the full key, the code and the URL are left out.
    """
    lines = ["API server", f"  URL       {invite.api.url}"]
    if invite.key:
        lines += [f"  Key       {mask(invite.key)}", *([] if hidden else [f"  To type   {invite.key}"])]
        lines += ["  Access    with the key only"]
        lines += [f"            {OWN_KEY if invite.own_key else MAIN_KEY}"]
    elif not invite.meta.grants_chat:
        lines += ["  Key       withheld, as chat is"]
    else:
        lines += ["  Key       none", "  Access    open: no API_SERVER_KEY is set"]
    if invite.code is not None:
        lines += ["", "Relay", f"  URL       {invite.relay_url}", f"  Code      {HIDDEN if hidden else invite.code}"]
        lines += [f"            works once, for {MINUTES}", *meta_lines(invite.meta, invite.max_ttl)]
        lines += ["", "Routes, best first"]
        lines += [f"  {route.role:9} {route.api.url}  {route.relay_url}" for route in invite.routes]
    if invite.left_out:
        lines += ["", "Not in the invite", *(f"  {each.what}: {each.why}" for each in invite.left_out)]
    for note in invite.notes:
        lines += ["", f"Note: {note}"]
    return [*lines, "", "Invite URL (holds credentials)", f"  {NOT_A_TERMINAL_TEXT if hidden else invite.pairing_url}"]


def meta_lines(meta: PairingMeta, max_ttl: float | None) -> list[str]:
    """Return lines on the session, grants and rights of a code; channels of one duration share a line."""
    given = granted_durations(meta, max_ttl)
    session = duration_label(session_expiry(0.0, meta.ttl_seconds, max_ttl) or NEVER)
    asks = ", or what the phone asks for"
    withheld = [channel for channel in CHANNELS if channel not in given]
    by_span: dict[str, list[str]] = {}
    for channel, span in given.items():
        by_span.setdefault(duration_label(span), []).append(channel)
    rows = [f"{span}: {', '.join(channels)}" for span, channels in by_span.items()]
    if meta.grants is None:
        rows.append("unless the phone asks for others")
    return [
        f"  Session   {session}{asks if meta.ttl_seconds is None else ''}",
        *(f"  {'' if place else 'Grants':9} {row}" for place, row in enumerate(rows or ["none"])),
        *([f"  Withheld  {', '.join(withheld)}"] if withheld else []),
        f"  Rights    {', '.join(build_rights(meta.grants)) or 'none'}",
    ]


def granted_durations(meta: PairingMeta, max_ttl: float | None) -> dict[str, int]:
    """Return the channels that a code gives a phone that requests none, each with its time in s, 0 for never."""
    ends = build_grants(0.0, session_expiry(0.0, meta.ttl_seconds, max_ttl), meta.grants)
    return {channel: int(end or NEVER) for channel, end in ends.items()}


def invite_json(invite: NewInvite) -> dict[str, object]:
    """Return the invite as one object, for programs."""
    relay: dict[str, object] | None = None
    if invite.code is not None:
        relay = {
            "url": invite.relay_url,
            "code": invite.code,
            "expires_at": invite.expires_at,
            "ttl_seconds": invite.meta.ttl_seconds,
            "grants": granted_durations(invite.meta, invite.max_ttl),
        }
    return {
        "api": {"url": invite.api.url, "key": invite.key, "own_key": invite.own_key},
        "relay": relay,
        "routes": [
            {"role": route.role, "api_url": route.api.url, "relay_url": route.relay_url} for route in invite.routes
        ],
        "left_out": [{"what": each.what, "why": each.why} for each in invite.left_out],
        "qr_payload": invite.qr_payload,
        "pairing_url": invite.pairing_url,
        "notes": [*invite.notes, *invite.warnings],
    }


def rotated_lines(rotated: KeyRotationResult) -> list[str]:
    """Return the changes of a key rotation, and the next steps."""
    lines = [
        f"New API key in {' and '.join(filter(None, (rotated.path, rotated.also)))}: {mask(rotated.key)}",
        *_running_programs(rotated),
        "Who is to go on chatting needs the new one: svc pair",
    ]
    if rotated.in_environment:
        lines.append(
            "API_SERVER_KEY is set in the environment, too, and servers that see it there take that: change it."
        )
    return lines


def _running_programs(rotated: KeyRotationResult) -> list[str]:
    if not rotated.runs:
        return ["No API runs on this service home: its next start takes the new key."]
    if not rotated.kept:
        return ["The API that runs has taken it: the old key is refused, and what it had let in has ended."]
    return [
        f"The API that runs keeps the old key: {rotated.kept}.",
        "Start the servers anew now (python -m servers, or servers.api, servers.relay and servers.dashboard).",
    ]


def public_route_lines(state: JsonObject) -> list[str]:
    """Return lines on which programs of the relay's host it trusts.

    After an invite with a public route, a line names the command that ends the stricter rule.
    """
    shown = {
        "user": "Programs of this host: those of the relay's user and of root",
        "secret": "Programs of this host: those that send the local secret, as svc, the agent and the dashboard do",
    }.get(state.text("local_trust"), "Programs of this host: all")
    if state.get("public_route") is not True:
        return [shown]
    return [shown, "An invite had a public route. If there is no proxy any more: svc relay public-route off"]


def security_lines(state: object) -> list[str]:
    """Return lines on whether API keys over plain HTTP are accepted and, if so, how to end that (wire core 10.2)."""
    if state is not True:
        return ["API keys over plain HTTP from other hosts: refused"]
    return [
        "API keys over plain HTTP from other hosts: accepted until the relay restarts",
        "Turn it off with: svc relay insecure-api-key off",
    ]
