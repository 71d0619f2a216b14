"""Store of a desktop's sessions, one for each relay address: `remote-sessions.json` (wire core 10.5).

Unusable members of the file are ignored, unknown ones are kept. This module computes the new text of the file from the
old one and a change.
"""

import json
from collections.abc import Mapping
from typing import TypeAlias

from attrs import field, frozen

from svc_proto.basics.certificate_pins import is_pin
from svc_proto.basics.sanitize import is_printable_ascii
from svc_proto.schema.json_object import JsonObject
from svc_proto.settings import http_address

__all__ = [
    "FILE_NAME",
    "SessionStoreChange",
    "RemoveSession",
    "UpdateSession",
    "StoredSession",
    "apply_change",
    "is_damaged",
    "latest_api",
    "parse_sessions",
    "record_members",
    "status_json",
]

FILE_NAME = "remote-sessions.json"
VERSION = 1
TIMES = (1 - 1e15, 1e15 - 1)  # s, range of a time
REDACTED = "(redacted)"
CONSENTS = ("prefer_secure_routes", "tools_consented", "computer_use_consented")  # a pairing does not change them
ROUTES = ("route_candidates", "route_cert_pins")  # left out where there are none


@frozen(kw_only=True)
class StoredSession:
    """Record of the session at a relay; times in epoch seconds.

    `grants` is None if unknown; a grant without an end is None.
    """

    url: str
    token: str = field(repr=False)
    server_version: str | None = None
    paired_at: int = 0
    cert_pin: str | None = None
    grants: Mapping[str, float | None] | None = None
    expires_at: float | None = None
    role: str | None = None
    candidates: tuple[Mapping[str, object], ...] = ()
    route_pins: Mapping[str, str] = {}
    prefer_secure_routes: bool = False
    tools_consented: bool = False
    computer_use_consented: bool = False
    api_url: str | None = None  # the API server of the invite, and the key that it came with
    api_key: str = field(default="", repr=False)


@frozen
class UpdateSession:
    """Change that writes these members of a relay's record; the others keep their values."""

    url: str
    members: Mapping[str, object] = field(repr=False)


@frozen
class RemoveSession:
    """Change that drops the record of a relay, if it still has this token."""

    url: str
    token: str = field(repr=False)


SessionStoreChange: TypeAlias = UpdateSession | RemoveSession


def parse_sessions(text: str) -> dict[str, StoredSession]:
    """Return the usable records by relay address, in the order of the file; none for an unreadable file."""
    found = JsonObject.parse_or_empty(text).get_object("sessions")
    records = ((url, _record(url, found.get_object(url))) for url in found)
    return {url: record for url, record in records if record is not None}


def latest_api(sessions: Mapping[str, StoredSession]) -> StoredSession | None:
    """Return the session that was paired last, of those with an API server; None if there is none."""
    known = [session for session in sessions.values() if session.api_url is not None]
    return max(known, key=lambda session: session.paired_at, default=None)


def is_damaged(text: str) -> bool:
    """Report whether the text is neither blank nor a JSON object, so that `apply_change` would discard it."""
    return bool(text.strip()) and JsonObject.parse(text) is None


def apply_change(text: str, change: SessionStoreChange) -> str:
    """Return the text of the session file after a change."""
    document = JsonObject.parse_or_empty(text)
    sessions = document.get_object("sessions")
    record = sessions.get_object(change.url)
    if isinstance(change, UpdateSession):
        sessions[change.url] = {**(record or DEFAULTS), **change.members}
    elif record.get("token") == change.token:
        del sessions[change.url]
    document = JsonObject({"version": VERSION, **document, "sessions": sessions})
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def record_members(session: StoredSession) -> dict[str, object]:
    """Return the members that a pairing writes, null ones too, so that they replace earlier values (wire core 10.5)."""
    members = {name: value for name, value in _members(session).items() if name not in CONSENTS}
    return {**members, "api_url": session.api_url, "api_key": session.api_key or None}


def status_json(sessions: Mapping[str, StoredSession], *, reveal: bool) -> dict[str, object]:
    """Return the output of `status --json`: records by address, camelCase (wire core 10.6)."""
    return {url: _status(session, reveal) for url, session in sessions.items()}


def _members(session: StoredSession) -> dict[str, object]:
    """Return the members of a record, without those of the API server."""
    return {
        "token": session.token,
        "server_version": session.server_version,
        "paired_at": session.paired_at,
        "cert_pin_sha256": session.cert_pin,
        "grants": None if session.grants is None else dict(session.grants),
        "ttl_expires_at": session.expires_at,
        "endpoint_role": session.role,
        "route_candidates": [dict(each) for each in session.candidates],
        "prefer_secure_routes": session.prefer_secure_routes,
        "route_cert_pins": dict(session.route_pins),
        "tools_consented": session.tools_consented,
        "computer_use_consented": session.computer_use_consented,
    }


def _status(session: StoredSession, reveal: bool) -> dict[str, object]:
    members = _members(session) | ({} if reveal else {"token": REDACTED})
    return {_camel(name): value for name, value in members.items() if value or name not in ROUTES}


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


DEFAULTS = {name: value for name, value in _members(StoredSession(url="", token="")).items() if name not in ROUTES}


def _record(url: str, members: JsonObject) -> StoredSession | None:
    token, api_url, api_key = (members.text(name) for name in ("token", "api_url", "api_key"))
    if not token or not is_printable_ascii(token):
        return None
    grants, pins = members.object_or_none("grants"), members.get_object("route_cert_pins")
    return StoredSession(
        url=url,
        token=token,
        server_version=members.text("server_version") or None,
        paired_at=int(members.number("paired_at", *TIMES) or 0),
        cert_pin=pin if is_pin(pin := members.text("cert_pin_sha256")) else None,
        grants=None if grants is None else _grants(grants),
        expires_at=members.number("ttl_expires_at", *TIMES),
        role=members.text("endpoint_role") or None,
        candidates=tuple(members.objects("route_candidates")),
        route_pins={key: pin for key in pins if is_pin(pin := pins.text(key))},
        prefer_secure_routes=members.get("prefer_secure_routes") is True,
        tools_consented=members.get("tools_consented") is True,
        computer_use_consented=members.get("computer_use_consented") is True,
        api_url=api_url if http_address(api_url) is not None else None,
        api_key=api_key if is_printable_ascii(api_key) else "",
    )


def _grants(members: JsonObject) -> dict[str, float | None]:
    numbers = {channel: members.number(channel, *TIMES) for channel in members}
    return {channel: expiry for channel, expiry in numbers.items() if expiry is not None or members[channel] is None}
