import pytest
from attrs import evolve

from svc_proto.basics.errors import Refused
from svc_proto.machines.voice_session import VoiceState
from svc_proto.voice.session_manager import MAX_PER_PRINCIPAL, MAX_SESSIONS
from tests.voice.dialogue import DialogueRun, play, read_dialogues
from tests.voice.harness import OTHER, PHONE, VoiceHarness

EXPRESSION = {"emotion": "calm", "intensity": 0.5, "unknown": 1, "provider_overrides": {"speed": 2, "url": "x"}}
OPTIONS = {"url": "http://evil", "extra_headers": {}, "speed": 1.5, "instructions": "slowly"}


def test_choices_of_a_caller(rig: VoiceHarness) -> None:
    path = "/h/profiles/work/config.yaml"
    rig.write(path, {"voice_output": {"provider": "stub"}})
    picked = {"provider": "openai_tts", "model": "tts-1", "voice": "nova", "profile": "work"}
    answer = rig.create(rig.output, **picked, sample_rate=24_000, language="de")
    assert answer.items() >= {**picked, "config_scope": "profile", "config_path": path}.items()
    client = rig.attach(rig.output, answer)
    said = {"prompt": "  **Hello** [there](http://x).  ", "render_mode": "as-is", "tool_scaffold": True}
    client.send_event("response.create", **said, expression=EXPRESSION, provider_options=OPTIONS)
    request = rig.scripted.request
    assert request is not None
    assert (request.text, request.model, request.voice, request.language) == ("Hello there.", "tts-1", "nova", "de")
    assert request.expression == {"emotion": "calm", "intensity": 0.5}
    settings = {"optimize_streaming_latency": 1, "text_normalization": False}
    assert request.options == {"speed": 1.5, "instructions": "slowly", **settings}
    started = client.events()[-1]
    assert (started["render_mode"], started["text_chars"]) == ("as-is", 28)


DIALOGUES = read_dialogues(
    "voice/session_manager",
    max_less_2=MAX_PER_PRINCIPAL - 2,
    max_per_principal=MAX_PER_PRINCIPAL,
    max_plus_1=MAX_PER_PRINCIPAL + 1,
)


class Stage(DialogueRun):
    def attended(self, count: str) -> None:
        """Create this number of sessions, each with a client."""
        for _ in range(int(count)):
            self.create("provider=openai_tts")
            self.rig.attach(self.family, self.answer)

    def known(self, state: str) -> None:
        """Require this state of the newest session; the id of the oldest one is known, an invented id is not."""
        table = self.family
        newest = table.sessions()[-1]
        assert (newest.life.state.value, newest.id) == (state, self.answer["session_id"])
        assert [table.is_known(name) for name in (table.sessions()[0].id, "x")] == [True, False]

    def detached(self, count: str) -> None:
        """Require this number of sessions that wait for a reconnect."""
        assert [session.life.state for session in self.family.sessions()].count(VoiceState.DETACHED) == int(count)


@pytest.mark.parametrize("title", DIALOGUES)
def test_a_dialogue(title: str) -> None:
    play(DIALOGUES[title], Stage())


def test_limit_of_all_callers(rig: VoiceHarness) -> None:
    for number in range(MAX_SESSIONS):
        rig.create(rig.output, evolve(PHONE, device_id=f"phone {number % 4}"))
    with pytest.raises(Refused) as full:
        rig.create(rig.output, OTHER)
    assert full.value.status == 503
    rig.create(rig.output, evolve(PHONE, device_id="phone 1"))
    assert len(rig.output.sessions()) == MAX_SESSIONS
