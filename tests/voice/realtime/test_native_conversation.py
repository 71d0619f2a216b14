import pytest

from svc_proto.voice.realtime.voice_runs import MAX_CALLS
from tests.voice.realtime.dialogue import ConversationDialogue, play, read_dialogues, talk_of

DIALOGUES = read_dialogues("voice/realtime/turns", "voice/realtime/background")
for brand in ("svc", "hermes"):  # the example at the end of wire terminal-voice 6.6
    DIALOGUES |= read_dialogues("voice/realtime/golden_turn", brand=brand)


@pytest.mark.parametrize("title", DIALOGUES)
def test_a_dialogue(title: str) -> None:
    play(DIALOGUES[title], talk_of(title))


def test_remembered_call_ids_are_limited() -> None:
    talk = ConversationDialogue()
    talk.do("answering")
    first = "call r1 unknown k0"
    assert talk.do(first) != []
    for number in range(MAX_CALLS - 1):
        talk.do(f"call unknown status x{number}")
    assert talk.do(first) == []
    talk.do("call unknown status x")
    assert talk.do(first) != []


def test_session_is_kept_for_a_detached_client() -> None:
    talk = ConversationDialogue()
    talk.do("away")
    left = talk.now
    assert talk.broker.kept_until(30.0, 360.0) == left + 360.0
    talk.do("working")
    assert talk.broker.kept_until(30.0, 10.0) == left + 30.0
