"""Keys and addresses of vendors: the environment, then `.env` of the service home. Never anything of a request."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from attrs import define, field, frozen

from svc_proto.basics.dotenv import parse_dotenv
from svc_proto.basics.entropy import sha256_hex
from svc_proto.engine.files import read_file
from svc_proto.engine.flow import Flow
from svc_proto.facts import Failure
from svc_proto.voice.provider_interface import ProviderError
from svc_proto.voice_config import KEY_VARIABLES, URL_VARIABLES, ProviderEndpoint

if TYPE_CHECKING:
    from svc_proto.engine.core import Engine

__all__ = ["ProviderKeys", "ProviderCredentials"]

_CARRIABLE = re.compile(r"[!-~]+")  # RFC 9110 section 5.5, without blanks


@frozen
class ProviderCredentials:
    """The right to call a vendor."""

    vendor: str
    url: str
    key: str = field(repr=False)

    def at(self, path: str) -> str:
        """The address of a path: one that names its version stands beside the address, which may name it, too."""
        return f"{self.url.removesuffix('/v1') if path.startswith('/v1/') else self.url}{path}"


@define
class ProviderKeys:
    """`refresh` reads `.env` anew, so that a key takes effect without a restart."""

    environment: Mapping[str, str] = field(repr=False)
    _file: Mapping[str, str] = field(factory=dict, repr=False, init=False)

    def get(self, *names: str) -> str | None:
        """The value of the first of these variables that is set."""
        values = (self.environment.get(name) or self._file.get(name) for name in names)
        return next(filter(None, values), None)

    def credentials_for(self, vendor: ProviderEndpoint) -> ProviderCredentials:
        """The access that the operator has set up. `ProviderError` names the variable that is missing."""
        key = self.get(*vendor.keys)
        if not key:
            raise ProviderError(f"{vendor.suggested_variable} not set", variable=vendor.suggested_variable)
        if not _CARRIABLE.fullmatch(key):
            raise ProviderError(f"the key of {vendor.name} has characters that no header can carry")
        return ProviderCredentials(vendor.name, (self.get(vendor.url_variable) or vendor.url).rstrip("/"), key)

    def present_variables(self, *names: str) -> list[str]:
        """Which of these variables are set."""
        return [name for name in names if self.get(name)]

    def fingerprint(self) -> str:
        """Changes with any of the keys; tells nothing of them."""
        return sha256_hex("\0".join(f"{name}={self.get(name)}" for name in KEY_VARIABLES))

    def refresh(self, engine: Engine, home: str) -> Flow[None]:
        """Read `.env`; one that cannot be read counts as empty."""
        lines = yield from read_file(engine, f"{home}/.env")
        found = {} if isinstance(lines, Failure) else parse_dotenv(lines.decode("utf-8", "replace"))
        self._file = {name: found[name] for name in (*KEY_VARIABLES, *URL_VARIABLES) if name in found}
