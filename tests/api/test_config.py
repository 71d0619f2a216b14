from typing import Any

import pytest
from attrs import evolve

from svc_proto.agent.tool_selection import ToolPolicy
from svc_proto.api.config import ApiConfig, model_url_source, parse_api_config
from svc_proto.basics.brand import HERMES
from svc_proto.commands import Level
from svc_proto.settings import ConfigError, RedisAddress
from tests.support.environment_variables import undocumented


def test_defaults() -> None:
    assert parse_api_config({}) == ApiConfig()


@pytest.mark.parametrize(
    ("variable", "text", "value"),
    [
        ("API_SERVER_ENABLED", "false", {"enabled": False}),
        ("API_SERVER_HOST", "127.0.0.9", {"host": "127.0.0.9"}),
        ("API_SERVER_PORT", "1", {"port": 1}),
        ("API_SERVER_KEY", "sixteen--letters", {"key": "sixteen--letters"}),
        ("API_SERVER_CORS_ORIGINS", "https://a.b/, http://b:1", {"cors_origins": ("https://a.b", "http://b:1")}),
        ("API_SERVER_MODEL_NAME", "home", {"model_name": "home"}),
        ("API_SERVER_LOG_LEVEL", "debug", {"log_level": Level.DEBUG}),
        ("API_SERVER_MAX_CONCURRENT_RUNS", "0", {"max_concurrent_runs": 0}),
        ("SVC_HOME", "/h", {"home": "/h", "config_path": "/h/config.yaml"}),
        ("SVC_CONFIG", "/c.yaml", {"config_path": "/c.yaml"}),
        ("SVC_BRAND", "hermes", {"brand": HERMES}),
        ("SVC_APPROVAL_TIMEOUT_SECONDS", "5", {"approval_timeout": 5.0}),
        ("SVC_MAX_ITERATIONS", "3", {"max_model_calls": 3}),
        ("SVC_MAX_TOKENS", "9", {"max_tokens": 9}),
        ("SVC_MODEL_BASE_URL", "http://127.0.0.1:9/v1/", {"model_base_url": "http://127.0.0.1:9/v1"}),
        ("SVC_MODEL", "m", {"model": "m"}),
        ("SVC_MODEL_API_KEY", "secret", {"model_api_key": "secret"}),
        ("SVC_MODEL_CONTEXT", "4096", {"model_context": 4_096}),
        ("SVC_TOOLS", "few, Phone memory", {"tools": ToolPolicy(few=True, only=("phone", "memory"))}),
        ("SVC_RELAY_URL", "https://relay.example", {"relay_url": "https://relay.example"}),
        ("SVC_RELAY_TOKEN", "t", {"relay_token": "t"}),
    ],
)
def test_each_variable(variable: str, text: str, value: dict[str, Any]) -> None:
    assert parse_api_config({variable: text}) == evolve(ApiConfig(), **value)


@pytest.mark.parametrize(
    ("text", "choice"),
    [
        ("", ToolPolicy()),
        ("auto", ToolPolicy()),
        ("auto,phone", ToolPolicy(only=("phone",))),
        ("all", ToolPolicy(few=False)),
        ("few", ToolPolicy(few=True)),
        ("none", ToolPolicy(only=())),
    ],
)
def test_tool_choices(text: str, choice: ToolPolicy) -> None:
    assert parse_api_config({"SVC_TOOLS": text}).tools == choice


@pytest.mark.parametrize("text", ["phones", "all few", "none phone", "few,none"])
def test_invalid_tool_choices(text: str) -> None:
    with pytest.raises(ConfigError, match="SVC_TOOLS must be auto, all or few"):
        parse_api_config({"SVC_TOOLS": text})


@pytest.mark.parametrize(
    ("environment", "place"),
    [({"SVC_MODEL_BASE_URL": "http://h"}, "the environment"), ({"SVC_MODEL_BASE_URL": " "}, ".env"), ({}, ".env")],
)
def test_the_place_of_the_model_address(environment: dict[str, str], place: str) -> None:
    assert model_url_source(environment) == f"SVC_MODEL_BASE_URL in {place}"


def test_tls() -> None:
    env = {"API_SERVER_SSL_CERT": "/c", "API_SERVER_SSL_KEY": "/k"}
    assert parse_api_config(env) == ApiConfig(ssl_cert="/c", ssl_key="/k")
    assert parse_api_config(env).tls
    assert not parse_api_config(env, {"no_ssl": True}).tls
    for one in env:
        with pytest.raises(ConfigError, match="API_SERVER_SSL_CERT and API_SERVER_SSL_KEY must be set together"):
            parse_api_config({one: "/x"})


def test_an_option_wins_and_the_home_decides_where_the_config_is() -> None:
    config = parse_api_config({"API_SERVER_PORT": "1", "HERMES_HOME": "/old"}, {"port": 2, "host": None})
    assert (config.port, config.host, config.config_path) == (2, "127.0.0.1", "/old/config.yaml")
    assert parse_api_config({"API_SERVER_CORS_ORIGINS": "*"}).cors_origins == ("*",)


def test_origins_as_browsers_write_them() -> None:
    given = "HTTPS://A.example:443/, http://b:80, https://b:80, App://Obsidian.md/, vscode-webview://*"
    origins = ("https://a.example", "http://b", "https://b:80", "app://obsidian.md", "vscode-webview://*")
    assert parse_api_config({"API_SERVER_CORS_ORIGINS": given}).cors_origins == origins


@pytest.mark.parametrize(
    "origin", ["a", "ftp://a", "file://", "https://a/path", "https://a?q", "app://a/b", "app://a@b", "app://", "null"]
)
def test_invalid_origins(origin: str) -> None:
    with pytest.raises(ConfigError, match="API_SERVER_CORS_ORIGINS must hold origins"):
        parse_api_config({"API_SERVER_CORS_ORIGINS": f"https://ok.example,{origin}"})


@pytest.mark.parametrize("key", ["a b", "\u00e9", "a\x01"])
def test_unprintable_key_is_refused_and_not_quoted(key: str) -> None:
    with pytest.raises(ConfigError, match="printable ASCII") as caught:
        parse_api_config({"API_SERVER_KEY": key})
    assert key not in str(caught.value)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "server.example"])
def test_other_hosts_may_not_guess_at_a_short_key(host: str) -> None:
    with pytest.raises(ConfigError, match="at least 16 characters") as caught:
        parse_api_config({"API_SERVER_KEY": "fifteen-letters"}, {"host": host})
    assert "fifteen" not in str(caught.value)
    assert parse_api_config({"API_SERVER_KEY": "sixteen--letters"}, {"host": host}).key == "sixteen--letters"
    assert parse_api_config({}, {"host": host}).key == ""  # an empty key is an explicit choice


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.9", "::1", "localhost"])
def test_on_this_host_a_short_key_will_do(host: str) -> None:
    assert parse_api_config({"API_SERVER_KEY": "k"}, {"host": host}).key == "k"


def test_node_requires_redis_url_node_url_and_database() -> None:
    meeting = {"SVC_CLUSTER_URL": "redis://redis.lan/2"}
    address = {"API_SERVER_NODE_URL": "http://10.0.0.1:8642/api/"}
    store = {"SVC_DATABASE_URL": "postgresql://svc@db.lan/svc"}
    node = parse_api_config({**meeting, **address, **store})
    assert (node.cluster, node.node_url) == (RedisAddress("redis.lan", db=2), "http://10.0.0.1:8642/api")
    for alone in ({}, meeting, address, {**meeting, **store}):
        assert (parse_api_config(alone).cluster, parse_api_config(alone).node_url) == (None, "")
    with pytest.raises(
        ConfigError, match="API_SERVER_NODE_URL needs SVC_DATABASE_URL: the nodes of a service have one"
    ):
        parse_api_config({**meeting, **address})


def test_each_variable_is_in_some_document() -> None:
    assert undocumented(parse_api_config) == set()
