from __future__ import annotations

import pytest

from svc_proto.voice.credential import host_api_key
from tests.voice.plans import world_of

SERVER = {"extra": {"key": "k1"}, "api_key": "k2"}


def key(yaml: object = None, dotenv: str | None = None) -> str:
    files = {} if yaml is None else {"/h/config.yaml": yaml}
    if dotenv is not None:
        files["/h/.env"] = dotenv
    return world_of(lambda engine: host_api_key(engine, "/h/config.yaml", "/h", "env"), files).run()


@pytest.mark.parametrize(
    ("yaml", "dotenv", "found"),
    [
        ({"platforms": {"api_server": SERVER}}, "API_SERVER_KEY=k3", "k1"),
        ({"platforms": {"api_server": {**SERVER, "extra": {"key": ""}}}}, "API_SERVER_KEY=k3", "k2"),
        ({"platforms": {"api_server": {"api_key": 5}}}, "export API_SERVER_KEY='k3'\n", "k3"),
        ({"platforms": 5}, "OTHER=1", "env"),
        ("[broken", None, "env"),
        (None, None, "env"),
    ],
)
def test_the_chain(yaml: object, dotenv: str | None, found: str) -> None:
    assert key(yaml, dotenv) == found
