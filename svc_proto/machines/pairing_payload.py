"""The pairing QR payload: built, signed, encoded as an invite URL, and parsed in every form (wire core 3).

The text holds an API key and a pairing code: it is a secret.
"""

import base64
import binascii
import hashlib
import hmac
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import unquote

from svc_proto.basics.brand import BRANDS, Brand
from svc_proto.basics.entropy import secrets_equal
from svc_proto.basics.errors import Refused
from svc_proto.basics.fast_frozen import fast_frozen
from svc_proto.basics.strict_json import JsonError, canonical, loads
from svc_proto.machines.grants import RIGHTS
from svc_proto.machines.pairing_codes import PairingMeta
from svc_proto.schema.json_object import JsonObject, as_text

__all__ = [
    "MAX_INVITE",
    "MIN_SECRET",
    "RelayBlock",
    "build_payload",
    "encode_payload",
    "pairing_url",
    "parse_invite",
    "relay_block",
    "payload_signature",
    "sign_payload",
    "verify_payload",
]

MIN_SECRET = 16  # bytes; a shorter signing key is replaced (wire core 3.4)
MAX_INVITE = 65_536  # characters of a pasted invite
MAX_PIECES = 200  # of a wrapped invite, at whose ends it may be complete
_ASCII = json.JSONEncoder(allow_nan=False, separators=(",", ":"))
_SCHEMES = "|".join(re.escape(brand.scheme) for brand in BRANDS.values())
_INVITE = re.compile(rf"(?:{_SCHEMES})://pair", re.IGNORECASE)
_MEMBER = re.compile(r"(?:\A|&)(?:payload|p)=", re.IGNORECASE)
_WORD = re.compile(r"[^\s\"<>`#]+")
_MARKS = "|\u2502>\\"  # of quoted mails, boxes and continued lines
_INVISIBLE = re.compile(
    r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u200b-\u200f\u2028-\u202e\u2060-\u2064\u2066-\u206f\ufeff]"
)
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]+")


@fast_frozen(kw_only=True)
class RelayBlock:
    """The `relay` member: URL of the relay, code, and preset terms. Durations in seconds, 0 for never."""

    url: str
    code: str
    ttl_seconds: float | None = None
    grants: Mapping[str, float] | None = None
    transport_hint: str | None = None


def relay_block(url: str, code: str, meta: PairingMeta) -> RelayBlock:
    """Return the `relay` member of an invite, for a code that was registered with these terms.

    Withheld channels are left out: clients declare these grants as numbers (wire core 2.6). Rights are left out as
    well: clients do not expect them.
    """
    given = (meta.grants or {}).items()
    spans = {channel: span for channel, span in given if span is not None and channel not in RIGHTS}
    return RelayBlock(
        url=url,
        code=code,
        ttl_seconds=meta.ttl_seconds,
        grants=spans or None,
        transport_hint=meta.transport_hint,
    )


def build_payload(
    *,
    host: str,
    port: int,
    key: str,
    tls: bool,
    relay: RelayBlock | None = None,
    endpoints: Sequence[object] | None = None,
    dashboard_url: str | None = None,
) -> dict[str, object]:
    """Return the payload of an invite, its members in the order of wire core 3.1, absent ones left out.

    Both version members are written, `svc` first, so that either client reads it (wire core 3.6).
    """
    block = None if relay is None else _relay_member(relay)
    version = 1
    if block is not None and len(block) > 2:  # more than url and code
        version = 2
    if endpoints:
        version = 3
    payload: dict[str, object] = {brand.qr_key: version for brand in BRANDS.values()}
    payload.update(host=host, port=port, key=key, tls=tls)
    if block is not None:
        payload["relay"] = block
    if endpoints:
        payload["endpoints"] = list(endpoints)
    if dashboard_url is not None:
        payload["dashboard_url"] = dashboard_url
    return payload


def payload_signature(payload: Mapping[str, object], secret: bytes) -> str:
    """Return the signature over all members but `sig`: HMAC-SHA256 of the canonical text, in base64 (wire core 3.4)."""
    unsigned = {name: value for name, value in payload.items() if name != "sig"}
    digest = hmac.new(secret, canonical(unsigned).encode("ascii"), hashlib.sha256).digest()
    return base64.b64encode(digest).decode("ascii")


def sign_payload(payload: Mapping[str, object], secret: bytes) -> dict[str, object]:
    """Return the payload of an invite with its signature as the last member."""
    return {**_without_sig(payload), "sig": payload_signature(payload, secret)}


def verify_payload(payload: Mapping[str, object], secret: bytes) -> bool:
    """Report whether the payload of an invite has the signature of this secret."""
    sig = as_text(payload.get("sig"))
    return sig is not None and secrets_equal(sig, payload_signature(payload, secret))


def encode_payload(payload: Mapping[str, object]) -> str:
    """Return the text of a QR code: compact ASCII JSON, `sig` last if there is one."""
    ordered = _without_sig(payload)
    if "sig" in payload:
        ordered["sig"] = payload["sig"]
    return _ASCII.encode(ordered)


def pairing_url(brand: Brand, text: str) -> str:
    """Return the invite URL that contains the text of a QR code (wire core 3.5)."""
    value = base64.urlsafe_b64encode(text.encode("utf-8")).rstrip(b"=").decode("ascii")
    return f"{brand.scheme}://pair?payload={value}"


def parse_invite(text: str) -> JsonObject:
    """Parse the payload of a scanned or pasted invite; raise `Refused` 400 `invalid_invite` if there is none.

    Accepted, under either brand, is the invite URL, alone or within other text, or its value alone. In the URL the
    value is the member `payload` or `p`, or the path after `pair/`. The value is JSON text (percent-encoded or not), or
    that in base64 of either alphabet, padded or not.
    """
    if len(text) > MAX_INVITE:
        raise _refusal("the invite is too long")
    problem: Refused | None = None
    for candidate in _possible_texts(text):
        try:
            return JsonObject.of(_parse(candidate))
        except Refused as error:
            problem = problem or error
    assert problem is not None  # the text itself was tried
    raise problem


def _parse(text: str) -> dict[str, object]:
    found = _INVITE.search(text)
    payload = _decode(text if found is None else _value_of_url(text[found.end() :]))
    if not isinstance(payload, dict):
        raise _refusal("the invite holds no JSON object")
    return payload


def _possible_texts(text: str) -> Iterator[str]:
    """Yield the text itself, then its first word, its first two words joined, and so on.

    A wrapped invite has blanks inside: terminals indent, mails quote and end lines with `=` (RFC 2045 section 6.7),
    chats replace line breaks by blanks. After `MAX_PIECES` words, all that remain are joined at once.
    """
    text = _INVISIBLE.sub("", text).strip()
    yield text
    pieces = [piece.strip(_MARKS) for piece in text.replace("=3D", "=").split()]
    joined = ""
    for piece in pieces[:MAX_PIECES]:
        joined = joined.removesuffix("=") + piece if joined and not joined.endswith("payload=") else joined + piece
        yield joined
    yield joined + "".join(pieces[MAX_PIECES:])


def _relay_member(relay: RelayBlock) -> dict[str, object]:
    member: dict[str, object] = {"url": relay.url, "code": relay.code}
    if relay.ttl_seconds is not None:
        member["ttl_seconds"] = _whole(relay.ttl_seconds)
    if relay.grants is not None:
        member["grants"] = {channel: _whole(span) for channel, span in relay.grants.items()}
    if relay.transport_hint in ("wss", "ws"):
        member["transport_hint"] = relay.transport_hint
    return member


def _whole(span: float) -> int:
    """Return a duration rounded up to whole seconds: clients fail on `604800.0`, and 0 would mean never."""
    return math.ceil(span)


def _without_sig(payload: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in payload.items() if name != "sig"}


def _value_of_url(rest: str) -> str:
    """Return the value in the text after `…://pair`; raise `Refused` if there is none."""
    if rest.startswith("/?"):
        rest = rest[1:]
    if rest.startswith("/"):
        return _up_to_the_end(rest[1:])
    if not rest.startswith("?"):
        raise _refusal("the invite has no payload")
    member = _MEMBER.search(rest[1:])
    if member is None:
        raise _refusal("the invite has no payload")
    return _up_to_the_end(rest[1 + member.end() :])


def _up_to_the_end(value: str) -> str:
    """Return a value without what follows it.

    Bare JSON ends with its last brace; another value ends before a blank, a quote, `&`, `?` and the like.
    """
    if value.startswith("{"):
        return value[: value.rfind("}") + 1]
    word = _WORD.match(value)
    return "" if word is None else word[0].partition("&")[0].partition("?")[0]


def _decode(value: str) -> object:
    if "%" in value and not value.startswith("{"):
        value = unquote(value)
    if not value.startswith("{"):
        value = _from_base64(value)
    try:
        return loads(value)
    except JsonError:
        raise _refusal("the invite does not hold JSON") from None


def _from_base64(value: str) -> str:
    letters = _BASE64.match(value)
    if letters is None:
        raise _refusal("the invite has no payload")
    plain = letters[0].replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        raise _refusal("the invite is not base64 of a text") from None


def _refusal(why: str) -> Refused:
    return Refused(400, "invalid_invite", why)
