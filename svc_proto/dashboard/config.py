"""Configuration of the dashboard as one parsed value (decision 32)."""

import re
from collections.abc import Mapping

from attrs import field, frozen

from svc_proto.commands import Level
from svc_proto.relay_config import RelayConfig
from svc_proto.settings import ConfigError, SettingsSource
from svc_proto.version import VERSION

__all__ = ["DashboardConfig", "parse_dashboard_config"]

LOOPBACK = ("127.0.0.1", "::1", "localhost")  # RFC 6761 6.3: the name has no other meaning
DEFAULT_RELAY_PORT = 8767
MIN_PASSWORD = 8  # characters
MAX_NAME = 253  # characters of a host's name, RFC 1035
_NAME = re.compile(r"[a-z0-9.-]+")


@frozen(kw_only=True)
class DashboardConfig:
    """Start-up configuration of the dashboard. Times in seconds."""

    version: str = VERSION  # that clients see; the programs add the commit
    host: str = "127.0.0.1"
    port: int = 9119
    ssl_cert: str | None = None  # paths of a certificate and its key: serve TLS
    ssl_key: str | None = None
    root_path: str = ""  # the path under which a proxy serves the dashboard, such as /board
    password: str = field(default="", repr=False)  # empty: no password is required, and only this host has access
    local_access: bool = False  # programs and pages of this host need no password
    names: tuple[str, ...] = ()  # host names of this host in browsers, besides its addresses
    relay_url: str = "http://127.0.0.1:8767"  # where the relay serves its loopback-only routes
    relay: RelayConfig = field(factory=RelayConfig)  # the relay's configuration: its address and the API's, in invites
    api_url: str | None = None  # the API server of the chat; None: there is no chat
    api_key: str = field(default="", repr=False)
    log_level: Level = Level.INFO
    metrics_token: str = field(default="", repr=False)  # of a monitor; empty: only local requests are allowed
    log_json: bool = False
    asks_for_users: bool = False  # the kernel names the users of callers on this host
    patience: float = 5.0  # spec "Limits": dashboard proxy time-out

    @property
    def identifies_owner(self) -> bool:
        """Report whether a password without `local_access`, or the kernel, identifies callers as the owner.

        Only then is this host's secret sent on their behalf.
        """
        return (bool(self.password) and not self.local_access) or self.asks_for_users


def parse_dashboard_config(
    env: Mapping[str, str], options: Mapping[str, object] | None = None, *, relay_port: int | None = None
) -> DashboardConfig:
    """Parse the dashboard's own settings from an environment and from start options (None or absent: not given).

    Options: `host`, `port`, `no_ssl`, `log_level`, `log_format`, `root_path`. `relay_port` is the relay's port if no
    variable names one. The starting program adds the other settings of relay and API. Raises `ConfigError`.
    """
    source = SettingsSource(env, {key: value for key, value in (options or {}).items() if value is not None})
    host = source.text("SVC_DASHBOARD_HOST", "host") or "127.0.0.1"
    password = source.text("SVC_DASHBOARD_PASSWORD", None) or ""
    if password and len(password) < MIN_PASSWORD:
        raise ConfigError(f"SVC_DASHBOARD_PASSWORD must have at least {MIN_PASSWORD} characters")
    if not password and host not in LOOPBACK:
        raise ConfigError(f"a dashboard that listens on {host} needs a password: set SVC_DASHBOARD_PASSWORD")
    cert, key = source.certificate("SVC_DASHBOARD_SSL_CERT", "SVC_DASHBOARD_SSL_KEY")
    variable = "SVC_RELAY_PORT" if source.text("SVC_RELAY_PORT", None) else "HERMES_RELAY_PORT"
    port = source.integer(variable, relay_port or DEFAULT_RELAY_PORT, low=1, high=65_535)
    return DashboardConfig(
        host=host,
        port=source.port("SVC_DASHBOARD_PORT", "port", 9119),
        ssl_cert=cert,
        ssl_key=key,
        root_path=source.prefix("SVC_DASHBOARD_ROOT_PATH"),
        password=password,
        local_access=source.boolean("SVC_DASHBOARD_LOCAL_ACCESS", default=False),
        names=_names(source, "SVC_DASHBOARD_NAMES"),
        relay_url=f"http://127.0.0.1:{port}",
        log_level=source.level("SVC_DASHBOARD_LOG_LEVEL", "log_level"),
        metrics_token=source.metrics_token(),
        log_json=source.json_log(),
    )


def _names(source: SettingsSource, variable: str) -> tuple[str, ...]:
    names = tuple(part.lower() for part in source.split_list(variable))
    for name in names:
        if len(name) > MAX_NAME or not all(
            letter.isascii() and (letter.isalnum() or letter in ".-") for letter in name
        ):
            raise ConfigError(f"{variable} must hold names of this host, such as dashboard.example, not {name!r}")
    return names
