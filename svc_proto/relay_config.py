"""Configuration of the relay as one parsed value. Callers pass the text (environment, options); nothing is read here.

An option overrides its variable. An empty variable counts as unset.
"""

import re
from collections.abc import Mapping, Sequence
from enum import Enum

from attrs import field

from svc_proto.basics.brand import SVC, Brand
from svc_proto.basics.fast_frozen import fast_frozen
from svc_proto.basics.validate import MAX_SECONDS
from svc_proto.commands import Level
from svc_proto.settings import ConfigError, RedisAddress, S3Bucket, SettingsSource, http_address
from svc_proto.version import VERSION
from svc_proto.voice_config import VoiceConfig, parse_voice_config

__all__ = [
    "PUBLIC_ROUTE",
    "WEBAPI_URL",
    "ApiAddress",
    "ConfigError",
    "LocalTrustPolicy",
    "RelayConfig",
    "SessionPolicy",
    "asks_for_users",
    "PAIR_SCOPES",
    "PAIR_VARIABLES",
    "parse_local_trust",
    "parse_pair_scope",
    "parse_pair_ttl",
    "parse_public_url",
    "parse_relay_config",
]

PUBLIC_ROUTE = "public-route"  # file of the service home that exists once an invite had a public route
WEBAPI_URL = "http://localhost:8642"  # default (spec "Relay environment variables")
MAX_WORKERS = 64  # processes of one relay on one host
PAIR_SCOPES: Mapping[str, tuple[str, ...]] = {
    "phone": ("terminal", "tui"),
    "chat": ("terminal", "tui", "bridge", "voice:config", "voice:stt", "voice:tts", "voice:realtime"),
}
"""Channels that the values of `SVC_PAIR_SCOPE` withhold from a new pairing."""
PAIR_VARIABLES = ("SVC_PAIR_SCOPE", "SVC_PAIR_TTL")
LOOPBACK_NETWORKS = "127.0.0.0/8, ::1"  # default of the trusted proxies


class SessionPolicy(Enum):
    """Changes that a session may make by `PATCH /sessions`; the operator is not bound by them.

    A channel withheld by the pairing is never permitted.
    """

    OPEN = "open"  # SPEC.md: all values of all sessions
    AS_PAIRED = "as-paired"  # only its own session, up to what the pairing granted, counted from now
    REDUCE_ONLY = "reduce-only"  # only its own session, and only reductions


class LocalTrustPolicy(Enum):
    """Criterion for a caller on this host: its address alone, its user by the kernel, or the local secret as well."""

    ADDRESS = "address"
    USER = "user"  # a process of our own user or of root; where the kernel does not name it, the address counts
    SECRET = "secret"


def asks_for_users(trust: LocalTrustPolicy | None) -> bool:
    """Report whether a server with this setting looks up the users of its callers on this host."""
    return trust is None or trust is LocalTrustPolicy.USER


@fast_frozen
class ApiAddress:
    """Address of the API server: host, port, and whether it uses TLS."""

    host: str
    port: int
    tls: bool


@fast_frozen(kw_only=True)
class RelayConfig:
    """Start configuration of the relay. Times are in seconds; the name of a size ends in its unit."""

    version: str = VERSION  # that clients see; the programs add the commit
    host: str = "0.0.0.0"
    port: int = 8767
    ssl_cert: str | None = None
    ssl_key: str | None = None
    root_path: str = ""  # the path under which a proxy serves it, such as /relay
    webapi_url: str = WEBAPI_URL
    home: str = "~/.svc"  # the service home, absolute when it comes from `servers`
    config_path: str = "~/.svc/config.yaml"
    workspace: str = "~/.svc/workspace"  # files under it may be downloaded, as under the next
    temp_dir: str = "/tmp"  # of the system  # noqa: S108 - only read
    store_files: tuple[str, ...] = ()  # of a configured store; phones may not download them
    user_home: str = "~"  # of the person who runs the relay
    log_level: Level = Level.INFO
    log_json: bool = False
    terminal_shell: str | None = None
    user_shell: str | None = None  # of the person who runs the relay
    terminal_env: tuple[str, ...] = ()  # variables that terminals and gateways inherit besides the usual ones
    terminal_tmux: bool = True  # keep terminals in tmux sessions, where tmux is installed
    profile_discovery: bool = True
    tui_command: tuple[str, ...] = ()  # the agent gateway of the TUI channel; empty: none
    pairing_code: str | None = None
    trusted_proxies: tuple[str, ...] = ()  # addresses and networks whose forwarding headers count
    local_trust: LocalTrustPolicy | None = None  # None: the user, and the secret once there is a proxy in front
    allow_insecure_api_bearer: bool = False
    hide_typed_text: bool = False  # text typed by the agent is left out of the command record
    media_max_size_mb: int = 100
    media_ttl_seconds: int = 86_400
    media_lru_cap: int = 500
    media_allowed_roots: tuple[str, ...] = ()
    media_store: S3Bucket | str | None = None  # of all nodes, text is a folder; None: each node keeps its uploads
    max_session_ttl: float | None = None  # s; None: no maximum
    session_policy: SessionPolicy = SessionPolicy.OPEN
    brand: Brand = SVC
    metrics_token: str = field(default="", repr=False)  # of a monitor; empty: programs of this host only
    api_key: str = field(default="", repr=False)  # as it was when this was read, see `service_clients`
    key_in_environment: bool = False  # and then overrides the files
    api_host: str | None = None
    api_port: int | None = None
    api_tls: bool = False  # the API server of this host has a certificate
    webapi_inside: str | None = None  # address of the API for programs of this host; None: `webapi_url`
    inside: str | None = None  # address of the relay for them; None: where it listens
    webapi_pin: str | None = None  # of the API's certificate (wire core 10.8); None: the system's trust store decides
    cluster: RedisAddress | None = None  # shared Redis of all nodes; None: a single process
    public_url: str | None = None  # address of this host from outside; a slash at its end is significant
    pair_environment: Mapping[str, str] = field(factory=dict)  # `PAIR_VARIABLES` that no file changes
    pair_scope: str | None = None  # of `PAIR_SCOPES`, for codes without grants; None: everything
    pair_ttl: int | None = None  # s, for codes without a lifetime; 0: without end; None: as the route
    node_url: str = ""  # address of this node for the others; empty: none
    workers: int = 1  # processes of this relay on this host
    shares_home: bool = False  # several processes share this home
    # Where a dashboard with a password listens over http, for invites; None: phones reach none.
    dashboard: tuple[str, int] | None = None
    begins: bool = True  # the first process on its home: it creates the shared state
    voice: VoiceConfig = field()

    @voice.default
    def _voice(self) -> VoiceConfig:
        return VoiceConfig(
            home=f"{self.home}-relay",
            service_home=self.home,
            config_path=self.config_path,
            webapi_url=self.webapi_url,
            api_key=self.api_key,
            key_in_environment=self.key_in_environment,
            brand=self.brand,
        )

    @property
    def pair_grants(self) -> dict[str, float | None] | None:
        """Grants of a pairing code made without options: a None for each withheld channel. None: the default grants."""
        return None if self.pair_scope is None else dict.fromkeys(PAIR_SCOPES[self.pair_scope])

    @property
    def tls(self) -> bool:
        """Report whether the relay serves TLS."""
        return self.ssl_cert is not None and self.ssl_key is not None

    @property
    def api_url(self) -> str:
        """Address of the API server for the relay, and for the programs that it starts."""
        return self.webapi_inside or self.webapi_url

    @property
    def webapi(self) -> ApiAddress:
        """The parts of `webapi_url`; the default port is 443 for https, 8642 for http (wire core 2.6).

        Raise `ConfigError` if it is no such URL.
        """
        found = http_address(self.webapi_url)
        if found is None:
            raise ConfigError("the API server's address must be an http:// or https:// URL with a host")
        return ApiAddress(found.host, found.port or (443 if found.tls else 8642), found.tls)

    def local_trust_policy(self, *, public_route: bool) -> LocalTrustPolicy:
        """Return the policy in force: the configured one, or by default SECRET or USER.

        The default is SECRET if requests may come from outside: with trusted proxies, a public route or address, or
        several processes on one home.
        """
        # the other processes of a shared home would not notice a new route
        asked = self.trusted_proxies or public_route or self.public_url or self.shares_home
        by_itself = LocalTrustPolicy.SECRET if asked else LocalTrustPolicy.USER
        return self.local_trust or by_itself

    @property
    def qr_secret_name(self) -> str:
        """File in the service home that holds the key of QR signatures (wire core 3.4)."""
        return f"{self.brand.scheme}-qr-secret"


def parse_relay_config(
    env: Mapping[str, str],
    options: Mapping[str, object] | None = None,
    *,
    home: str = "~/.svc",
    path_separator: str = ":",
    temp_dir: str = "/tmp",  # noqa: S108 - only read
    user_home: str | None = None,
    store_files: Sequence[str] = (),
) -> RelayConfig:
    """Parse the settings of the relay from an environment and from start options (None or absent: not given).

    Options: `host`, `port`, `no_ssl`, `shell`, `webapi_url`, `log_level`, `log_format`, `config`, `brand`,
    `allow_insecure_api_key`, `local_trust`, `root_path`, `workers`. Raises `ConfigError`.
    """
    source = SettingsSource(env, {key: value for key, value in (options or {}).items() if value is not None})
    cert, key = source.certificate("RELAY_SSL_CERT", "RELAY_SSL_KEY")
    home = source.text("SVC_HOME", None) or source.text("HERMES_HOME", None) or home
    webapi_url = source.url("RELAY_WEBAPI_URL", "webapi_url", WEBAPI_URL)
    config_path = source.text("RELAY_HERMES_CONFIG", "config") or f"{home}/config.yaml"
    api_key = source.text("API_SERVER_KEY", None) or ""
    brand = source.brand("SVC_BRAND", "brand")
    return RelayConfig(
        host=source.text("RELAY_HOST", "host") or "0.0.0.0",
        port=source.port("RELAY_PORT", "port", 8767),
        ssl_cert=cert,
        ssl_key=key,
        root_path=source.prefix("RELAY_ROOT_PATH"),
        webapi_url=webapi_url,
        home=home,
        config_path=config_path,
        workspace=source.absolute_path("SVC_WORKSPACE")
        or source.absolute_path("HERMES_WORKSPACE")
        or f"{home}/workspace",
        temp_dir=temp_dir,
        store_files=tuple(store_files),
        user_home=user_home or source.text("HOME", None) or "~",
        log_level=source.level("RELAY_LOG_LEVEL", "log_level"),
        log_json=source.json_log(),
        terminal_shell=source.shell("RELAY_TERMINAL_SHELL", "shell"),
        user_shell=source.text("SHELL", None),
        terminal_env=source.names("SVC_TERMINAL_ENV"),
        terminal_tmux=source.boolean("RELAY_TERMINAL_TMUX", default=True),
        profile_discovery=source.boolean("RELAY_PROFILE_DISCOVERY_ENABLED", default=True),
        tui_command=source.command("SVC_TUI_COMMAND"),
        pairing_code=source.pairing_code("RELAY_PAIRING_CODE"),
        trusted_proxies=_proxies(source),
        local_trust=parse_local_trust(source),
        allow_insecure_api_bearer=source.boolean("RELAY_ALLOW_INSECURE_API_BEARER")
        or source.option("allow_insecure_api_key") is True,
        hide_typed_text=source.boolean("RELAY_HIDE_TYPED_TEXT"),
        media_max_size_mb=source.integer("RELAY_MEDIA_MAX_SIZE_MB", 100, low=1, high=100_000),
        media_ttl_seconds=source.integer("RELAY_MEDIA_TTL_SECONDS", 86_400, low=1, high=int(MAX_SECONDS)),
        media_lru_cap=source.integer("RELAY_MEDIA_LRU_CAP", 500, low=1, high=1_000_000),
        media_allowed_roots=source.absolute_paths("RELAY_MEDIA_ALLOWED_ROOTS", path_separator),
        media_store=source.media_store("SVC_MEDIA_URL"),
        max_session_ttl=source.duration("RELAY_MAX_SESSION_TTL_SECONDS"),
        session_policy=_policy(source, "RELAY_SESSION_POLICY"),
        metrics_token=source.metrics_token(),
        brand=brand,
        api_key=api_key,
        key_in_environment=bool(api_key),
        api_host=source.text("API_SERVER_HOST", None),
        api_port=source.port("API_SERVER_PORT", None, 0) or None,
        api_tls=source.text("API_SERVER_SSL_CERT", None) is not None,
        webapi_pin=_pin(source, "RELAY_WEBAPI_PIN"),
        cluster=source.redis("SVC_CLUSTER_URL"),
        public_url=parse_public_url(source),
        pair_scope=parse_pair_scope(source),
        pair_ttl=parse_pair_ttl(source),
        node_url=source.url("SVC_NODE_URL", None, ""),
        workers=source.integer("RELAY_WORKERS", 1, low=1, high=MAX_WORKERS, option="workers"),
        voice=parse_voice_config(
            source,
            service_home=home,
            config_path=config_path,
            webapi_url=webapi_url,
            api_key=api_key,
            brand=brand,
        ),
    )


def _proxies(source: SettingsSource) -> tuple[str, ...]:
    proxies = source.networks("RELAY_TRUSTED_PROXIES", LOOPBACK_NETWORKS)
    return proxies if source.boolean("RELAY_TRUST_PROXY_HEADERS") else ()


def parse_local_trust(source: SettingsSource) -> LocalTrustPolicy | None:
    """Return the configured policy for programs of this host, which all servers share; None without one.

    Raise `ConfigError` for an unknown word.
    """
    word = source.choice("RELAY_LOCAL_TRUST", "local_trust", [each.value for each in LocalTrustPolicy])
    return None if word is None else LocalTrustPolicy(word)


def _pin(source: SettingsSource, variable: str) -> str | None:
    pin = source.text(variable, None)
    if pin is not None and not re.fullmatch(r"sha256/[A-Za-z0-9+/]{43}=", pin):
        raise ConfigError(f"{variable} must be sha256/ and 44 characters of Base64")
    return pin


def parse_pair_scope(source: SettingsSource) -> str | None:
    """Return the configured scope, of `PAIR_SCOPES`, of codes that are made without options; None if unset.

    Raise `ConfigError` for another word.
    """
    return source.choice("SVC_PAIR_SCOPE", None, tuple(PAIR_SCOPES))


def parse_pair_ttl(source: SettingsSource) -> int | None:
    """Return the lifetime in s of a session whose code was made without options; 0: without end; None if unset.

    Raises `ConfigError`.
    """
    if source.text("SVC_PAIR_TTL", None) is None:
        return None
    return source.integer("SVC_PAIR_TTL", 0, low=0, high=int(MAX_SECONDS))


def parse_public_url(source: SettingsSource) -> str | None:
    """Return `SVC_PUBLIC_URL`, the address of this host from outside; None if unset. Raises `ConfigError`."""
    url = source.text("SVC_PUBLIC_URL", None)
    if url is not None and http_address(url) is None:
        raise ConfigError("SVC_PUBLIC_URL must be an http:// or https:// URL with a host, without a password")
    return url


def _policy(source: SettingsSource, variable: str) -> SessionPolicy:
    return SessionPolicy(source.choice(variable, None, [each.value for each in SessionPolicy]) or "open")
