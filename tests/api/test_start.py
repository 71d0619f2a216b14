from __future__ import annotations

import pytest

from svc_proto.api.start import env_file_variables, yaml_variables


def test_a_configuration_file() -> None:
    found = {
        "platforms": {
            "api_server": {"extra": {"host": "0.0.0.0", "port": 9000, "key": "k", "cors_origins": ["http://a", "*"]}}
        },
        "gateway": {"api_server": {"max_concurrent_runs": 0}},
    }
    assert yaml_variables(found) == {
        "API_SERVER_HOST": "0.0.0.0",
        "API_SERVER_PORT": "9000",
        "API_SERVER_KEY": "k",
        "API_SERVER_CORS_ORIGINS": "http://a,*",
        "API_SERVER_MAX_CONCURRENT_RUNS": "0",
    }


@pytest.mark.parametrize(
    "found",
    [{}, {"platforms": []}, {"platforms": {"api_server": {"extra": {"port": True, "key": None, "host": {"a": 1}}}}}],
)
def test_files_that_say_nothing(found: dict[str, object]) -> None:
    assert yaml_variables(found) == {}


def test_the_other_place_of_the_key() -> None:
    assert yaml_variables({"platforms": {"api_server": {"api_key": "k"}}}) == {"API_SERVER_KEY": "k"}


def test_an_env_file() -> None:
    text = """
# API_SERVER_PORT=1
export API_SERVER_KEY="a b"
 API_SERVER_HOST = ::1
SVC_MODEL='m'
SVC_MODEL_API_KEY=
SVC_BRAND=hermes
SVC_HOME=/x
RELAY_PORT=1
API_SERVER_PORT
API_SERVER_LOG_LEVEL='
"""
    assert env_file_variables(text) == {
        "API_SERVER_KEY": "a b",
        "API_SERVER_HOST": "::1",
        "SVC_MODEL": "m",
    }
