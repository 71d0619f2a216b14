from __future__ import annotations

from svc_proto.agent.interface import ModelEndpoint
from svc_proto.agent.model_profile import MAX_PROFILES, ModelProfile, ModelProfiles


def test_profile_belongs_to_address_and_model() -> None:
    profiles = ModelProfiles()
    endpoint = ModelEndpoint(base_url="http://a/v1", model="m")
    profiles.profile_of(endpoint).tools = False
    assert profiles.profile_of(ModelEndpoint(base_url="http://a/v1", model="m", api_key="other")).tools is False
    assert profiles.profile_of(ModelEndpoint(base_url="http://a/v1", model="n")).tools is True
    for number in range(MAX_PROFILES):
        profiles.profile_of(ModelEndpoint(base_url=f"http://{number}/v1", model="m"))
    assert profiles.profile_of(endpoint).tools is True


def test_description_for_people() -> None:
    assert ModelProfile().describe() == []
    profile = ModelProfile(context=4096, tools=False, images=False, tool_limit=64, short_ids=True)
    assert profile.describe() == [
        "context of 4096 tokens",
        "takes no tools",
        "takes 64 tools at most",
        "takes no pictures",
        "wants ids of nine letters or digits",
    ]


def test_copy_is_restored() -> None:
    profile = ModelProfile(context=1)
    saved = profile.copy()
    profile.context, profile.tools = 2, False
    profile.restore(saved)
    assert profile == ModelProfile(context=1)
