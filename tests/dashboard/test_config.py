import pytest

from svc_proto.commands import Level
from svc_proto.dashboard.config import DashboardConfig, parse_dashboard_config
from svc_proto.settings import ConfigError
from tests.support.environment_variables import undocumented

PASSWORD = "correct horse"


def test_defaults_and_the_port_of_the_relay() -> None:
    config = parse_dashboard_config({})
    assert config == DashboardConfig()
    assert (config.host, config.port, config.patience) == ("127.0.0.1", 9119, 5.0)
    assert (config.relay_url, config.api_url) == ("http://127.0.0.1:8767", None)
    assert parse_dashboard_config({"SVC_RELAY_PORT": "8800"}).relay_url == "http://127.0.0.1:8800"
    assert parse_dashboard_config({"HERMES_RELAY_PORT": "8801"}).relay_url == "http://127.0.0.1:8801"
    assert parse_dashboard_config({}, relay_port=4711).relay_url == "http://127.0.0.1:4711"
    assert parse_dashboard_config({"SVC_RELAY_PORT": "8800"}, relay_port=4711).relay_url == "http://127.0.0.1:8800"
    for bad in ("eight", "0", "65536", "-1"):
        with pytest.raises(ConfigError, match="SVC_RELAY_PORT must be a whole number"):
            parse_dashboard_config({"SVC_RELAY_PORT": bad})


def test_all_variables() -> None:
    env = {
        "SVC_DASHBOARD_HOST": "0.0.0.0", "SVC_DASHBOARD_PORT": "9000", "SVC_DASHBOARD_PASSWORD": PASSWORD,
        "SVC_DASHBOARD_NAMES": " Dash.Example , box,", "SVC_DASHBOARD_LOG_LEVEL": "debug",
        "SVC_DASHBOARD_SSL_CERT": "/c", "SVC_DASHBOARD_SSL_KEY": "/k",
    }  # fmt: skip
    config = parse_dashboard_config(env, {"port": 9001, "host": None})
    assert (config.host, config.port, config.password) == ("0.0.0.0", 9001, PASSWORD)
    assert config.names == ("dash.example", "box")
    assert config.log_level is Level.DEBUG
    assert (config.ssl_cert, config.ssl_key) == ("/c", "/k")
    assert parse_dashboard_config(env, {"no_ssl": True}).ssl_cert is None
    assert PASSWORD not in repr(config)
    config = parse_dashboard_config({"SVC_DASHBOARD_PASSWORD": "8 letter", "SVC_DASHBOARD_NAMES": "a" * 253})
    assert (config.password, config.names) == ("8 letter", ("a" * 253,))
    assert undocumented(parse_dashboard_config) == set()


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_this_host_needs_no_password(host: str) -> None:
    assert parse_dashboard_config({}, {"host": host}).password == ""


@pytest.mark.parametrize(
    ("env", "problem"),
    [
        ({"SVC_DASHBOARD_HOST": "0.0.0.0"}, "listens on 0.0.0.0 needs a password: set SVC_DASHBOARD_PASSWORD"),
        ({"SVC_DASHBOARD_PASSWORD": "short 7"}, "SVC_DASHBOARD_PASSWORD must have at least 8 characters"),
        ({"SVC_DASHBOARD_NAMES": "a,b/c"}, "SVC_DASHBOARD_NAMES must hold names of this host"),
        ({"SVC_DASHBOARD_NAMES": "a" * 254}, "SVC_DASHBOARD_NAMES must hold names"),
        ({"SVC_DASHBOARD_PORT": "x"}, "SVC_DASHBOARD_PORT must be a whole number"),
    ],
)
def test_invalid_values(env: dict[str, str], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem) as caught:
        parse_dashboard_config(env)
    assert "short" not in str(caught.value)
