from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_proto.agent.thought_tags import MARKS, MAX_TAGS, ThoughtSplitter, without_thoughts


def split(*pieces: str) -> tuple[str, str]:
    """Split an answer that arrives in these pieces; return its reasoning and its answer text."""
    answer, reasoning = list[str](), list[str]()
    splitter = ThoughtSplitter(answer)
    for place, piece in enumerate((*pieces, None)):
        if piece is not None and splitter.is_plain and not any(mark in piece for mark in MARKS):
            answer.append(piece)
            continue
        for text, is_reasoning, retracts in splitter.feed(piece) if piece is not None else splitter.finish():
            assert bool(text) is not retracts, place
            if retracts:
                reasoning += answer
                answer.clear()
            (reasoning if is_reasoning else answer).append(text)
    return "".join(reasoning), "".join(answer)


CASES = [
    ("Hello.", "", "Hello."),
    ("<think>Hm.</think>\n\nHello.", "Hm.", "Hello."),
    ("\n<think>\nHm.\n</think>Hello.", "\nHm.\n", "\nHello."),
    ("<THINKING>Hm.</THINKING>Hello.", "Hm.", "Hello."),
    ("[THINK]Hm.[/THINK]Hello.", "Hm.", "Hello."),
    ("◁think▷Hm.◁/think▷Hello.", "Hm.", "Hello."),
    ("<think></think>Hello.", "", "Hello."),
    ("Hm.</think>\n\nHello.", "Hm.", "Hello."),
    ("</think>Hello.", "", "Hello."),
    ("<think>Hm.", "Hm.", ""),
    ("<think>a</think>One.\n<think>b</think>Two.", "ab", "One.\nTwo."),
    ("<think>a <think> b </thought></think>Yes.", "a <think> b </thought>", "Yes."),
    ("Write <think> first.", "", "Write <think> first."),
    ("Close it with `</think>`.", "", "Close it with `</think>`."),
    ("```\n<think>\n</think>\n```\n", "", "```\n<think>\n</think>\n```\n"),
    ("<think>a</think>End with </think>.", "a", "End with </think>."),
    ("a < b and [x](y) <thin", "", "a < b and [x](y) <thin"),
]


@pytest.mark.parametrize(("text", "reasoning", "answer"), CASES)
def test_reasoning_and_answer(text: str, reasoning: str, answer: str) -> None:
    assert split(text) == (reasoning, answer)
    assert split(*text) == (reasoning, answer)


@given(st.sampled_from(CASES), st.lists(st.integers(0, 60), max_size=6))
def test_every_cut_gives_the_same(case: tuple[str, str, str], cuts: list[int]) -> None:
    text, reasoning, answer = case
    edges = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    assert split(*(text[left:right] for left, right in pairwise(edges))) == (reasoning, answer)


def test_number_of_tags_is_limited() -> None:
    text = "x <think>" * (MAX_TAGS + 5)
    assert split(text, text) == ("", text + text)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("<think>hm</think>\n\nYes", "Yes"),
        (" <THINK>a</Think> [think]b[/think]", ""),
        ("<think>unfinished", "<think>unfinished"),
        ("</think> Yes", "</think> Yes"),
        ("Tags are <think>so</think>", "Tags are <think>so</think>"),
        (" Yes", " Yes"),
    ],
)
def test_whole_answer_without_reasoning(text: str, left: str) -> None:
    assert without_thoughts(text) == left
