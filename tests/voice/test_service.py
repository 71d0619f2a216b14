from typing import Any

import pytest
from attrs import evolve

from svc_proto.voice.principal import Principal
from svc_proto.voice.settings import SettingsScope
from svc_proto.voice.settings_store import OUTPUT_SECTION, REALTIME_SECTION, SettingsSection
from tests.voice.harness import CONFIG, OWN, PHONE, VoiceHarness

WORK = "/h/profiles/work/config.yaml"
CALLER = Principal(kind="api", bearer_hash="b", bearer="the caller's own")


FILES: dict[str, object] = {
    "/h/.env": "XAI_API_KEY=k",
    "/h/config.yaml": {"voice_output": {"voice": "rex"}},
    "/h/profiles/work/config.yaml": {"voice_output": {"provider": "xai", "voice": "eve"}},
    OWN: {"voice_output": {"voice": "leo", "language": "de"}, "realtime_voice": {"voice": "no"}},
    "/elsewhere.yaml": {"realtime_voice": {"voice": "ara"}},
}
ABSENT = SettingsScope(config_scope="global", profile="absent", fallback_to_global=True)
SAID = {"RELAY_VOICE_OUTPUT_VOICE": "sal", "RELAY_VOICE_OUTPUT_ENABLED": "0"}


@pytest.mark.parametrize(
    ("family", "profile", "voice", "scope"),
    [
        (OUTPUT_SECTION, None, "sal", SettingsScope()),
        (OUTPUT_SECTION, "absent", "rex", ABSENT),
        (OUTPUT_SECTION, "work", "eve", SettingsScope(config_scope="profile", profile="work", config_path=WORK)),
        (REALTIME_SECTION, None, "ara", SettingsScope()),
        (REALTIME_SECTION, "absent", "ara", SettingsScope(profile="absent", fallback_to_global=True)),
    ],
)
def test_settings(family: SettingsSection[Any], profile: str | None, voice: str, scope: SettingsScope) -> None:
    rig = VoiceHarness(FILES, config=evolve(CONFIG, realtime_path="/elsewhere.yaml", variables=SAID))
    (settings,) = rig.spawn(rig.voice.settings(family, profile))
    assert (settings.voice, settings.scope) == (voice, scope)
    assert rig.voice.keys.present_variables("XAI_API_KEY") == ["XAI_API_KEY"]
    assert settings.enabled is (family is REALTIME_SECTION)
    assert getattr(settings, "language", "de") == "de"


@pytest.mark.parametrize(
    ("principal", "dotenv", "key", "credential"),
    [
        (CALLER, "API_SERVER_KEY=host", "set", "the caller's own"),
        (PHONE, "API_SERVER_KEY=host", "set", "host"),
        (PHONE, "", "from the environment", "from the environment"),
        (PHONE, "", "", None),
    ],
)
def test_api_credential_of_a_principal(principal: Principal, dotenv: str, key: str, credential: str | None) -> None:
    rig = VoiceHarness({"/h/.env": dotenv}, config=evolve(CONFIG, api_key=key))
    assert rig.spawn(rig.voice.api_credential(principal)) == [credential]
