from functools import partial
from typing import Any

import pytest
from attrs import evolve

from svc_proto.relay_config import RelayConfig
from svc_proto.service_clients.local_api import LocalApi, find_local_api, local_api_key, with_key, yaml_variables
from tests.cli.harness import OneShotHarness

BARE = RelayConfig(home="/h", config_path="/h/config.yaml")
CONFIG = evolve(BARE, api_key="env-key")
NAMED = evolve(CONFIG, key_in_environment=True, api_host="env", api_port=3)
FULL = {"platforms": {"api_server": {"extra": {"key": "k1", "host": " h1 ", "port": "81"}, "api_key": "k2"}}}

DOTENV = "API_SERVER_KEY=k3\nAPI_SERVER_HOST=h3\nAPI_SERVER_PORT=83"
PART = {"platforms": {"api_server": {"extra": {"key": "", "port": 0}, "api_key": "k2", "host": None}}}
MIXED = LocalApi(host="h2", port=82, key="k2")
OF_ENVIRONMENT = LocalApi(host="env", port=3, key="env-key")
RUNNING = evolve(BARE, webapi_url="https://0.0.0.0:9", webapi_inside="http://127.0.0.1:8")


def found(yaml: object = None, dotenv: str | None = None, config: RelayConfig = CONFIG, plan: Any = None) -> Any:
    files: dict[str, bytes] = {} if yaml is None else {"/h/config.yaml": b"x"}
    if dotenv is not None:
        files["/h/.env"] = dotenv.encode()
    world = OneShotHarness(
        plan or (lambda engine: find_local_api(engine, config)), files=files, compute={"yaml.load": lambda text: yaml}
    )
    return world.run()


@pytest.mark.parametrize(
    ("yaml", "dotenv", "config", "expected"),
    [
        (FULL, DOTENV, CONFIG, LocalApi(host="h3", port=83, key="k3")),
        (FULL, "A=1", CONFIG, LocalApi(host="h1", port=81, key="k1")),
        (PART, "# a comment\nexport API_SERVER_PORT='82'\nAPI_SERVER_HOST=h2\n#API_SERVER_KEY=x\n", CONFIG, MIXED),
        (FULL, DOTENV, NAMED, OF_ENVIRONMENT),
        (None, None, NAMED, OF_ENVIRONMENT),
        ({"platforms": []}, None, NAMED, OF_ENVIRONMENT),
        ([1], None, NAMED, OF_ENVIRONMENT),
        ({"platforms": {"api_server": None}}, None, NAMED, OF_ENVIRONMENT),
        (None, None, BARE, LocalApi()),
        (None, None, evolve(BARE, api_tls=True), LocalApi(tls=True)),
        (None, "API_SERVER_SSL_CERT=/c.pem", BARE, LocalApi(tls=True)),
        (FULL, "API_SERVER_SSL_CERT=", CONFIG, LocalApi(host="h1", port=81, key="k1")),
        (FULL, "API_SERVER_PORT=1", RUNNING, LocalApi(host="0.0.0.0", port=9, key="k1", tls=True)),
    ],
)
def test_sources_of_the_address_and_the_key(
    yaml: object, dotenv: str | None, config: RelayConfig, expected: LocalApi
) -> None:
    """Read each value from the environment, then `.env`, then the configuration; a running API gives its address."""
    assert found(yaml, dotenv, config) == expected


@pytest.mark.parametrize("port", [1, 65_535, "1", " 65535 "])
def test_the_first_and_the_last_port(port: object) -> None:
    assert found({"platforms": {"api_server": {"port": port}}}).port == int(str(port))


@pytest.mark.parametrize("port", ["", "x", "65536", 65_536, 0, "99999", "123456", 99_999, -1, True, 1.5, None])
def test_bad_ports_count_as_absent(port: object) -> None:
    assert found({"platforms": {"api_server": {"port": port}}}).port == 8642


def test_the_key_is_not_shown() -> None:
    assert "secret" not in repr(LocalApi(key="secret"))


@pytest.mark.parametrize(
    ("yaml", "dotenv", "key"),
    [
        (FULL, "API_SERVER_KEY=k3", "k3"),
        ({"platforms": {"api_server": {"extra": {"key": " "}, "api_key": " k2 "}}}, "API_SERVER_KEY= ", "k2"),
        ({"platforms": {"api_server": {"extra": {"key": 12345678}}}}, "A=1", "12345678"),
        ({"platforms": {"api_server": {"api_key": True}}}, "export API_SERVER_KEY='k3'\n", "k3"),
        ({"platforms": 5}, "OTHER=1", "env-key"),
        (None, None, "env-key"),
    ],
)
def test_all_lookups_find_the_same_key(yaml: Any, dotenv: str | None, key: str) -> None:
    assert found(yaml, dotenv).key == key
    assert found(yaml, dotenv, plan=lambda engine: local_api_key(engine, "/h/config.yaml", "/h", "env-key")) == key
    named = partial(local_api_key, config_path="/h/config.yaml", home="/h", configured_key="env-key", named=True)
    assert found(yaml, dotenv, plan=named) == "env-key"


def test_variables_of_a_configuration_file() -> None:
    extra = {"host": "0.0.0.0", "port": 9000, "key": "k", "cors_origins": ["http://a", "*"]}
    assert yaml_variables(
        {"platforms": {"api_server": {"extra": extra}}, "gateway": {"api_server": {"max_concurrent_runs": 0}}}
    ) == {
        "API_SERVER_HOST": "0.0.0.0",
        "API_SERVER_PORT": "9000",
        "API_SERVER_KEY": "k",
        "API_SERVER_CORS_ORIGINS": "http://a,*",
        "API_SERVER_MAX_CONCURRENT_RUNS": "0",
    }
    assert yaml_variables({"platforms": {"api_server": {"extra": {"port": True, "key": None, "host": {}}}}}) == {}


@pytest.mark.parametrize(
    ("server", "changed"),
    [
        ({"extra": {"key": 5}, "api_key": "k"}, {"extra": {"key": "new"}, "api_key": "new"}),
        ({"extra": {"key": " "}, "api_key": "k"}, {"api_key": "new"}),
        ({"extra": {"key": "k"}}, {"extra": {"key": "new"}}),
        ([], None),
    ],
)
def test_replaced_key_in_a_configuration_file(server: object, changed: object) -> None:
    expected = {"platforms": {"api_server": changed}} if changed else {}
    assert with_key({"platforms": {"api_server": server}}, "new") == expected
