"""Profiles of the agent: those in `auth.ok` (wire core 1.4), and the message after a change (1.8)."""

import pytest

from svc_proto.commands import Level
from svc_proto.relay.agent_profiles import profile_entry
from svc_proto.relay_config import RelayConfig
from tests.relay.harness import RelayHarness

PATH = "/home/svc/config.yaml"


def test_the_default_profile() -> None:
    entry = profile_entry("default", {})
    assert (entry["name"], entry["model"], entry["description"]) == ("default", "unknown", "")
    assert not any(entry[name] for name in ("gateway_running", "has_soul", "skill_count", "api_server_enabled"))
    assert RelayHarness().relay.profiles == [entry]


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
def test_profile_of_the_configuration(text: bytes, model: str, description: str) -> None:
    book = RelayHarness(files={PATH: text})
    (entry,) = book.pair().ok["profiles"]
    assert (entry["name"], entry["model"], entry["description"]) == ("default", model, description)


@pytest.mark.parametrize("text", [b"[1]", b"\xff"])
def test_unreadable_profile_is_omitted(text: bytes) -> None:
    book = RelayHarness(files={PATH: text})
    assert book.pair().ok["profiles"] == []
    assert book.events(Level.WARNING) == ["profile not read"]


def test_profiles_are_listed_and_changes_pushed_within_30_seconds(book: RelayHarness) -> None:
    phone, desktop = book.pair().phone, book.pair(client_surface="desktop").phone
    book.after(30.0)
    assert phone.envelopes() == desktop.envelopes() == []  # unchanged
    book.disk.put(PATH, b"model: {default: m-2}")
    book.after(30.0)
    for client in (phone, desktop):
        pushed = client.only()
        assert (pushed["channel"], pushed["type"]) == ("pairing", "profiles.updated")
        assert pushed["payload"]["profiles"] == pushed["profiles"] == book.relay.profiles
        assert pushed["profiles"][0]["model"] == "m-2"
    book = RelayHarness(
        files={PATH: b"model: {default: m-1}", "/home/svc/profiles/work/config.yaml": b"model: {default: w}"}
    )
    book.profile_folders = ["default", "empty", "work"]
    book.after(30.0)
    names = [(entry["name"], entry["model"]) for entry in book.relay.profiles]
    assert names == [("default", "m-1"), ("empty", "unknown"), ("work", "w")]


def test_profiles_are_not_polled_when_off_or_stopped(book: RelayHarness) -> None:
    book = RelayHarness(RelayConfig(config_path=PATH, profile_discovery=False))
    book.profile_folders = ["work"]
    book.disk.put(PATH, b"model: {default: m-2}")
    book.after(120.0)
    assert book.relay.profiles == [profile_entry("default", {})]
    book = RelayHarness()
    phone = book.pair().phone
    book.stop(60.0)
    book.disk.put(PATH, b"model: {default: m-2}")
    book.after(30.0)
    assert book.relay.profiles == [profile_entry("default", {})]
    assert "profiles.updated" not in repr(phone.envelopes())
