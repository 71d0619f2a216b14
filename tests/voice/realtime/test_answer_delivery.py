import pytest

from tests.voice.realtime.dialogue import play, read_dialogues, talk_of

DIALOGUES = read_dialogues("voice/realtime/answer_delivery", "voice/realtime/progress")


@pytest.mark.parametrize("title", DIALOGUES)
def test_a_dialogue(title: str) -> None:
    play(DIALOGUES[title], talk_of(title))
