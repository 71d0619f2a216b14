"""What the families of voice sessions share: who gets a session of which voice, and who may open it."""

from __future__ import annotations

import pytest
from attrs import evolve

from svc_proto.voice.settings import Scope
from tests.voice.dialogue import Play, dialogues, play
from tests.voice.rig import Rig

EXPRESSION = {"emotion": "calm", "intensity": 0.5, "unknown": 1, "provider_overrides": {"speed": 2, "url": "x"}}
OPTIONS = {"url": "http://evil", "extra_headers": {}, "speed": 1.5, "instructions": "slowly"}


def test_what_a_caller_picks(rig: Rig) -> None:
    rig.voice.output = evolve(rig.voice.output, scope=Scope(config_scope="profile", config_path="/p.yaml"))
    picked = {"provider": "openai_tts", "model": "tts-1", "voice": "nova", "profile": "work"}
    answer = rig.create(rig.output, **picked, sample_rate=24_000, language="de")
    assert answer.items() >= {**picked, "config_scope": "profile", "config_path": "/p.yaml"}.items()
    client = rig.attach(rig.output, answer)
    said = {"prompt": "  **Hello** [there](http://x).  ", "render_mode": "as-is", "tool_scaffold": True}
    client.say("response.create", **said, expression=EXPRESSION, provider_options=OPTIONS)
    request = rig.puppet.request
    assert request is not None
    assert (request.text, request.model, request.voice, request.language) == ("Hello there.", "tts-1", "nova", "de")
    assert request.expression == {"emotion": "calm", "intensity": 0.5}
    settings = {"optimize_streaming_latency": 1, "text_normalization": False}
    assert request.options == {"speed": 1.5, "instructions": "slowly", **settings}
    started = client.events()[-1]
    assert (started["render_mode"], started["text_chars"]) == ("as-is", 28)


DIALOGUES = """
bad choices
    create provider=nobody -> refused(status=400)
    create provider=openai_realtime -> refused(status=400)
    create provider=7 -> refused(status=400)
    create sample_rate=fast -> refused(status=400)
    create sample_rate=7999 -> refused(status=400)
    are 0
disabled
    set output enabled=false
    create -> refused(status=404)
who may open a socket
    create
    A comes other -> refused(status=403)
    A comes again
    A says session.close
    B comes -> refused(status=410)
    B comes other -> refused(status=410)
    forget
    B comes -> refused(status=404)
a session that nobody attends
    create
    after 119.9
    are 1
    after 0.2
    are 0
    A comes -> refused(status=410)
    reason expired
    after 3600
    A comes -> refused(status=404)
"""


@pytest.mark.parametrize(("title", "lines"), dialogues(DIALOGUES).items())
def test_a_dialogue(title: str, lines: list[str]) -> None:
    play(lines, Play())
