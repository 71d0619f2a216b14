"""The profiles of `auth.ok` (wire core 1.4)."""

from __future__ import annotations

import pytest

from svc_proto.commands import Level
from svc_proto.relay.profiles import profile
from tests.relay.world import RelayBook

PATH = "/home/svc/config.yaml"


def test_the_default_profile() -> None:
    assert profile("default", {}) == {
        "name": "default",
        "model": "unknown",
        "description": "",
        "system_message": None,
        "gateway_running": False,
        "has_soul": False,
        "skill_count": 0,
        "api_server_enabled": False,
        "api_server_url": None,
        "api_server_host": None,
        "api_server_port": None,
        "api_server_key_present": False,
    }


@pytest.mark.parametrize(
    ("text", "model", "description"),
    [
        (b"model: {default: m-1}\ndescription: At home", "m-1", "At home"),
        (b"model: {default: ''}", "unknown", ""),
        (b"model: {default: 5}\ndescription: 5", "unknown", ""),
        (b"model: m-1", "unknown", ""),
        (b"", "unknown", ""),
    ],
)
def test_what_the_configuration_says(text: bytes, model: str, description: str) -> None:
    book = RelayBook(files={PATH: text})
    (entry,) = book.pair().ok["profiles"]
    assert (entry["name"], entry["model"], entry["description"]) == ("default", model, description)


def test_no_configuration_is_the_bare_default() -> None:
    assert RelayBook().relay.profiles == [profile("default", {})]


@pytest.mark.parametrize("text", [b"[1]", b"\xff"])
def test_one_that_cannot_be_read_is_none(text: bytes) -> None:
    book = RelayBook(files={PATH: text})
    assert book.pair().ok["profiles"] == []
    assert book.events(Level.WARNING) == ["configuration not read"]
