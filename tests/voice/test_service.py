from __future__ import annotations

import pytest
from attrs import evolve

from svc_proto.engine.flow import Flow
from svc_proto.voice.principal import Principal
from svc_proto.voice.service import Voice
from svc_proto.voice.stored import OUTPUT_FAMILY, REALTIME_FAMILY
from tests.voice.plans import CONFIG, run

PHONE = Principal(kind="session", device_id="phone", bearer_hash="a")
CALLER = Principal(kind="api", bearer_hash="b", bearer="the caller's own")


def test_settings_read_the_keys_anew() -> None:
    def plan(voice: Voice) -> Flow[tuple[str, str, list[str]]]:
        output = yield from voice.settings(OUTPUT_FAMILY, "work")
        realtime = yield from voice.settings(REALTIME_FAMILY)
        return output.voice, realtime.voice, voice.keys.present("XAI_API_KEY")

    files = {
        "/h/.env": "XAI_API_KEY=k",
        "/h/profiles/work/config.yaml": {"voice_output": {"provider": "xai", "voice": "rex"}},
        "/r/config.yaml": {"realtime_voice": {"voice": "leo"}},
    }
    assert run(plan, files) == ("rex", "leo", ["XAI_API_KEY"])


def test_the_relays_own_settings() -> None:
    config = evolve(
        CONFIG,
        realtime_path="/elsewhere.yaml",
        variables={"RELAY_VOICE_OUTPUT_VOICE": "sal", "RELAY_VOICE_OUTPUT_ENABLED": "0"},
    )

    def plan(voice: Voice) -> Flow[tuple[object, ...]]:
        output = yield from voice.settings(OUTPUT_FAMILY)
        realtime = yield from voice.settings(REALTIME_FAMILY, "nobody")
        return output.voice, output.language, output.enabled, realtime.voice, realtime.scope.fallback_to_global

    files = {
        "/r/config.yaml": {"voice_output": {"voice": "leo", "language": "de"}, "realtime_voice": {"voice": "no"}},
        "/elsewhere.yaml": {"realtime_voice": {"voice": "ara"}},
    }
    assert run(plan, files, config=config) == ("sal", "de", False, "ara", True)


def test_a_profile_that_is_missing_falls_back_to_the_agents_file() -> None:
    def plan(voice: Voice) -> Flow[tuple[object, ...]]:
        scope = (yield from voice.settings(OUTPUT_FAMILY, "nobody")).scope
        return scope.config_scope, scope.profile, scope.fallback_to_global, scope.config_path

    files = {"/h/config.yaml": {"voice_output": {"voice": "rex"}}}
    assert run(plan, files) == ("global", "nobody", True, None)


@pytest.mark.parametrize(
    ("principal", "files", "credential"),
    [
        (CALLER, {"/h/.env": "API_SERVER_KEY=host"}, "the caller's own"),
        (PHONE, {"/h/.env": "API_SERVER_KEY=host"}, "host"),
        (PHONE, {}, "from the environment"),
    ],
)
def test_who_pays_at_the_api_server(principal: Principal, files: dict[str, object], credential: str) -> None:
    assert run(lambda voice: voice.api_credential(principal), files) == credential


def test_an_api_server_without_a_key_gets_none() -> None:
    assert run(lambda voice: voice.api_credential(PHONE), config=evolve(CONFIG, api_key="")) is None
