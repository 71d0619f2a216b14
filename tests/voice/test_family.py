"""What the families of voice sessions share: who gets a session of which voice, and who may open it."""

from __future__ import annotations

import pytest
from attrs import evolve

from svc_proto.basics.errors import Refused
from svc_proto.voice.settings import Scope
from tests.voice.rig import OTHER, PHONE, Rig


def test_what_a_caller_picks(rig: Rig) -> None:
    rig.voice.output = evolve(rig.voice.output, scope=Scope(config_scope="profile", config_path="/p.yaml"))
    answer = rig.create(
        rig.output,
        provider="openai_tts",
        model="tts-1",
        voice="nova",
        sample_rate=24_000,
        language="de",
        profile="work",
    )
    assert (answer["provider"], answer["model"], answer["voice"]) == ("openai_tts", "tts-1", "nova")
    assert (answer["profile"], answer["config_scope"], answer["config_path"]) == ("work", "profile", "/p.yaml")
    client = rig.attach(rig.output, answer)
    client.say(
        "response.create",
        prompt="  **Hello** [there](http://x).  ",
        render_mode="as-is",
        expression={"emotion": "calm", "intensity": 0.5, "unknown": 1, "provider_overrides": {"speed": 2, "url": "x"}},
        provider_options={"url": "http://evil", "extra_headers": {}, "speed": 1.5, "instructions": "slowly"},
        tool_scaffold=True,
    )
    request = rig.puppet.request
    assert request is not None
    assert request.text == "Hello there."
    assert (request.model, request.voice, request.language) == ("tts-1", "nova", "de")
    assert request.expression == {"emotion": "calm", "intensity": 0.5}
    assert request.options == {
        "speed": 1.5,
        "instructions": "slowly",
        "optimize_streaming_latency": 1,
        "text_normalization": False,
    }
    started = client.events()[-1]
    assert (started["render_mode"], started["text_chars"]) == ("as-is", 28)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"provider": "nobody"}, 400),
        ({"provider": "openai_realtime"}, 400),
        ({"provider": 7}, 400),
        ({"sample_rate": "fast"}, 400),
        ({"sample_rate": 7999}, 400),
    ],
)
def test_bad_choices(rig: Rig, body: dict[str, object], status: int) -> None:
    with pytest.raises(Refused) as refused:
        rig.create(rig.output, **body)
    assert refused.value.status == status
    assert len(rig.output.sessions) == 0


def test_disabled(rig: Rig) -> None:
    rig.voice.output = evolve(rig.voice.output, enabled=False)
    with pytest.raises(Refused) as refused:
        rig.create(rig.output)
    assert refused.value.status == 404


def test_who_may_open_a_socket(rig: Rig) -> None:
    answer = rig.create(rig.output)
    with pytest.raises(Refused) as unknown:
        rig.attach(rig.output, {"session_id": "none"})
    with pytest.raises(Refused) as foreign:
        rig.attach(rig.output, answer, OTHER)
    rig.attach(rig.output, answer, evolve(PHONE, bearer_hash="c" * 64)).say("session.close")
    with pytest.raises(Refused) as over:
        rig.attach(rig.output, answer)
    with pytest.raises(Refused) as over_for_others:
        rig.attach(rig.output, answer, OTHER)
    assert [each.value.status for each in (unknown, foreign, over, over_for_others)] == [404, 403, 410, 410]


def test_a_session_that_nobody_attends(rig: Rig) -> None:
    answer = rig.create(rig.output)
    rig.after(119.9)
    assert len(rig.output.sessions) == 1
    rig.after(0.2)
    assert len(rig.output.sessions) == 0
    with pytest.raises(Refused) as refused:
        rig.attach(rig.output, answer)
    assert refused.value.status == 410
    assert rig.log(answer)[-1]["reason"] == "expired"
    rig.after(3600.0)
    with pytest.raises(Refused) as forgotten:
        rig.attach(rig.output, answer)
    assert forgotten.value.status == 404
