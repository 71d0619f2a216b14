import pickle
import shlex
from collections.abc import Sequence

import pytest

from svc_proto.voice.realtime.actions import ConversationAction
from svc_proto.voice.realtime.run_events import MAX_ANSWER, MAX_TOOLS, RunEventMapper
from tests.voice.realtime.dialogue import EVENTS, play, read_dialogues

DIALOGUES = read_dialogues("voice/realtime/run_events")


class RunDialogue:
    """Dialogue partner that performs lines on a `RunEventMapper`."""

    def __init__(self) -> None:
        self.story = RunEventMapper("svc", "k1", "c1")

    def do(self, line: str) -> Sequence[ConversationAction]:
        story = self.story
        last = (story.last_tool_status, story.last_tool_message, story.active_tool_name)
        match shlex.split(line):
            case ["complete"]:
                return story.complete()
            case ["cancelled"]:
                return [story.cancelled()]
            case ["crowd"]:  # fill the table of calls
                return [order for n in range(1, MAX_TOOLS) for order in self.do(f"ToolBegan {n} x")]
            case ["settle", question]:
                return story.resolve_confirmation(question)
            case ["answers", answer]:
                assert story.answer == answer
            case ["status", *words]:
                assert [*story.status()] == words
            case ["last", *words]:
                assert [str(word) for word in last] == words
            case [word, *arguments]:
                return story.map_event(EVENTS[word](*arguments))
        return []


@pytest.mark.parametrize("title", DIALOGUES)
def test_a_dialogue(title: str) -> None:
    play(DIALOGUES[title], RunDialogue())


def test_mapper_size_is_limited() -> None:
    story = RunEventMapper("svc", "k1", "c1")
    story.map_event(EVENTS["AnswerComplete"]("y" * (MAX_ANSWER + 1)))
    assert story.answer == "y" * MAX_ANSWER
    story.map_event(EVENTS["AnswerDelta"]("x" * MAX_ANSWER))
    story.map_event(EVENTS["ThoughtDelta"]("x" * MAX_ANSWER))
    size = len(pickle.dumps(story))
    for _ in range(100):
        story.map_event(EVENTS["AnswerDelta"]("more"))
        story.map_event(EVENTS["ThoughtDelta"]("more"))
    assert len(pickle.dumps(story)) == size
