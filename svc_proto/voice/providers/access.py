"""Where a vendor is reached and with whose key: the operator's environment decides, never a caller."""

from __future__ import annotations

import re
from typing import Protocol

from attrs import field, frozen

from svc_proto.engine.client import bearer
from svc_proto.voice.contract import ProviderError

__all__ = [
    "DEEPINFRA",
    "ELEVENLABS",
    "GROQ",
    "MISTRAL",
    "OPENAI",
    "OPENAI_REALTIME",
    "XAI",
    "XAI_REALTIME",
    "VendorAccess",
    "KeySource",
    "Vendor",
    "admit",
]

_CARRIABLE = re.compile(r"[!-~]+")  # RFC 9110 section 5.5, without blanks


class KeySource(Protocol):
    """Variables of the operator: `svc_proto.voice.keys.Keys`."""

    def get(self, *names: str) -> str | None:
        """The value of the first of these that is set."""
        ...


@frozen(kw_only=True)
class Vendor:
    """What is known of a vendor. `keys` in the order in which they are looked for (wire 3.5, 4.10, 6.11)."""

    name: str
    keys: tuple[str, ...]
    asked: str  # which of them an operator without any is told to set
    url_variable: str
    url: str  # without a slash at its end


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


OPENAI = Vendor(
    name="OpenAI",
    keys=("OPENAI_API_KEY", "VOICE_TOOLS_OPENAI_KEY"),
    asked="OPENAI_API_KEY",
    url_variable="OPENAI_BASE_URL",
    url="https://api.openai.com/v1",
)
OPENAI_REALTIME = Vendor(
    name="OpenAI",
    keys=("OPENAI_REALTIME_API_KEY", "OPENAI_API_KEY", "VOICE_TOOLS_OPENAI_KEY"),
    asked="OPENAI_API_KEY",
    url_variable="OPENAI_REALTIME_URL",
    url="wss://api.openai.com/v1/realtime",
)
XAI = Vendor(
    name="xAI",
    keys=("VOICE_TOOLS_XAI_KEY", "XAI_API_KEY", "GROK_API_KEY"),
    asked="XAI_API_KEY",
    url_variable="XAI_BASE_URL",
    url="https://api.x.ai",
)
XAI_REALTIME = Vendor(
    name="xAI",
    keys=(*XAI.keys, "XAI_REALTIME_CLIENT_SECRET", "XAI_EPHEMERAL_TOKEN"),
    asked="XAI_API_KEY",
    url_variable="XAI_REALTIME_URL",
    url="wss://api.x.ai/v1/realtime",
)
ELEVENLABS = Vendor(
    name="ElevenLabs",
    keys=("ELEVENLABS_API_KEY", "VOICE_TOOLS_ELEVENLABS_KEY"),
    asked="ELEVENLABS_API_KEY",
    url_variable="ELEVENLABS_BASE_URL",
    url="https://api.elevenlabs.io",
)
GROQ = Vendor(
    name="Groq",
    keys=("GROQ_API_KEY",),
    asked="GROQ_API_KEY",
    url_variable="GROQ_BASE_URL",
    url="https://api.groq.com/openai/v1",
)
MISTRAL = Vendor(
    name="Mistral",
    keys=("MISTRAL_API_KEY",),
    asked="MISTRAL_API_KEY",
    url_variable="MISTRAL_BASE_URL",
    url="https://api.mistral.ai/v1",
)
DEEPINFRA = Vendor(
    name="DeepInfra",
    keys=("DEEPINFRA_API_KEY",),
    asked="DEEPINFRA_API_KEY",
    url_variable="DEEPINFRA_BASE_URL",
    url="https://api.deepinfra.com/v1/openai",
)


def admit(vendor: Vendor, source: KeySource) -> VendorAccess:
    """The access that the operator has set up. `ProviderError` names the variable that is missing."""
    key = source.get(*vendor.keys)
    if not key:
        raise ProviderError(f"{vendor.asked} not set", variable=vendor.asked)
    if not _CARRIABLE.fullmatch(key):
        raise ProviderError(f"the key of {vendor.name} has characters that no header can carry")
    return VendorAccess(vendor.name, (source.get(vendor.url_variable) or vendor.url).rstrip("/"), key)
