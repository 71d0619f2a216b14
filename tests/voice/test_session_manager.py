import pytest
from attrs import evolve

from svc_proto.basics.errors import Refused
from svc_proto.voice.session_manager import MAX_PER_PRINCIPAL, MAX_SESSIONS
from tests.voice.dialogue import DialogueRun, dialogues, play
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


DIALOGUES = f"""
disabled
    set voice_output enabled=false
    create -> refused(status=404)
who may open a socket
    create
    A comes other -> refused(status=403)
    A comes again
    A puts session.close
    B comes -> refused(status=410)
    B comes other -> refused(status=410)
    forget
    B comes -> refused(status=404)
a session without a client
    create
    after 119.9
    are 1
    after 0.2
    are 0
    A comes -> refused(status=410)
    reason expired
    after 3600
    A comes -> refused(status=404)
a session without a client makes room
    attended {MAX_PER_PRINCIPAL - 2}
    spoken
    A leaves
    create
    create
    are {MAX_PER_PRINCIPAL}
    known fresh
    A comes
    create
    scripted stopped=true
    A comes
    create -> refused(status=503, code=too_many_sessions)
    create other
    are {MAX_PER_PRINCIPAL + 1}
a token that is accepted no more
    create
    A comes
    create other
    revoke -> closed(code=1008, reason=revoked)
    are 1 fresh
a token of the lab that is accepted no more
    create lab
    revoke
    are 0
another token of the device that is accepted no more
    create provider=openai_tts
    A comes again
    B comes again
    C comes
    A puts response.create text=Hello.
    revoke again -> closed(code=1008) B:closed(code=1008)
    scripted stopped=false
    C puts session.resume resume_token=$token -> session.resumed replay.started session.ready response.started
        -> session.detached replay.done
"""


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


@pytest.mark.parametrize(("title", "lines"), dialogues(DIALOGUES).items())
def test_a_dialogue(title: str, lines: list[str]) -> None:
    play(lines, Stage())


def test_limit_of_all_callers(rig: VoiceHarness) -> None:
    for number in range(MAX_SESSIONS):
        rig.create(rig.output, evolve(PHONE, device_id=f"phone {number % 4}"))
    with pytest.raises(Refused) as full:
        rig.create(rig.output, OTHER)
    assert full.value.status == 503
    rig.create(rig.output, evolve(PHONE, device_id="phone 1"))
    assert len(rig.output.sessions()) == MAX_SESSIONS
