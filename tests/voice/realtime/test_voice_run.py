import pytest

from svc_proto.voice.realtime.run_events import RunEventMapper
from svc_proto.voice.realtime.voice_run import FOREGROUND, MAX_SPOKEN, SILENT, BackgroundPolicy, VoiceRun
from tests.voice.realtime.dialogue import EVENTS


def begun(rules: BackgroundPolicy = FOREGROUND) -> VoiceRun:
    made = VoiceRun(story=RunEventMapper("svc", "k1", "c1"), text="df", profile=None, rules=rules)
    made.start(10.0, spoke=False)
    made.on_due(10.75, "idle")
    return made


@pytest.mark.parametrize(
    ("text", "spoken", "structured"),
    [
        ("It is *fine*.", "It is *fine*.", False),
        ('{"used": 62}', '{"used": 62}', True),
        ("[1]", "[1]", True),
        ("{not json", "{not json", False),
        ("", SILENT, False),
        ("x" * 2000, "x" * MAX_SPOKEN, False),
    ],
)
def test_answer_of_a_run(text: str, spoken: str, structured: bool) -> None:
    made = begun()
    made.story.map_event(EVENTS["AnswerDelta"](text))
    answer = made.finish(str)
    assert (answer.spoken, answer.structured) == (spoken, structured)
    assert made.due is None
    assert not made.live


def test_progress_is_spoken_only_when_idle() -> None:
    made = begun(BackgroundPolicy(progress_after=5, progress_repeat=2))
    beats = [
        made.send_progress(made.began + elapsed, floor)
        for elapsed, floor in ((4.5, "idle"), (5, "provider_speaking"), (5, "idle"), (6.5, "idle"), (7, "idle"))
    ]
    assert [beat.fields["should_speak"] for beat in beats] == [False, False, True, False, True]
    made = begun(BackgroundPolicy(progress_after=5, progress_repeat=0))  # 0: the progress is not read out again
    beats = [made.send_progress(made.began + elapsed, "idle") for elapsed in (5, 6, 100)]
    assert [beat.fields["should_speak"] for beat in beats] == [True, False, False]
