"""Where a vendor is reached and with whose key: the operator's environment decides, never a caller."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from attrs import field, frozen

from svc_proto.engine.client import bearer
from svc_proto.voice.contract import ProviderError
from svc_proto.voice_config import Vendor

if TYPE_CHECKING:
    from svc_proto.voice.keys import Keys

__all__ = ["VendorAccess", "admit"]

_CARRIABLE = re.compile(r"[!-~]+")  # RFC 9110 section 5.5, without blanks


@frozen
class VendorAccess:
    """The right to call a vendor."""

    vendor: str
    url: str
    key: str = field(repr=False)

    def at(self, path: str) -> str:
        """The address of a path: one that names its version stands beside the address, which may name it, too."""
        return f"{self.url.removesuffix('/v1') if path.startswith('/v1/') else self.url}{path}"

    @property
    def bearer(self) -> tuple[tuple[bytes, bytes], ...]:
        """The key as most vendors want it."""
        return bearer(self.key)


def admit(vendor: Vendor, keys: Keys) -> VendorAccess:
    """The access that the operator has set up. `ProviderError` names the variable that is missing."""
    key = keys.get(*vendor.keys)
    if not key:
        raise ProviderError(f"{vendor.asked} not set", variable=vendor.asked)
    if not _CARRIABLE.fullmatch(key):
        raise ProviderError(f"the key of {vendor.name} has characters that no header can carry")
    return VendorAccess(vendor.name, (keys.get(vendor.url_variable) or vendor.url).rstrip("/"), key)
