"""Branded words on the wire: a neutral set, and the set that existing clients use.

Input accepts both spellings. Most output uses the client's spelling; a QR has both version members. A client of the
existing app is recognized by its sign-in (`machines.paired_session`) or by a header. For other clients `--brand` or
`SVC_BRAND` decides.
"""

from collections.abc import Iterable

from svc_proto.basics.fast_frozen import fast_frozen

__all__ = ["BRANDS", "HERMES", "SVC", "Brand", "recognize_headers", "spell_markers"]


@fast_frozen(kw_only=True)
class Brand:
    """A spelling of every branded word."""

    name: str
    qr_key: str  # version member of the QR payload
    scheme: str  # of invite URLs and media markers
    self_foreground: str  # path of the self-foreground route
    mesh_role: str  # role of a mesh VPN candidate in a QR
    event_prefix: str  # of branded SSE event names
    header_prefix: str  # of branded HTTP headers
    reader: str  # the app that reads its QR, in a sentence


SVC = Brand(
    name="svc",
    qr_key="svc",
    scheme="svc-relay",
    self_foreground="/return_to_svc",
    mesh_role="mesh",
    event_prefix="svc.",
    header_prefix="X-Svc-",
    reader="the Hermes-Relay app for Android, or another app that knows these QRs",
)
HERMES = Brand(
    name="hermes",
    qr_key="hermes",
    scheme="hermes-relay",
    self_foreground="/return_to_hermes",
    mesh_role="tailscale",
    event_prefix="hermes.",
    header_prefix="X-Hermes-",
    reader="the Hermes-Relay app for Android",
)
BRANDS: dict[str, Brand] = {brand.name: brand for brand in (SVC, HERMES)}
_BY_PREFIX = {brand.header_prefix.lower().encode("ascii"): brand for brand in (HERMES, SVC)}
_PREFIXES = tuple(_BY_PREFIX)


def spell_markers(text: str, brand: Brand) -> str:
    """Return a text whose media markers have the scheme of a brand."""
    for each in BRANDS.values():
        text = text.replace(f"MEDIA:{each.scheme}://", f"MEDIA:{brand.scheme}://")
    return text


def recognize_headers(headers: Iterable[tuple[bytes, bytes]]) -> Brand | None:
    """Return the brand of the first branded header of a request, with names in lower case; None without one."""
    for name, _ in headers:
        if name.startswith(_PREFIXES):
            return next(brand for prefix, brand in _BY_PREFIX.items() if name.startswith(prefix))
    return None
