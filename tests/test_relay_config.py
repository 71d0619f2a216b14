"""The relay's settings: names, defaults and messages (SPEC.md "Relay environment variables", "Relay start options")."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_proto.basics.brand import HERMES, SVC
from svc_proto.commands import Level
from svc_proto.machines.grants import CHANNELS
from svc_proto.relay_config import (
    PUBLIC_ROUTE,
    ApiAddress,
    ConfigError,
    LocalTrustPolicy,
    RelayConfig,
    SessionPolicy,
    asks_for_users,
    parse_relay_config,
)
from svc_proto.settings import RedisAddress, S3Bucket
from tests.support.environment_variables import undocumented


def test_the_defaults_of_the_specification() -> None:
    config = parse_relay_config({}, home="/home/me/.svc")
    home, workspace = "/home/me/.svc", "/home/me/.svc/workspace"
    assert config == RelayConfig(home=home, config_path=f"{home}/config.yaml", workspace=workspace, user_home="~")
    assert (config.host, config.port, config.webapi_url) == ("0.0.0.0", 8767, "http://localhost:8642")
    assert (config.media_max_size_mb, config.media_ttl_seconds, config.media_lru_cap) == (100, 86_400, 500)
    assert (config.terminal_tmux, config.allow_insecure_api_bearer) == (True, False)
    assert (config.max_session_ttl, config.session_policy, config.brand) == (None, SessionPolicy.OPEN, SVC)
    assert parse_relay_config({}) == RelayConfig()
    assert PUBLIC_ROUTE == "public-route"
    assert undocumented(parse_relay_config) == set()


VARIABLES = {
    "RELAY_HOST": ("host", "127.0.0.1", "127.0.0.1"),
    "RELAY_PORT": ("port", "9000", 9000),
    "RELAY_WEBAPI_URL": ("webapi_url", "https://api.example/", "https://api.example"),
    "RELAY_HERMES_CONFIG": ("config_path", "/etc/svc.yaml", "/etc/svc.yaml"),
    "RELAY_LOG_LEVEL": ("log_level", "debug", Level.DEBUG),
    "RELAY_TERMINAL_SHELL": ("terminal_shell", "/bin/zsh", "/bin/zsh"),
    "SVC_TERMINAL_ENV": ("terminal_env", "GOPATH, NPM_*", ("GOPATH", "NPM_*")),
    "RELAY_PAIRING_CODE": ("pairing_code", " q7m2zk ", "Q7M2ZK"),
    "RELAY_TRUST_PROXY_HEADERS": ("trusted_proxies", "1", ("127.0.0.0/8", "::1")),
    "SVC_TUI_COMMAND": ("tui_command", "/opt/agent --name 'my agent'", ("/opt/agent", "--name", "my agent")),
    "SHELL": ("user_shell", "/bin/zsh", "/bin/zsh"),
    "RELAY_PROFILE_DISCOVERY_ENABLED": ("profile_discovery", "off", False),
    "RELAY_TERMINAL_TMUX": ("terminal_tmux", "0", False),
    "RELAY_ALLOW_INSECURE_API_BEARER": ("allow_insecure_api_bearer", "yes", True),
    "RELAY_HIDE_TYPED_TEXT": ("hide_typed_text", "1", True),
    "RELAY_MEDIA_MAX_SIZE_MB": ("media_max_size_mb", "5", 5),
    "RELAY_MEDIA_TTL_SECONDS": ("media_ttl_seconds", "60", 60),
    "RELAY_MEDIA_LRU_CAP": ("media_lru_cap", "3", 3),
    "RELAY_MEDIA_ALLOWED_ROOTS": ("media_allowed_roots", "/a: /b::", ("/a", "/b")),
    "RELAY_MAX_SESSION_TTL_SECONDS": ("max_session_ttl", "3600", 3600.0),
    "RELAY_SESSION_POLICY": ("session_policy", "reduce-only", SessionPolicy.REDUCE_ONLY),
    "SVC_BRAND": ("brand", "HERMES", HERMES),
    "SVC_WORKSPACE": ("workspace", "/srv/work", "/srv/work"),
    "HERMES_WORKSPACE": ("workspace", "/srv/work", "/srv/work"),
    "HOME": ("user_home", "/home/me", "/home/me"),
    "SVC_HOME": ("home", "/srv/svc", "/srv/svc"),
    "API_SERVER_KEY": ("api_key", "k", "k"),
    "API_SERVER_HOST": ("api_host", "h", "h"),
    "API_SERVER_PORT": ("api_port", "1", 1),
    "SVC_CLUSTER_URL": ("cluster", "redis://redis.lan/2", RedisAddress("redis.lan", db=2)),
}


@pytest.mark.parametrize(("variable", "row"), VARIABLES.items())
def test_each_variable(variable: str, row: tuple[str, str, object]) -> None:
    name, text, expected = row
    assert getattr(parse_relay_config({variable: text}), name) == expected


@pytest.mark.parametrize(
    ("variable", "low", "high"),
    [
        ("RELAY_MEDIA_MAX_SIZE_MB", 1, 100_000),
        ("RELAY_MEDIA_TTL_SECONDS", 1, 315_360_000),
        ("RELAY_MEDIA_LRU_CAP", 1, 1_000_000),
    ],
)
def test_the_ends_of_a_range(variable: str, low: int, high: int) -> None:
    for end, beyond in ((low, low - 1), (high, high + 1)):
        assert getattr(parse_relay_config({variable: str(end)}), VARIABLES[variable][0]) == end
        with pytest.raises(ConfigError, match=variable):
            parse_relay_config({variable: str(beyond)})


@pytest.mark.parametrize("variable", VARIABLES)
def test_an_empty_variable_counts_as_unset(variable: str) -> None:
    assert parse_relay_config({variable: ""}) == parse_relay_config({})
    assert parse_relay_config({variable: "  "}) == parse_relay_config({})


OPTIONS: dict[str, tuple[str, str, object, object]] = {
    "host": ("RELAY_HOST", "1.1.1.1", "::1", "::1"),
    "port": ("RELAY_PORT", "1", 2, 2),
    "shell": ("RELAY_TERMINAL_SHELL", "/bin/a", "/bin/b", "/bin/b"),
    "webapi_url": ("RELAY_WEBAPI_URL", "http://a", "http://b:1", "http://b:1"),
    "log_level": ("RELAY_LOG_LEVEL", "ERROR", "warning", Level.WARNING),
    "config": ("RELAY_HERMES_CONFIG", "/a", "/b", "/b"),
    "local_trust": ("RELAY_LOCAL_TRUST", "address", "secret", LocalTrustPolicy.SECRET),
    "brand": ("SVC_BRAND", "hermes", "svc", SVC),
}
FIELDS = {"shell": "terminal_shell", "config": "config_path"}


@pytest.mark.parametrize(("option", "row"), OPTIONS.items())
def test_an_option_beats_its_variable(option: str, row: tuple[str, str, object, object]) -> None:
    variable, text, value, expected = row
    assert getattr(parse_relay_config({variable: text}, {option: value}), FIELDS.get(option, option)) == expected
    unset = parse_relay_config({variable: text}, {option: None})
    assert unset == parse_relay_config({variable: text})


def test_values_that_follow_from_others() -> None:
    assert parse_relay_config({}, {"allow_insecure_api_key": True}).allow_insecure_api_bearer
    assert not parse_relay_config({}, {"allow_insecure_api_key": False}).allow_insecure_api_bearer
    assert not parse_relay_config({"RELAY_TRUST_PROXY_HEADERS": "off"}).trusted_proxies
    assert parse_relay_config({"HERMES_HOME": "/h"}).config_path == "/h/config.yaml"
    assert parse_relay_config({"HERMES_HOME": "/h", "SVC_HOME": "/s"}).home == "/s"
    roots = parse_relay_config({"RELAY_MEDIA_ALLOWED_ROOTS": "/a;/b"}, path_separator=";").media_allowed_roots
    assert roots == ("/a", "/b")
    assert parse_relay_config({"RELAY_MAX_SESSION_TTL_SECONDS": "0"}).max_session_ttl is None
    assert RelayConfig().qr_secret_name == "svc-relay-qr-secret"
    assert RelayConfig(brand=HERMES).qr_secret_name == "hermes-relay-qr-secret"


def test_local_trust_settings() -> None:
    proxied = {"RELAY_TRUST_PROXY_HEADERS": "1"}
    for env, route, trust in (
        ({}, False, LocalTrustPolicy.USER),
        ({"RELAY_LOCAL_TRUST": "address"}, True, LocalTrustPolicy.ADDRESS),
        ({"RELAY_LOCAL_TRUST": "user"}, True, LocalTrustPolicy.USER),
        ({}, True, LocalTrustPolicy.SECRET),
        (proxied, False, LocalTrustPolicy.SECRET),
        ({**proxied, "RELAY_LOCAL_TRUST": "address"}, True, LocalTrustPolicy.ADDRESS),
        ({"RELAY_LOCAL_TRUST": "secret"}, False, LocalTrustPolicy.SECRET),
    ):
        assert parse_relay_config(env).local_trust_policy(public_route=route) is trust
    asking = [policy for policy in (None, *LocalTrustPolicy) if asks_for_users(policy)]
    assert asking == [None, LocalTrustPolicy.USER]
    with pytest.raises(ConfigError, match="--local-trust must be address, user or secret, not 'all'"):
        parse_relay_config({}, {"local_trust": "all"})


def test_trusted_proxy_settings() -> None:
    env = {"RELAY_TRUSTED_PROXIES": " 192.168.1.2,10.0.0.1/8 ,2001:db8::/32,"}
    proxies = ("192.168.1.2", "10.0.0.1/8", "2001:db8::/32")
    assert parse_relay_config(env).trusted_proxies == ()
    assert parse_relay_config({**env, "RELAY_TRUST_PROXY_HEADERS": "1"}).trusted_proxies == proxies
    for wrong in ("proxy.example", "10.0.0.0/33", "10.0.0.1;10.0.0.2"):
        with pytest.raises(ConfigError, match="RELAY_TRUSTED_PROXIES must hold addresses and networks"):
            parse_relay_config({"RELAY_TRUSTED_PROXIES": wrong})


def test_tls() -> None:
    env = {"RELAY_SSL_CERT": "/c", "RELAY_SSL_KEY": "/k"}
    config = parse_relay_config(env)
    assert (config.ssl_cert, config.ssl_key, config.tls) == ("/c", "/k", True)
    config = parse_relay_config(env, {"no_ssl": True})
    assert (config.ssl_cert, config.ssl_key, config.tls) == (None, None, False)
    for one in env:
        with pytest.raises(ConfigError, match="set together"):
            parse_relay_config({one: "/x"})
    assert not RelayConfig(ssl_cert="/c").tls
    assert not RelayConfig(ssl_key="/k").tls


def test_addresses_of_api_node_and_service() -> None:
    pin = f"sha256/{'A' * 43}="
    config = parse_relay_config({"RELAY_WEBAPI_URL": "https://a", "RELAY_WEBAPI_PIN": pin, "API_SERVER_SSL_CERT": "/c"})
    assert (config.api_url, config.webapi_pin, config.api_tls) == ("https://a", pin, True)
    assert RelayConfig(webapi_inside="http://127.0.0.1:9").api_url == "http://127.0.0.1:9"
    for wrong in ("sha256/short", f"sha1/{'A' * 43}=", f"{pin}\n{pin}"):
        with pytest.raises(ConfigError, match="RELAY_WEBAPI_PIN must be sha256/"):
            parse_relay_config({"RELAY_WEBAPI_PIN": wrong})
    assert parse_relay_config({"SVC_PUBLIC_URL": "https://home.example"}).public_url == "https://home.example"
    with pytest.raises(ConfigError, match="SVC_PUBLIC_URL must be an http:// or https:// URL with a host"):
        parse_relay_config({"SVC_PUBLIC_URL": "home.example"})
    assert parse_relay_config({}).node_url == ""
    assert parse_relay_config({"SVC_NODE_URL": "http://10.0.0.1:8767/relay/"}).node_url == "http://10.0.0.1:8767/relay"
    with pytest.raises(ConfigError, match="SVC_NODE_URL must be an http:// or https:// URL"):
        parse_relay_config({"SVC_NODE_URL": "10.0.0.1:8767"})


KEYS = {"AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "very-secret"}


@pytest.mark.parametrize(
    ("url", "where", "region"),
    [
        ("s3://uploads", "https://uploads.s3.us-east-1.amazonaws.com", "us-east-1"),
        ("s3://uploads/of/svc/?region=eu-north-1", "https://uploads.s3.eu-north-1.amazonaws.com/of/svc", "eu-north-1"),
        ("s3://uploads/a?endpoint=http://10.0.0.9:9000/", "http://10.0.0.9:9000/uploads/a", "us-east-1"),
        ("s3://uploads?region=x&endpoint=https://s3.lan", "https://s3.lan/uploads", "x"),
    ],
)
def test_a_bucket_for_uploads(url: str, where: str, region: str) -> None:
    found = parse_relay_config({"SVC_MEDIA_URL": url, **KEYS, "AWS_SESSION_TOKEN": "soon-over"}).media_store
    assert found == S3Bucket(where, region, "AKID", "very-secret", "soon-over")
    assert not {"very-secret", "soon-over"} & set(re.split("['= ,]", repr(found)))
    assert parse_relay_config({"SVC_MEDIA_URL": url, **KEYS}).media_store == S3Bucket(
        where, region, "AKID", "very-secret", ""
    )


def test_a_folder_for_uploads() -> None:
    assert parse_relay_config({}).media_store is None
    assert parse_relay_config({"SVC_MEDIA_URL": "file:///mnt/our uploads/"}).media_store == "/mnt/our uploads"


NO_FOLDERS = "file:// file:/// file://host/x file:///a/../b file:///a//b /mnt"
NO_BUCKETS = """
s3:// s3://UP s3://ab/../c s3://uploads?endpoint=ftp://x s3://uploads?endpoint=http://x/path s3://uploads?region=É
s3://uploads?endpoint=http://me:secret@x s3://uploads?other=1 s3://uploads?region=
"""


@pytest.mark.parametrize("url", [*NO_FOLDERS.split(), *NO_BUCKETS.split(), "s3://uploads/a b"])
def test_invalid_upload_urls(url: str) -> None:
    with pytest.raises(ConfigError, match=r"^SVC_MEDIA_URL must be file:///FOLDER, or s3:") as error:
        parse_relay_config({"SVC_MEDIA_URL": url, **KEYS})
    assert "secret" not in str(error.value)


@pytest.mark.parametrize("lack", [*KEYS])
@pytest.mark.parametrize("value", ["", "with space"])
def test_a_bucket_without_a_key(lack: str, value: str) -> None:
    with pytest.raises(ConfigError, match=r"^SVC_MEDIA_URL needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"):
        parse_relay_config({"SVC_MEDIA_URL": "s3://uploads", **KEYS, lack: value})


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://localhost:8642", ApiAddress("localhost", 8642, False)),
        ("http://api.example", ApiAddress("api.example", 8642, False)),
        ("https://api.example/v1", ApiAddress("api.example", 443, True)),
        ("HTTPS://API.example:9", ApiAddress("api.example", 9, True)),
        ("http://[::1]:7", ApiAddress("::1", 7, False)),
    ],
)
def test_the_address_of_the_api_server(url: str, expected: ApiAddress) -> None:
    assert RelayConfig(webapi_url=url).webapi == expected


@pytest.mark.parametrize(
    "url", ["/", "localhost:8642", "ftp://x", "http://", "http://[::1", "http://x:0", "http://x:99999", "http://u:pw@x"]
)
def test_addresses_that_cannot_be_used(url: str) -> None:
    with pytest.raises(ConfigError, match="must be an http:// or https:// URL"):
        _ = RelayConfig(webapi_url=url).webapi
    with pytest.raises(ConfigError, match="RELAY_WEBAPI_URL") as caught:
        parse_relay_config({"RELAY_WEBAPI_URL": url})
    assert "pw" not in str(caught.value)
    with pytest.raises(ConfigError, match="--webapi-url"):
        parse_relay_config({}, {"webapi_url": url})


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("RELAY_PORT", "65536"),
        ("RELAY_LOG_LEVEL", "loud"),
        ("RELAY_TERMINAL_SHELL", "bash"),
        ("SVC_TUI_COMMAND", "agent 'SECRET"),
        *(("RELAY_PAIRING_CODE", code) for code in ("SECRET!", "SECRET1", "SECRß", "SECRÉT")),
        ("RELAY_TRUST_PROXY_HEADERS", "maybe"),
        ("RELAY_ALLOW_INSECURE_API_BEARER", "2"),
        ("RELAY_MEDIA_ALLOWED_ROOTS", "/a:relative"),
        ("SVC_WORKSPACE", "relative"),
        ("RELAY_MAX_SESSION_TTL_SECONDS", "315360001"),
        ("RELAY_SESSION_POLICY", "closed"),
        ("SVC_TERMINAL_ENV", "PATH, A=b"),
        ("SVC_TERMINAL_ENV", "*"),
        ("SVC_BRAND", "other"),
        ("API_SERVER_PORT", "x"),
    ],
)
def test_a_bad_variable_is_named(variable: str, text: str) -> None:
    with pytest.raises(ConfigError, match=variable) as caught:
        parse_relay_config({variable: text})
    assert "SECR" not in str(caught.value)


@given(st.dictionaries(st.sampled_from(list(VARIABLES)), st.text(max_size=12)))
def test_any_environment_gives_settings_or_a_message(env: dict[str, str]) -> None:
    try:
        config = parse_relay_config(env)
    except ConfigError as error:
        if not any(variable in str(error) for variable in env):
            raise
    else:
        assert 0 <= config.port <= 65_535
        assert config.webapi.host


def test_defaults_of_new_codes() -> None:
    plain = parse_relay_config({})
    assert (plain.pair_grants, plain.pair_ttl) == (None, None)
    narrow = parse_relay_config({"SVC_PAIR_SCOPE": "phone", "SVC_PAIR_TTL": "86400"})
    assert (narrow.pair_grants, narrow.pair_ttl) == ({"terminal": None, "tui": None}, 86_400)
    chat = parse_relay_config({"SVC_PAIR_SCOPE": "chat"}).pair_grants
    assert chat == {channel: None for channel in CHANNELS if channel != "chat"}
    for variable in ("SVC_PAIR_SCOPE", "SVC_PAIR_TTL"):
        with pytest.raises(ConfigError, match=variable):
            parse_relay_config({variable: "all"})
