"""Keys and addresses of vendors: from the environment, then `.env` of the service home; never from a request."""

import re
from collections.abc import Mapping

from attrs import define, field, frozen

from svc_proto.basics.entropy import sha256_hex
from svc_proto.commands import Level
from svc_proto.engine.core import Engine
from svc_proto.engine.files import read_env_file
from svc_proto.engine.flow import Flow
from svc_proto.facts import Failure, FailureKind
from svc_proto.voice.provider_interface import ProviderError
from svc_proto.voice_config import KEY_VARIABLES, URL_VARIABLES, ProviderEndpoint

__all__ = ["ProviderKeys", "ProviderCredentials"]

_CARRIABLE = re.compile(r"[!-~]+")  # RFC 9110 section 5.5, without blanks


@frozen
class ProviderCredentials:
    """Address and key of a vendor."""

    endpoint: str
    url: str
    key: str = field(repr=False)

    def at(self, path: str) -> str:
        """Return the URL of a path; a `/v1` that both the path and the base address have appears once."""
        return f"{self.url.removesuffix('/v1') if path.startswith('/v1/') else self.url}{path}"


@define
class ProviderKeys:
    """Keys and addresses that the operator has set in the environment, or in `.env`, which `refresh` reads again."""

    environment: Mapping[str, str] = field(repr=False)
    _file: Mapping[str, str] = field(factory=dict, repr=False, init=False)

    def get(self, *names: str) -> str | None:
        """Return the value of the first of the variables `names` that is set; None if none is."""
        values = (self.environment.get(name) or self._file.get(name) for name in names)
        return next(filter(None, values), None)

    def credentials_for(self, endpoint: ProviderEndpoint) -> ProviderCredentials:
        """Return the operator's credentials for a vendor.

        Raise `ProviderError` for a missing key, with the variable's name, and for a key that no header can carry.
        """
        key = self.get(*endpoint.keys)
        if not key:
            raise ProviderError(f"{endpoint.suggested_variable} not set", variable=endpoint.suggested_variable)
        if not _CARRIABLE.fullmatch(key):
            raise ProviderError(f"the key of {endpoint.name} has characters that no header can carry")
        return ProviderCredentials(endpoint.name, (self.get(endpoint.url_variable) or endpoint.url).rstrip("/"), key)

    def present_variables(self, *names: str) -> list[str]:
        """Return those of the variables `names` that are set."""
        return [name for name in names if self.get(name)]

    def fingerprint(self) -> str:
        """Return a hash that changes with any of the keys and reveals none of them."""
        return sha256_hex("\0".join(f"{name}={self.get(name)}" for name in KEY_VARIABLES))

    def refresh(self, engine: Engine, home: str) -> Flow[None]:
        """Read `.env` of the folder `home`; a file that cannot be read counts as empty.

        Log a warning for it, unless it is missing.
        """
        found = yield from read_env_file(engine, f"{home}/.env")
        if isinstance(found, Failure):
            if found.kind is not FailureKind.NOT_FOUND:
                engine.log(Level.WARNING, ".env not read", problem=found.detail or found.kind.value)
            found = {}
        self._file = {name: found[name] for name in (*KEY_VARIABLES, *URL_VARIABLES) if name in found}
