import pytest

from svc_proto.voice.provider_interface import AudioDelta, SpokenTextDelta
from svc_proto.voice.realtime import answer_playback
from svc_proto.voice.realtime.actions import ConversationAction, Emit, ReadAloud
from tests.voice.realtime.dialogue import names

TEXT = "The disk is 62 percent used, and 40 gigabytes are free."


def judging() -> answer_playback.AnswerPlayback:
    """Return a playback that has requested the provider's speech for its second answer.

    Its first answer had `MAX_HELD` bytes of audio.
    """
    playback = answer_playback.AnswerPlayback("svc", lambda: "1")
    answer = answer_playback.SpokenAnswer(call_id="k1", run_id="n1", text=f"# {TEXT}", spoken=TEXT)
    playback.start(answer)
    playback.provider_request()
    playback.on_speech(AudioDelta("r1", bytes(answer_playback.MAX_HELD)))
    assert names(playback.complete("r1"))[-1] == "response.done"
    playback.start(answer)
    assert playback.provider_request() == ReadAloud(TEXT)
    return playback


@pytest.mark.parametrize(
    ("said", "answer", "so"),
    [
        ("Your disk is at 62 percent.", TEXT, True),
        ("Your disk is fine.", TEXT, False),
        ("I could not find anything about that.", TEXT, False),
        ("It is forty-two.", "42", False),
        ("It is 42.", "42", True),
        ("Yes.", "No.", True),  # no common word to compare
        ("Yes.", "Fan off.", True),  # nothing to compare either
        ("  ", "No.", False),
        ("磁盘已经用了一半", "磁盘用了百分之六十二", True),
        ("今天天气很好", "磁盘用了百分之六十二", False),
        ("This will be what they have", "this will be what they have", True),  # common words do not count
    ],
)
def test_speech_that_matches_the_answer(said: str, answer: str, so: bool) -> None:
    assert answer_playback.matches_answer(said, answer) is so


@pytest.mark.parametrize(
    ("held", "state"),
    [
        (SpokenTextDelta("r2", "62 percent of the disk.".ljust(39)), answer_playback.PlaybackState.JUDGING),
        (SpokenTextDelta("r2", "62 percent of the disk.".ljust(40)), answer_playback.PlaybackState.SPEAKING),
        (SpokenTextDelta("r2", " " * answer_playback.MAX_TEXT), answer_playback.PlaybackState.JUDGING),
        (SpokenTextDelta("r2", " " * (answer_playback.MAX_TEXT + 1)), answer_playback.PlaybackState.REJECTED),
        (AudioDelta("r2", bytes(answer_playback.MAX_HELD)), answer_playback.PlaybackState.JUDGING),
        (AudioDelta("r2", bytes(answer_playback.MAX_HELD + 1)), answer_playback.PlaybackState.REJECTED),
    ],
    ids=str,
)
def test_amount_of_speech_that_is_judged(held: answer_playback.Said, state: answer_playback.PlaybackState) -> None:
    playback = judging()
    playback.on_speech(held)
    assert playback.state is state


def test_an_empty_response_is_not_the_answer() -> None:
    playback = judging()
    assert playback.complete("r2") == []
    assert playback.state is answer_playback.PlaybackState.REJECTED


def test_pieces_of_speech_are_judged_together() -> None:
    playback, told = judging(), list[ConversationAction]()
    for piece in ("My disk ", "has 62 ", "percent of it, by the way."):
        assert (playback.state, playback.response_id, told) == (answer_playback.PlaybackState.JUDGING, None, [])
        told += playback.on_speech(SpokenTextDelta("r2", piece))
    assert (playback.state, playback.response_id) == (answer_playback.PlaybackState.SPEAKING, "r2")
    assert names(told + playback.audio_done("r2")) == ["response.started", *["response.delta"] * 3, "output_audio.done"]
    done = {"response_id": "r2", "delivery": "forced_summary", "cancelled": True}
    assert playback.give_up(cancelled=True) == [Emit("voice.response.done", done)]
    playback = judging()
    for size in (answer_playback.MAX_HELD, 1):
        assert playback.state is answer_playback.PlaybackState.JUDGING
        playback.on_speech(AudioDelta("r2", bytes(size)))
    assert playback.state is answer_playback.PlaybackState.REJECTED
