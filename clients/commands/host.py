"""What commands take from this host: settings of the relay, the service home, trust in the relay's own certificate."""

from __future__ import annotations

import os
import ssl
import tempfile
from pathlib import Path

from svc_proto.client.problem import MISUSED, Problem
from svc_proto.config import ConfigError, RelayConfig, relay_config

__all__ = ["read_relay_config", "service_home", "trust_for", "trust_for_api"]


def service_home() -> Path:
    """`SVC_HOME`, else `~/.svc`; not made."""
    named = os.environ.get("SVC_HOME") or os.environ.get("HERMES_HOME") or "~/.svc"
    return Path(named).expanduser().absolute()


def read_relay_config(**options: object) -> RelayConfig:
    """The settings of the relay on this host. Raises `Problem`, code 2."""
    try:
        return relay_config(
            os.environ,
            options,
            home=str(service_home()),
            path_separator=os.pathsep,
            temp_dir=_temp_dir(),
            user_home=str(Path.home()),
        )
    except ConfigError as error:
        raise Problem(str(error), code=MISUSED) from None


def _temp_dir() -> str:
    """The folder for temporary files. On a full disk `tempfile` finds none, but its name is all that is wanted."""
    try:
        return tempfile.gettempdir()
    except OSError:
        return os.environ.get("TMPDIR") or "/tmp"


def trust_for(config: RelayConfig) -> ssl.SSLContext | None:
    """Trust in the relay's own certificate, whoever issued it and whatever name it bears; None without TLS."""
    return _trust_in("RELAY_SSL_CERT", config.ssl_cert)


def trust_for_api() -> ssl.SSLContext | None:
    """The same in the API server's, where the environment names it."""
    return _trust_in("API_SERVER_SSL_CERT", (os.environ.get("API_SERVER_SSL_CERT") or "").strip() or None)


def _trust_in(variable: str, path: str | None) -> ssl.SSLContext | None:
    if path is None:
        return None
    from runtimes.tls import TlsFileError, client_context

    try:
        context = client_context(path)
    except TlsFileError as error:
        raise Problem(f"{variable}: {error}", code=MISUSED) from None
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context
