"""A paired session: the durable permission of one device, its lifecycle and its serialized forms.

Times are wall time in epoch seconds, since they outlive the process. Of the token only the SHA-256 is stored, and the
first eight characters, by which users name the session (spec "Paired-device record").
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from functools import lru_cache, partial
from math import isfinite
from sys import intern
from typing import TYPE_CHECKING

from attrs import define, field

from svc_proto.basics.brand import BRANDS, HERMES, Brand
from svc_proto.basics.entropy import sha256_hex
from svc_proto.basics.errors import Refused
from svc_proto.basics.fast_frozen import fast_frozen
from svc_proto.basics.validate import array, boolean, invalid, number, object_, optional, seconds, text
from svc_proto.machines.grants import (
    AUDIENCES,
    CHANNELS,
    RIGHTS,
    VOICE_CHANNELS,
    Preset,
    build_rights,
    clamp_all,
    parse_grants,
)
from svc_proto.machines.oauth_tokens import OAuthTokens
from svc_proto.machines.transitions import Table, step
from svc_proto.schema.json_object import JsonObject

if TYPE_CHECKING:
    from svc_proto.schema.relay_types import DeviceSessionJson, Right

__all__ = [
    "NO_DEVICE_ID",
    "PREFIX_LENGTH",
    "SESSION_TABLE",
    "DeviceInfo",
    "PairingTerms",
    "PairedSession",
    "SessionState",
    "SessionTrigger",
    "parse_device",
    "parse_new_name",
    "parse_patch",
    "recognize_client",
    "session_record",
]

PREFIX_LENGTH = 8  # characters, spec "Limits": token prefix
MAX_DEVICE_TEXT = 200  # characters of a device's name, id, …; the rest is cut
NAMES_MEMBER = "names"  # of `system/auth`: the brand that a client of this project requests
# Capabilities that today's app lists in `supports` of `system/auth` (wire core 1.3); SPEC.md has none of them.
APP_CAPABILITIES = {"typed_stream_events", "event_schema_version"}
NO_DEVICE_ID = ("", "unknown", "none", "null")  # wire core 1.9: ids without meaning
# Text fields of the stored form, with their values in older records.
TEXT_DEFAULTS = {
    "device_name": "Unknown device",
    "device_id": "unknown",
    "device_model": "unknown",
    "device_platform": "unknown",
    "client_surface": "unknown",
    "device_form_factor": "unknown",
    "transport_hint": "unknown",
}
NEVER = "never"  # wire core 0.1: in a stored session; a lost column must not mean "forever"

MAX_SHARED = 64  # instances of `PairingTerms` that sessions share


class SessionState(Enum):
    """State of a paired session."""

    ACTIVE = "Active"
    REVOKED = "Revoked"
    EXPIRED = "Expired"


class SessionTrigger(Enum):
    """Event that can change the state of a paired session."""

    REVOKE = "revoke"  # DELETE /sessions/{token_prefix}, from a phone or through the dashboard proxy
    PATCH = "patch"  # PATCH /sessions/{token_prefix}
    LIFETIME_ELAPSED = "lifetime elapsed"


SESSION_TABLE: Table[SessionState, SessionTrigger] = {
    (SessionState.ACTIVE, SessionTrigger.REVOKE): SessionState.REVOKED,
    (SessionState.ACTIVE, SessionTrigger.PATCH): SessionState.ACTIVE,
    (SessionState.ACTIVE, SessionTrigger.LIFETIME_ELAPSED): SessionState.EXPIRED,
}
_ACTIVE = SessionState.ACTIVE  # looking up a member of an Enum is slow in Python 3.11, and happens for each message


@fast_frozen(kw_only=True)
class DeviceInfo:
    """Description that a device gives of itself (wire core 1.3)."""

    name: str = "Unknown device"
    id: str = "unknown"
    model: str = "unknown"
    platform: str = "unknown"
    surface: str = "unknown"  # android, desktop, quest
    form_factor: str = "unknown"  # phone, desktop, xr
    names: str = ""  # name of the brand of the client; empty if it was not recognized


# Members of the payload of `system/auth`; the first non-empty one counts.
DEVICE_MEMBERS = {
    "name": ("device_name", "device_hostname"),
    "id": ("device_id",),
    "model": ("device_model",),
    "platform": ("device_platform",),
    "surface": ("client_surface",),
    "form_factor": ("device_form_factor",),
}


@fast_frozen
class PairingTerms:
    """Terms of the pairing: lifetime, and duration of each granted channel, in s; 0 for never."""

    ttl: float
    grants: Mapping[str, float]

    @classmethod
    def until(cls, since: float, expires_at: float | None, grants: Mapping[str, float | None]) -> PairingTerms:
        """Return the terms that lead to these expiries, counted from `since`, with durations of at least a second.

        An expiry of None becomes 0, which means never.
        """

        def span(expiry: float | None) -> float:
            # 0 would mean never; and a floating-point error must not reduce the time to renew.
            return 0.0 if expiry is None else max(round(expiry - since, 3), 1.0)

        return cls.of(span(expires_at), tuple((channel, span(expiry)) for channel, expiry in grants.items()))

    @classmethod
    @lru_cache(maxsize=MAX_SHARED)
    def of(cls, ttl: float, grants: tuple[tuple[str, float], ...]) -> PairingTerms:
        """Return terms with these values; calls with equal arguments share one instance, as long as it is cached."""
        return cls(ttl, dict(grants))


@define(kw_only=True)
class PairedSession:
    """Session of a paired device or of an MCP client; `preset` has the explicitly set channels.

    Only `PairedSessionRegistry` changes its state, expiry, grants and tokens.
    """

    token_hash: str
    token_prefix: str
    device_name: str
    device_id: str
    device_model: str
    device_platform: str
    client_surface: str
    device_form_factor: str
    transport_hint: str
    created_at: float
    first_seen: float
    last_seen: float
    expires_at: float | None
    grants: dict[str, float | None]
    given: PairingTerms
    preset: tuple[str, ...] = ()
    knows_key: bool = False  # its QR held the API's main key
    key_hash: str = ""  # SHA-256 of the pairing's own key, if its QR held one instead
    names: str = ""  # name of the brand of the client, as in `DeviceInfo`
    tokens: OAuthTokens | None = None  # of an OAuth client; the session's own token is not accepted then
    rights: tuple[Right, ...] = ()
    audience: str = ""  # of `AUDIENCES`: the token opens nothing else; empty: the token of a device
    state: SessionState = field(default=SessionState.ACTIVE, init=False)
    last_address: str = field(default="", init=False)  # of its last WebSocket since the relay runs

    @property
    def credential_ids(self) -> tuple[str, ...]:
        """Ids of the session's credentials: the hash of its token, and that of its own API key, if it has one."""
        return (self.token_hash, self.key_hash) if self.key_hash else (self.token_hash,)

    @property
    def brand(self) -> Brand | None:
        """The brand of the client; None if it was not recognized."""
        return BRANDS.get(self.names)

    def step(self, trigger: SessionTrigger) -> None:
        """Change the state by `SESSION_TABLE`; for `PairedSessionRegistry` alone."""
        self.state = step(SESSION_TABLE, self.state, trigger)

    def is_active(self, wall: float) -> bool:
        """Report whether the session is neither revoked nor expired at the time `wall`."""
        until = self.expires_at  # `is_live`, inlined here and below for each message
        return (until is None or wall < until) and self.state is _ACTIVE

    def holds(self, channel: str, wall: float) -> bool:
        """Report whether the session is active and holds a live grant for the channel."""
        until, end = self.grants.get(channel, 0.0), self.expires_at
        if (until is None or wall < until) and (end is None or wall < end):
            return self.state is _ACTIVE
        return False

    @property
    def principal_name(self) -> str:
        """Name of the session in records: prefix and device."""
        return f"{self.token_prefix} {self.device_name}"

    @property
    def is_for_device(self) -> bool:
        """Report whether the session's own token is a device's, and not that of an MCP client."""
        return self.tokens is None and not self.audience

    def may(self, right: str, wall: float) -> bool:
        """Report whether the session is active and has the right."""
        return right in self.rights and self.is_active(wall)

    def grants_until(self, channel: str) -> float | None:
        """Return the expiry of a channel's grant; None for never, 0 without a grant."""
        return self.grants.get(channel, 0.0)

    def to_record(self) -> dict[str, object]:
        """Return the stored form: plain JSON types, "never" without an expiry."""
        more: dict[str, object] = {} if self.tokens is None else {"tokens": self.tokens.to_record()}
        if self.names:
            more["names"] = self.names
        return {
            **more,
            "token_hash": self.token_hash,
            "token_prefix": self.token_prefix,
            **{name: getattr(self, name) for name in (*TEXT_DEFAULTS, "created_at", "first_seen", "last_seen")},
            "expires_at": _stored(self.expires_at),
            "grants": {channel: _stored(expiry) for channel, expiry in self.grants.items()},
            "preset": list(self.preset),
            "knows_key": self.knows_key,
            "key_hash": self.key_hash,
            "rights": list(self.rights),
            "audience": self.audience,
            "given": {"ttl_seconds": self.given.ttl, "grants": dict(self.given.grants)},
        }

    @classmethod
    def from_record(cls, record: object) -> PairedSession:
        """Parse a stored session; raise `Refused` 400 for an invalid record, which the caller skips.

        An older record has the `token` itself in place of its hash. Missing `voice:*` grants are taken from `chat`,
        else from the session (wire core 4.1). It has no pairing terms: the grants at the time of storing count. It has
        no `knows_key`: usually the QR held the API's main key. Missing rights follow from the withheld channels, a
        missing audience from the name of an MCP client. In any case, no grant outlives the session.
        """
        members = object_(record, "session")
        token_hash, token_prefix = _identity(members)
        expires_at = _loaded(members, "expires_at")
        stored = object_(members.get("grants"), "grants")
        grants = {
            intern(channel): expiry if type(expiry) is float and isfinite(expiry) else _loaded(stored, channel)
            for channel, expiry in stored.items()
        }
        created_at = number(members.get("created_at"), "created_at")
        last_seen = number(members.get("last_seen", created_at), "last_seen")
        if "given" in members:
            given = _given(members["given"])
        else:
            for channel in VOICE_CHANNELS:
                grants.setdefault(channel, grants.get("chat", expires_at))
            given = PairingTerms.until(last_seen, expires_at, grants)
        withheld: Preset = dict.fromkeys(channel for channel in CHANNELS if channel not in given.grants)
        preset = [text(channel, "preset") for channel in array(members.get("preset", []), "preset")]
        return cls(
            token_hash=token_hash,
            token_prefix=token_prefix,
            **{name: _stored_text(members, name) for name in TEXT_DEFAULTS},
            created_at=created_at,
            first_seen=number(members.get("first_seen", created_at), "first_seen"),
            last_seen=last_seen,
            expires_at=expires_at,
            grants=clamp_all(grants, expires_at),
            given=given,
            preset=tuple(dict.fromkeys(preset)),
            knows_key=boolean(members.get("knows_key", True), "knows_key"),
            key_hash=text(members.get("key_hash", ""), "key_hash"),
            names=intern(text(members.get("names", ""), "names")),
            tokens=optional(members, "tokens", OAuthTokens.read),
            rights=_stored_rights(members["rights"]) if "rights" in members else build_rights(withheld),
            audience=_audience(members),
        )


def session_record(session: PairedSession, is_current: bool, *, online: bool = False) -> DeviceSessionJson:
    """Return a session's entry in `GET /sessions` (wire core 4.2), with null for never.

    `rights`, and `online`, whether it has a socket, are extensions.
    """
    return {
        "token_prefix": session.token_prefix,
        "device_name": session.device_name,
        "device_id": session.device_id,
        "created_at": session.created_at,
        "first_seen": session.first_seen,
        "last_seen": session.last_seen,
        "expires_at": session.expires_at,
        "grants": dict(session.grants),
        "transport_hint": session.transport_hint,
        "client_surface": session.client_surface,
        "device_form_factor": session.device_form_factor,
        "device_model": session.device_model,
        "device_platform": session.device_platform,
        "rights": list(session.rights),
        "is_current": is_current,
        "online": online,
    }


def parse_device(payload: Mapping[str, object]) -> DeviceInfo:
    """Parse the device fields of a `system/auth` payload; missing, empty or other values get the default."""
    members = JsonObject.of(payload)
    # Lone surrogates cannot be written to a store or a terminal.
    found = {
        name: members.first_text(*names)[:MAX_DEVICE_TEXT].encode("utf-8", "replace").decode("utf-8")
        for name, names in DEVICE_MEMBERS.items()
    }
    brand = recognize_client(payload)
    names = "" if brand is None else brand.name
    return DeviceInfo(names=names, **{name: word for name, word in found.items() if word})


def recognize_client(payload: Mapping[str, object]) -> Brand | None:
    """Return the brand of a client by its `system/auth`; None if it cannot be recognized."""
    members = JsonObject.of(payload)
    named = BRANDS.get(members.text(NAMES_MEMBER))
    if named is not None:
        return named
    return HERMES if members.get_object("supports").keys() & APP_CAPABILITIES else None


def parse_patch(body: object) -> tuple[float | None, Preset | None]:
    """Parse the body of `PATCH /sessions/{token_prefix}`: lifetime and grants (wire core 4.4).

    Raise `Refused` 400 for an invalid value, and if neither these nor a new name are present.
    """
    members = object_(body, "body")
    ttl = optional(members, "ttl_seconds", seconds)
    grants = optional(members, "grants", partial(parse_grants, more=RIGHTS))
    if ttl is None and grants is None and parse_new_name(members) is None:
        raise Refused(400, "invalid_field", "ttl_seconds or grants must be present", extra={"field": "ttl_seconds"})
    return ttl, grants


def parse_new_name(body: object) -> str | None:
    """Parse the new name in the body of `PATCH /sessions/{token_prefix}`; None if it is absent. Raise `Refused` 400."""
    name = optional(object_(body, "body"), "device_name", text)
    if name is None:
        return None
    shown = " ".join("".join(sign if sign.isprintable() else " " for sign in name).split())
    if not shown or len(shown) > MAX_DEVICE_TEXT:
        raise invalid("device_name", f"a text of 1 to {MAX_DEVICE_TEXT} characters")
    return shown


def _identity(members: Mapping[str, object]) -> tuple[str, str]:
    if "token_hash" not in members:
        token = text(members.get("token"), "token")
        if len(token) < PREFIX_LENGTH:
            raise invalid("token", f"at least {PREFIX_LENGTH} characters")
        return sha256_hex(token), token[:PREFIX_LENGTH]
    token_hash = text(members["token_hash"], "token_hash")
    token_prefix = text(members.get("token_prefix"), "token_prefix")
    if len(token_hash) != 64 or len(token_prefix) != PREFIX_LENGTH:  # a SHA-256 in hex
        raise invalid("token_hash", "64 characters, with a token_prefix of 8")
    return token_hash, token_prefix


def _stored_text(members: Mapping[str, object], name: str) -> str:
    found = text(members.get(name, TEXT_DEFAULTS[name]), name)
    return found if name in ("device_name", "device_id") else intern(found)  # most sessions share a few values


def _given(value: object) -> PairingTerms:
    members = object_(value, "given")
    grants = object_(members.get("grants"), "given.grants")
    spans = tuple(
        (channel, span if type(span) is float and isfinite(span) else number(span, f"given.grants.{channel}"))
        for channel, span in grants.items()
    )
    return PairingTerms.of(number(members.get("ttl_seconds"), "given.ttl_seconds"), spans)


def _stored_rights(value: object) -> tuple[Right, ...]:
    found = [text(right, "rights") for right in array(value, "rights")]
    rights = tuple(right for right in RIGHTS if right in found)
    return RIGHTS if rights == RIGHTS else rights  # nearly all sessions share one value


def _audience(members: Mapping[str, object]) -> str:
    if "audience" in members:
        return text(members["audience"], "audience")
    is_mcp = members.get("client_surface") == "agent" and str(members.get("device_name")).startswith("MCP: ")
    return AUDIENCES[0] if is_mcp and "tokens" not in members else ""


def _stored(expiry: float | None) -> float | str:
    return NEVER if expiry is None else expiry


def _loaded(members: Mapping[str, object], field_name: str) -> float | None:
    value = members.get(field_name, "")
    return None if value is None or value == NEVER else number(value, field_name)
