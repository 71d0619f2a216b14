import shlex
from collections.abc import Sequence

import pytest

from svc_proto.voice.realtime.actions import ConversationAction, LogEvent, ReadAloud
from svc_proto.voice.realtime.provider_responses import MAX_IGNORED, MAX_OPEN, MAX_ORPHANS, ProviderResponses
from tests.voice.realtime.dialogue import play, read_dialogues

DIALOGUES = read_dialogues(
    "voice/realtime/provider_responses",
    max_open=MAX_OPEN,
    below_max_open=MAX_OPEN - 1,
    below_max_ignored=MAX_IGNORED - 1,
    max_orphans=MAX_ORPHANS,
    above_max_orphans=MAX_ORPHANS + 1,
)


class Responses:
    """Dialogue partner for the responses of one provider."""

    def __init__(self) -> None:
        self.all = ProviderResponses()
        self.now = 0.0

    def do(self, line: str) -> Sequence[ConversationAction]:
        """Perform one line; the start of a response returns a log event that names its origin."""
        match shlex.split(line):
            case ["after", seconds]:
                self.now += float(seconds)
            case ["ask", text]:
                return self.all.request(ReadAloud(text), self.now)
            case ["give_up"]:
                self.all.give_up(self.now)
            case ["orphan", *_]:
                self.all.request(ReadAloud("x"), self.now)
                self.all.give_up(self.now)
            case ["start", name]:
                return [LogEvent(self.all.start(name, self.now).value)]
            case ["is", state, talks, *current]:
                told = (self.all.state.value, self.all.talking, self.all.current)
                assert told == (state, talks == "talking", current[0] if current else None)
            case ["due", when]:
                assert self.all.due == (None if when == "-" else float(when))
            case ["each", times, *words]:
                for number in range(int(times)):
                    self.do(" ".join(words).format(number))
            case [word, *names]:
                return getattr(self.all, word)(*names) or []
        return []


@pytest.mark.parametrize("title", DIALOGUES)
def test_a_dialogue(title: str) -> None:
    play(DIALOGUES[title], Responses())
