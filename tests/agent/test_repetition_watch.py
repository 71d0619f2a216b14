from typing import Any

import pytest

from svc_proto.agent.completion_assembler import CompletionAssembler
from svc_proto.agent.interface import TextDelta, TurnOutcome
from svc_proto.agent.repetition_watch import RepeatedText, RepetitionWatch, repeated_length
from tests.agent.harness import AgentHarness
from tests.support.servers.model_server import DONE, ModelAnswer, calls, chunk, plain


@pytest.mark.parametrize(
    "text",
    [
        "I am sorry. " * 200,
        "a" * 601,
        "\u6211\u5f88\u62b1\u6b49\u3002" * 200,
        "".join(f"{number:05}" for number in range(400)) * 4,
        f"row{24 * ' '}" * 90,
    ],
)
def test_repeated_text_is_found(text: str) -> None:
    period = text[: len(text) - repeated_length(text)]
    assert 0 < len(period) < len(text)
    assert text == (period * len(text))[: len(text)]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "short short short",
        " " * 900,
        "".join(f"{number}, " for number in range(2_000)),
        "word " * 20 + "".join(f"line {number}\n" for number in range(300)),
        "".join(f"{number}" for number in range(900)) + "".join(f"{number}" for number in range(900)),
    ],
)
def test_other_text_is_not_taken_for_a_loop(text: str) -> None:
    assert repeated_length(text) == 0


def test_a_repetition_may_begin_within_a_period() -> None:
    assert repeated_length("Well, cd" + "abcd" * 300) == len("cd" + "abcd" * 299)


@pytest.mark.parametrize("tools", [None, ({"type": "function", "function": {"name": "x"}},)])
def test_an_answer_that_repeats_itself_is_stopped(tools: Any) -> None:
    events = (*(chunk({"content": "I am sorry. "}) for _ in range(9_000)), chunk(finish="stop"), DONE)
    world = AgentHarness(model=[ModelAnswer(events=events)])
    reason = "The answer was stopped: its text repeated itself."
    assert world.answer("Hi", tools=tools) == TurnOutcome(finish="length", reason=reason)
    assert world.host.text == f"I am sorry. \n\n[{reason}]"  # the first period
    ((asked, answered),) = world.host.usage
    assert asked > 0
    assert 100 < answered < 2_000
    world.sim.run_for(1.0)
    assert world.model.channels[0].gone


def test_thoughts_are_stopped_and_texts_compared_alone() -> None:
    thought = chunk({"reasoning_content": "I am sorry. "})
    events = (chunk({"content": "So: "}), *(thought for _ in range(900)), DONE)
    world = AgentHarness(model=[ModelAnswer(events=events)])
    world.answer("Hi")
    assert world.host.text == "So: \n\n[The answer was stopped: its text repeated itself.]"
    world = AgentHarness(model=[calls(("skills_list", {}), text="I am sorry. " * 30), plain("I am sorry. " * 30)])
    assert world.answer("Hi") == TurnOutcome()
    assert [event for event in world.host.events if isinstance(event, TextDelta)]


def test_a_retracted_text_is_not_compared() -> None:
    assembly = CompletionAssembler()
    watch = RepetitionWatch(assembly)

    def write(*pieces: str) -> RepeatedText | None:
        assembly.answer_pieces += pieces
        assembly.answer_size += sum(map(len, pieces))
        return watch.check()

    assert write(*["I am sorry. "] * 40) is None
    assembly.answer_pieces.clear()  # the text before was reasoning
    assembly.reasoning_size, assembly.answer_size = assembly.answer_size, 0
    assert write(*["I am sorry. "] * 20) is None
    assert write() is None
    assert write(*["I am sorry. "] * 40) == RepeatedText(repeated=59 * 12, length=100 * 12)
    assert write(("I am sorry. " * 17)[:200]) == RepeatedText(repeated=59 * 12 + 200, length=100 * 12 + 200)
