"""Branded words on the wire: the neutral set, and the one that existing clients use.

Input accepts both spellings, always; output uses the chosen one (`--brand`, `SVC_BRAND`).
"""

from __future__ import annotations

from svc_proto.basics.fast_frozen import fast_frozen

__all__ = ["BRANDS", "HERMES", "SVC", "Brand"]


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
    reader="an app that knows svc-relay:// (the Hermes-Relay app for Android wants --brand hermes)",
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
