"""Where a vendor is reached and with whose key: the operator's environment decides, never a caller."""

from __future__ import annotations

import re
from typing import Protocol

from attrs import field, frozen

from svc_proto.engine.client import bearer
from svc_proto.voice.contract import ProviderError
from svc_proto.voice_config import Vendor

__all__ = ["KeySource", "VendorAccess", "admit"]

_CARRIABLE = re.compile(r"[!-~]+")  # RFC 9110 section 5.5, without blanks


class KeySource(Protocol):
    """Variables of the operator: `svc_proto.voice.keys.Keys`."""

    def get(self, *names: str) -> str | None:
        """The value of the first of these that is set."""
        ...


@frozen
class VendorAccess:
    """The right to call a vendor."""

    vendor: str
    url: str
    key: str = field(repr=False)

    @property
    def bearer(self) -> tuple[tuple[bytes, bytes], ...]:
        """The key as most vendors want it."""
        return bearer(self.key)


def admit(vendor: Vendor, source: KeySource) -> VendorAccess:
    """The access that the operator has set up. `ProviderError` names the variable that is missing."""
    key = source.get(*vendor.keys)
    if not key:
        raise ProviderError(f"{vendor.asked} not set", variable=vendor.asked)
    if not _CARRIABLE.fullmatch(key):
        raise ProviderError(f"the key of {vendor.name} has characters that no header can carry")
    return VendorAccess(vendor.name, (source.get(vendor.url_variable) or vendor.url).rstrip("/"), key)
