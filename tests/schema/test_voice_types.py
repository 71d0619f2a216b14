import pytest

from svc_proto.schema import voice_types as shapes
from svc_proto.schema.json_schema import SchemaComponents, inline_schema_of
from svc_proto.voice.settings import OUTPUT, PROMOTION, REALTIME


def members(kind: type) -> list[str]:
    properties = inline_schema_of(kind, SchemaComponents())["properties"]
    assert isinstance(properties, dict)
    return sorted(properties)


@pytest.mark.parametrize(
    ("kind", "rules"),
    [
        (shapes.OutputSettingsChangeJson, OUTPUT),
        (shapes.SettingsChangeJson, REALTIME),
        (shapes.AgentSettingsChangeJson, {**REALTIME, **PROMOTION}),
    ],
)
def test_changeable_voice_settings_match_their_type(kind: type, rules: dict[str, object]) -> None:
    assert members(kind) == sorted([*rules, "profile"])
