"""Pairing codes: one-time codes that a phone exchanges for a session (spec "Pairing code", wire core 2).

Codes are kept in memory. Registering a live code again replaces it by a new one with a fresh timer.
"""

import re
from collections.abc import Mapping
from enum import Enum
from functools import partial

from attrs import define, field

from svc_proto.basics.entropy import CODE_LENGTH, secrets_equal
from svc_proto.basics.errors import Refused
from svc_proto.basics.expiring_map import ExpiringMap
from svc_proto.basics.fast_frozen import fast_frozen
from svc_proto.basics.moment import Moment
from svc_proto.basics.validate import array, boolean, choice, invalid, object_, optional, seconds, text
from svc_proto.machines.grants import AUDIENCES, RIGHTS, Preset, parse_grants, parse_requested_grants
from svc_proto.machines.transitions import Table, step
from svc_proto.schema.oauth import SCOPE_READ

__all__ = [
    "CODE_LIFETIME",
    "CODE_TABLE",
    "MAX_CODES",
    "TRANSPORT_HINTS",
    "CodeState",
    "CodeTrigger",
    "PairingCodes",
    "PairingMeta",
    "normalize_code",
    "merge_terms",
    "parse_meta",
    "parse_registration",
    "parse_requested_terms",
]

CODE_LIFETIME = 600.0  # s, spec "Limits": valid 10 minutes after registration
MAX_CODES = 1_000  # live codes; a further one drops the oldest
MAX_ENDPOINTS = 64  # candidates of one code
TRANSPORT_HINTS = ("wss", "ws", "unknown")  # wire core 2.2
NOT_PRESET = 0.0
_CODE = re.compile(f"[A-Z0-9]{{{CODE_LENGTH}}}")


class CodeState(Enum):
    """State of a pairing code."""

    NONE = "(none)"
    REGISTERED = "Registered"
    CONSUMED = "Consumed"
    EXPIRED = "Expired"


class CodeTrigger(Enum):
    """Event that can change the state of a pairing code."""

    REGISTER = "register"  # POST /pairing/register, the pair command, POST /pairing/mint
    CONSUME = "consume"  # the first system/auth envelope carries it
    TEN_MINUTES = "ten minutes"  # since registration


CODE_TABLE: Table[CodeState, CodeTrigger] = {
    (CodeState.NONE, CodeTrigger.REGISTER): CodeState.REGISTERED,
    (CodeState.REGISTERED, CodeTrigger.CONSUME): CodeState.CONSUMED,
    (CodeState.REGISTERED, CodeTrigger.TEN_MINUTES): CodeState.EXPIRED,
}


@fast_frozen(kw_only=True)
class PairingMeta:
    """Terms that the operator attached to a code; None where nothing was preset. Durations in seconds, 0 for never.

    In `grants` a channel with None instead of a duration is withheld. `carries_key`: the QR holds the API's main key,
    which outlives the session. `own_key`: the QR is to hold a key of the pairing's own, if possible. `key_hash`: the
    SHA-256 of that key, if the QR holds it; no request sets this. `keep_earlier`: earlier sessions of the same device
    stay.
    """

    ttl_seconds: float | None = None
    grants: Preset | None = None
    transport_hint: str | None = None
    endpoints: list[object] | None = None
    carries_key: bool = False
    own_key: bool = False
    keep_earlier: bool = False
    key_hash: str = ""
    audience: str = ""  # of `AUDIENCES`: the token opens nothing else

    @property
    def grants_chat(self) -> bool:
        """Report whether chat is not withheld, a condition for an API key in the QR."""
        return (self.grants or {}).get("chat", NOT_PRESET) is not None


@define
class _Code:
    meta: PairingMeta
    state: CodeState = field(default=CodeState.NONE, init=False)

    def step(self, trigger: CodeTrigger) -> None:
        self.state = step(CODE_TABLE, self.state, trigger)


class PairingCodes:
    """Registered pairing codes with their terms, until they are consumed, purged or displaced at the cap."""

    def __init__(self, cap: int = MAX_CODES) -> None:
        self._codes: ExpiringMap[str, _Code] = ExpiringMap(cap)
        self.refused = 0  # number of wrong codes so far

    def __len__(self) -> int:
        return len(self._codes)

    def register(self, code: str, now: Moment, meta: PairingMeta) -> None:
        """Register a code for ten minutes. Raise `Refused` 400 for an invalid code."""
        entry = _Code(meta)
        entry.step(CodeTrigger.REGISTER)
        self._codes.put(normalize_code(code), entry, now.mono + CODE_LIFETIME)

    def consume(self, code: str, now: Moment) -> PairingMeta | None:
        """Consume a code and return its terms; None if unknown, used or expired."""
        try:
            word = normalize_code(code)
        except Refused:
            return None
        entry = self._codes.peek(word)
        if entry is None:
            return None
        live = self._codes.pop(word, now.mono) is not None
        entry.step(CodeTrigger.CONSUME if live else CodeTrigger.TEN_MINUTES)
        return entry.meta if live else None

    def issues_key(self, key_hash: str, now: Moment) -> bool:
        """Report whether the key of this hash belongs to a live code."""
        return self.terms_of_key(key_hash, now) is not None

    def terms_of_key(self, key_hash: str, now: Moment) -> PairingMeta | None:
        """Return the terms of the live code that the key of this hash belongs to, or None."""
        for word, entry in self._codes.items():
            if secrets_equal(entry.meta.key_hash, key_hash) and self._codes.get(word, now.mono) is not None:
                return entry.meta
        return None

    def purge(self, now: Moment) -> list[str]:
        """Remove the expired codes and return them, oldest first."""
        due = self._codes.purge(now.mono)
        for _, entry in due:
            entry.step(CodeTrigger.TEN_MINUTES)
        return [word for word, _ in due]

    def next_expiry(self) -> float | None:
        """Return the time (monotonic s) at which the next code expires; None without codes."""
        return self._codes.next_expiry()


def normalize_code(code: str) -> str:
    """Return the canonical spelling of a code. Raise `Refused` 400 unless it is six of A-Z and 0-9."""
    trimmed = code.strip()
    # ASCII first: upper-casing may change the length of other letters, and "ss" must not come from a sharp s.
    if not trimmed.isascii() or not _CODE.fullmatch(word := trimmed.upper()):
        raise invalid("code", "six characters of A-Z and 0-9")
    return word


def parse_registration(body: object, *, with_endpoints: bool) -> tuple[str, PairingMeta]:
    """Parse the body of `/pairing/register` (with endpoints) or `/pairing/approve` (without): the code and its terms.

    Checked in the order of wire core 2.2: object, code present, ttl, grants, hint, endpoints, code format.
    """
    members = object_(body, "body")
    code = text(members.get("code"), "code")
    if not code.strip():
        raise invalid("code", "present")
    meta = parse_meta(members, with_endpoints=with_endpoints)
    return normalize_code(code), meta


def parse_meta(members: Mapping[str, object], *, with_endpoints: bool) -> PairingMeta:
    """Parse the terms of a code; null counts as absent. Raise `Refused` 400 that names the field."""
    return PairingMeta(
        ttl_seconds=optional(members, "ttl_seconds", seconds),
        grants=optional(members, "grants", partial(parse_grants, more=(SCOPE_READ, *RIGHTS))),
        transport_hint=optional(members, "transport_hint", partial(choice, allowed=TRANSPORT_HINTS)),
        endpoints=optional(members, "endpoints", _endpoints) if with_endpoints else None,
        carries_key=optional(members, "carries_key", boolean) or False,
        own_key=optional(members, "own_key", boolean) or False,
        keep_earlier=optional(members, "keep_earlier", boolean) or False,
        audience=optional(members, "audience", partial(choice, allowed=("", *AUDIENCES))) or "",
    )


def parse_requested_terms(payload: Mapping[str, object]) -> PairingMeta:
    """Parse the lifetime and grants that a phone requests in `system/auth`; invalid ones count as absent."""
    try:
        wished = optional(payload, "ttl_seconds", seconds)
    except Refused:
        wished = None
    return PairingMeta(ttl_seconds=wished, grants=parse_requested_grants(payload.get("grants")))


def merge_terms(operator: PairingMeta, phone: PairingMeta) -> PairingMeta:
    """Merge the operator's terms with those that a phone requests (spec: operator policy overrides phone-sent values).

    Lifetime, grants, transport hint and endpoints are the operator's, else the phone's. The other terms are the
    operator's; `own_key` is left out.
    """
    return PairingMeta(
        ttl_seconds=phone.ttl_seconds if operator.ttl_seconds is None else operator.ttl_seconds,
        grants=phone.grants if operator.grants is None else operator.grants,
        transport_hint=phone.transport_hint if operator.transport_hint is None else operator.transport_hint,
        endpoints=phone.endpoints if operator.endpoints is None else operator.endpoints,
        carries_key=operator.carries_key,
        keep_earlier=operator.keep_earlier,
        key_hash=operator.key_hash,
        audience=operator.audience,
    )


def _endpoints(value: object, field: str) -> list[object]:
    endpoints = array(value, field)
    if len(endpoints) > MAX_ENDPOINTS:
        raise invalid(field, f"an array of at most {MAX_ENDPOINTS} candidates")
    return endpoints
