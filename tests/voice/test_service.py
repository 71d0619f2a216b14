from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from svc_proto.voice.principal import Principal
from svc_proto.voice.settings import Scope
from svc_proto.voice.settings_store import OUTPUT_FAMILY, REALTIME_FAMILY, SectionFamily
from tests.voice.harness import CONFIG, OWN, PHONE, Rig

WORK = "/h/profiles/work/config.yaml"
CALLER = Principal(kind="api", bearer_hash="b", bearer="the caller's own")


FILES: dict[str, object] = {
    "/h/.env": "XAI_API_KEY=k",
    "/h/config.yaml": {"voice_output": {"voice": "rex"}},
    "/h/profiles/work/config.yaml": {"voice_output": {"provider": "xai", "voice": "eve"}},
    OWN: {"voice_output": {"voice": "leo", "language": "de"}, "realtime_voice": {"voice": "no"}},
    "/elsewhere.yaml": {"realtime_voice": {"voice": "ara"}},
}
SAID = {"RELAY_VOICE_OUTPUT_VOICE": "sal", "RELAY_VOICE_OUTPUT_ENABLED": "0"}


@pytest.mark.parametrize(
    ("family", "profile", "voice", "scope"),
    [
        (OUTPUT_FAMILY, None, "sal", Scope()),
        (OUTPUT_FAMILY, "nobody", "rex", Scope(config_scope="global", profile="nobody", fallback_to_global=True)),
        (OUTPUT_FAMILY, "work", "eve", Scope(config_scope="profile", profile="work", config_path=WORK)),
        (REALTIME_FAMILY, None, "ara", Scope()),
        (REALTIME_FAMILY, "nobody", "ara", Scope(profile="nobody", fallback_to_global=True)),
    ],
)
def test_settings(family: SectionFamily[Any], profile: str | None, voice: str, scope: Scope) -> None:
    """A profile's lie over the relay's own; the keys are read anew, too."""
    rig = Rig(FILES, config=evolve(CONFIG, realtime_path="/elsewhere.yaml", variables=SAID))
    (settings,) = rig.spawn(rig.voice.settings(family, profile))
    assert (settings.voice, settings.scope) == (voice, scope)
    assert rig.voice.keys.present("XAI_API_KEY") == ["XAI_API_KEY"]
    assert settings.enabled is (family is REALTIME_FAMILY)
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
def test_who_pays_at_the_api_server(principal: Principal, dotenv: str, key: str, credential: str | None) -> None:
    rig = Rig({"/h/.env": dotenv}, config=evolve(CONFIG, api_key=key))
    assert rig.spawn(rig.voice.api_credential(principal)) == [credential]
