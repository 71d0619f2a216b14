import json

from svc_proto.schema.model_profile import DEFAULT_PROFILE, MAX_SIZE, ModelProfile, encode_profiles, parse_profiles


def test_file_keeps_what_was_learned() -> None:
    key = ("http://a/v1", "m", 4096)
    profile = ModelProfile(context=2048, tools=False, output_member="max_completion_tokens", learned_at=5.0)
    stored = encode_profiles({key: profile, ("http://b/v1", "m", None): DEFAULT_PROFILE})
    assert parse_profiles(stored) == {key: profile}
    learned = profile.copy()
    profile.density, profile.probed = 2.0, True
    assert parse_profiles(encode_profiles({key: profile})) == {key: learned}


def test_copy_is_restored() -> None:
    profile = ModelProfile(context=1)
    saved = profile.copy()
    profile.context, profile.tools = 2, False
    profile.restore(saved)
    assert profile == ModelProfile(context=1)


def test_invalid_members_are_left_out() -> None:
    rows = [
        {"base_url": "http://a/v1", "context": True, "tool_limit": MAX_SIZE + 1, "images": 0, "density": 9},
        {"model": "no address"},
        5,
    ]
    found = parse_profiles(json.dumps({"profiles": rows}))
    assert found == {("http://a/v1", "", None): ModelProfile(learned_at=0.0)}


def test_description_for_people() -> None:
    assert ModelProfile().describe() == []
    profile = ModelProfile(
        context=4096, tools=False, images=False, tool_limit=64, short_ids=True, reasoning_everywhere=True
    )
    assert profile.describe() == [
        "context of 4096 tokens",
        "takes no tools",
        "takes 64 tools at most",
        "takes no pictures",
        "wants its reasoning back with each message",
        "wants ids of nine letters or digits",
    ]
