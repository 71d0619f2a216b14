"""What the types of voice say is what its writers write, and what its settings may be is what their rules are for."""

from __future__ import annotations

import pytest

from svc_proto.relay.openapi import voice_types as shapes
from svc_proto.schema.json_schema import SchemaComponents, inline_schema_of
from svc_proto.voice.settings import OUTPUT, PROMOTION, REALTIME
from tests.relay.routes.voice_harness import VoiceBook, get


def members(kind: type) -> list[str]:
    properties = inline_schema_of(kind, SchemaComponents())["properties"]
    assert isinstance(properties, dict)
    return sorted(properties)


@pytest.mark.parametrize(
    ("kind", "rules"),
    [(shapes.OutputChange, OUTPUT), (shapes.SettingsChange, REALTIME), (shapes.AgentChange, {**REALTIME, **PROMOTION})],
)
def test_what_can_be_changed(kind: type, rules: dict[str, object]) -> None:
    assert members(kind) == sorted([*rules, "profile"])


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/voice/config", shapes.VoiceConfig),
        ("/voice/output/config", shapes.OutputSettings),
        ("/voice/realtime/config", shapes.FamilySettings),
        ("/voice/realtime-agent/config", shapes.AgentSettings),
    ],
)
def test_what_is_shown(path: str, kind: type) -> None:
    book = VoiceBook()
    assert sorted({*members(kind)} - {"updated"}) == sorted(get(book, path))
