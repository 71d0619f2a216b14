"""Configuration of the API server as one parsed value (wire api 9)."""

import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from attrs import field, frozen

from svc_proto.agent.tool_selection import TOOLSETS, ToolPolicy
from svc_proto.basics.brand import SVC, Brand
from svc_proto.basics.sanitize import is_printable_ascii
from svc_proto.commands import Level
from svc_proto.relay_config import LocalTrustPolicy, parse_local_trust
from svc_proto.settings import ConfigError, RedisAddress, SettingsSource, http_address
from svc_proto.version import VERSION

__all__ = ["ANY_ORIGIN", "ApiConfig", "model_url_source", "parse_api_config", "parse_api_key"]

ANY_ORIGIN = "*"
MIN_KEY = 16  # minimum characters of a key on a reachable address, since a remote client can guess keys
LOOPBACK = ("localhost", "::1", "::ffff:127.0.0.1")  # and all of 127/8
MAX_MODEL_CALLS = 1_000  # of SVC_MAX_ITERATIONS
MODEL_URL = "SVC_MODEL_BASE_URL"
MAX_RUNS = 10_000  # of API_SERVER_MAX_CONCURRENT_RUNS
NOT_OF_APPS = ("http", "https", "ws", "wss", "ftp", "file", "data", "blob", "javascript")  # schemes
_APP_ORIGIN = re.compile(r"([a-z][a-z0-9+.-]*)://(?:[a-z0-9._~-]+(?::\d{1,5})?|\*)")
MAX_TOKENS = 10_000_000  # of SVC_MAX_TOKENS and SVC_MODEL_CONTEXT


@frozen(kw_only=True)
class ApiConfig:
    """Start-up configuration of the API server. Times in seconds."""

    enabled: bool = True
    version: str = VERSION  # that clients see; the programs add the commit
    host: str = "127.0.0.1"
    port: int = 8642
    ssl_cert: str | None = None  # paths of a certificate and its key: serve TLS
    ssl_key: str | None = None
    root_path: str = ""  # the path under which a proxy serves the API, such as /api
    key: str = field(default="", repr=False)  # the bearer key; empty: no key is required
    key_in_environment: bool = False  # files cannot change such a key
    host_environment: Mapping[str, str] = field(factory=dict, repr=False)  # see `HOST_SETTINGS`; no file changes them
    names: tuple[str, ...] = ()  # additional host names for clients without a key
    cors_origins: tuple[str, ...] = ()  # empty: a request with an `Origin` is refused; `*`: any
    model_name: str | None = None  # the server's model name in /v1/models
    home: str = "~/.svc"
    config_path: str = "~/.svc/config.yaml"
    log_level: Level = Level.INFO
    log_json: bool = False
    brand: Brand = SVC
    local_trust: LocalTrustPolicy | None = None  # of programs of this host, as the relay's
    metrics_token: str = field(default="", repr=False)  # of a monitor; empty: only local requests are allowed
    max_concurrent_runs: int = 10  # 0: no limit
    approval_timeout: float = 60.0
    max_model_calls: int = 90  # of one turn
    max_tokens: int | None = None  # of one answer
    model_base_url: str | None = None  # an OpenAI-compatible endpoint; None: the config file's, or none
    model_base_url_source: str = MODEL_URL  # the setting and its place, for error texts
    model: str | None = None
    model_api_key: str = field(default="", repr=False)
    model_context: int | None = None  # context size in tokens
    tools: ToolPolicy = field(factory=ToolPolicy)  # tools that the model is offered
    cluster: RedisAddress | None = None  # Redis of the cluster; None: this process is a single node
    node_url: str = ""  # address of this node for other nodes; empty: this process is a single node
    relay_url: str = "http://127.0.0.1:8767"  # for the tools that use the phone
    # A session token with a bridge grant; empty: pair over loopback at the first use.
    relay_token: str = field(default="", repr=False)

    @property
    def tls(self) -> bool:
        """Report whether the API serves TLS."""
        return self.ssl_cert is not None


def parse_api_config(
    env: Mapping[str, str], options: Mapping[str, object] | None = None, *, home: str = "~/.svc"
) -> ApiConfig:
    """Parse the settings of the API server from an environment and from start options (None or absent: not given).

    Options: `host`, `port`, `no_ssl`, `log_level`, `log_format`, `config`, `brand`, `model_base_url`, `relay_url`,
    `root_path`. Raises `ConfigError`.
    """
    source = SettingsSource(env, {key: value for key, value in (options or {}).items() if value is not None})
    home = source.text("SVC_HOME", None) or source.text("HERMES_HOME", None) or home
    cert, key = source.certificate("API_SERVER_SSL_CERT", "API_SERVER_SSL_KEY")
    cluster, node_url = _node(source)
    host = source.text("API_SERVER_HOST", "host") or "127.0.0.1"
    return ApiConfig(
        enabled=source.boolean("API_SERVER_ENABLED", default=True),
        host=host,
        port=source.port("API_SERVER_PORT", "port", 8642),
        ssl_cert=cert,
        ssl_key=key,
        root_path=source.prefix("API_SERVER_ROOT_PATH"),
        key=parse_api_key(source, host),
        cors_origins=_origins(source, "API_SERVER_CORS_ORIGINS"),
        model_name=source.text("API_SERVER_MODEL_NAME", None),
        home=home,
        config_path=source.text("SVC_CONFIG", "config") or f"{home}/config.yaml",
        log_level=source.level("API_SERVER_LOG_LEVEL", "log_level"),
        log_json=source.json_log(),
        brand=source.brand("SVC_BRAND", "brand"),
        local_trust=parse_local_trust(source),
        metrics_token=source.metrics_token(),
        max_concurrent_runs=source.integer("API_SERVER_MAX_CONCURRENT_RUNS", 10, low=0, high=MAX_RUNS),
        approval_timeout=float(source.integer("SVC_APPROVAL_TIMEOUT_SECONDS", 60, low=1, high=3_600)),
        max_model_calls=source.integer("SVC_MAX_ITERATIONS", 90, low=1, high=MAX_MODEL_CALLS),
        max_tokens=source.integer("SVC_MAX_TOKENS", 0, low=0, high=MAX_TOKENS) or None,
        model_base_url=source.url(MODEL_URL, "model_base_url", "") or None,
        model=source.text("SVC_MODEL", None),
        model_api_key=source.text("SVC_MODEL_API_KEY", None) or "",
        model_context=source.integer("SVC_MODEL_CONTEXT", 0, low=0, high=MAX_TOKENS) or None,
        tools=_tools(source, "SVC_TOOLS"),
        cluster=cluster,
        node_url=node_url,
        relay_url=source.url("SVC_RELAY_URL", "relay_url", "http://127.0.0.1:8767"),
        relay_token=source.text("SVC_RELAY_TOKEN", None) or "",
    )


def model_url_source(environment: Mapping[str, str]) -> str:
    """Return the name of the variable of the model's address, then ` in the environment` if it is set there.

    Else ` in .env` follows. The text is for error messages.
    """
    return f"{MODEL_URL} in {'the environment' if environment.get(MODEL_URL, '').strip() else '.env'}"


def parse_api_key(source: SettingsSource, host: str) -> str:
    """Return the key for a server that listens on `host`; empty for none.

    Raises `ConfigError` if it is not printable ASCII, or has fewer than 16 characters and `host` is not loopback.
    """
    variable = "API_SERVER_KEY"
    key = source.text(variable, None) or ""
    if 0 < len(key) < MIN_KEY and host not in LOOPBACK and not host.startswith("127."):
        raise ConfigError(f"{variable} must have at least {MIN_KEY} characters where other hosts can guess at it")
    if not is_printable_ascii(key):
        raise ConfigError(f"{variable} must be printable ASCII without spaces")  # the message does not quote the secret
    return key


def _tools(source: SettingsSource, variable: str) -> ToolPolicy:
    """Parse the setting of tools: `all` or `few`, and toolset names; or `none` without these.

    Words are separated by commas or spaces; `auto` has no effect. Raises `ConfigError` for other words and
    combinations.
    """
    words = [word for word in (source.text(variable, None) or "").lower().replace(",", " ").split() if word != "auto"]
    amounts = [word == "few" for word in words if word in ("all", "few")]
    only = tuple(word for word in words if word in TOOLSETS)
    known = len(amounts) + len(only) + words.count("none")
    if known < len(words) or len(amounts) > 1 or ("none" in words and len(words) > 1):
        names = ", ".join(TOOLSETS)
        raise ConfigError(f"{variable} must be auto, all or few, and may name toolsets ({names}); or none")
    return ToolPolicy(few=amounts[0] if amounts else None, only=only if only or "none" in words else None)


def _node(source: SettingsSource) -> tuple[RedisAddress | None, str]:
    """Return the cluster's Redis and this node's address; None and "" unless both are set.

    Raises `ConfigError` if both are set, but no `SVC_DATABASE_URL`: all nodes need one store.
    """
    cluster, node_url = source.redis("SVC_CLUSTER_URL"), source.url("API_SERVER_NODE_URL", None, "")
    if cluster is None or not node_url:
        return None, ""
    if source.text("SVC_DATABASE_URL", None) is None:
        raise ConfigError("API_SERVER_NODE_URL needs SVC_DATABASE_URL: the nodes of a service have one store")
    return cluster, node_url


def _origins(source: SettingsSource, variable: str) -> tuple[str, ...]:
    """Return the listed web origins in the form that browsers send. Raises `ConfigError` for an invalid one."""
    return tuple(_origin(part, variable) for part in source.split_list(variable))


def _origin(text: str, variable: str) -> str:
    origin = text.rstrip("/").lower()
    if origin == ANY_ORIGIN:
        return origin
    found = http_address(origin)
    if found is not None and not (urlsplit(origin).path or urlsplit(origin).query):
        return origin.removesuffix(":443" if found.tls else ":80")
    app = _APP_ORIGIN.fullmatch(origin)
    if app is not None and app[1] not in NOT_OF_APPS:
        return origin
    examples = "https://chat.example, app://obsidian.md or moz-extension://*"
    raise ConfigError(f"{variable} must hold origins such as {examples}; or *, not {text!r}")
