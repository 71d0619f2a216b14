from __future__ import annotations

from svc_proto.engine.flow import Flow
from svc_proto.voice.service import Voice
from svc_proto.voice.setup import build_voice
from tests.voice.plans import CONFIG, world_of


def test_everything_is_there_and_nothing_was_asked() -> None:
    def plan(engine: object) -> Flow[Voice]:
        parts = build_voice(engine, CONFIG)  # type: ignore[arg-type]  # the world's own
        assert list(parts.sessions) == ["output", "lab", "agent"]
        assert parts.voice.providers is not None
        yield from ()
        return parts.voice

    world = world_of(plan)
    assert world.run().config is CONFIG
    assert world.asked == []
