from __future__ import annotations

import pytest

from svc_proto.api.start import yaml_variables


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
