"""Questions of a run: one at a time, the oldest first, and what counts as a yes."""

from __future__ import annotations

import pytest

from svc_proto.machines.confirmations import MAX_OPEN, Confirmations, Question, choice_for


def test_one_question_at_a_time() -> None:
    asked = Confirmations()
    assert asked.take(None) is None
    first, second = Question("a", "A?"), Question("b", "B?")
    assert asked.ask(first)
    assert not asked.ask(second)
    assert not asked.ask(first)
    assert asked.take("b") is None
    assert asked.take("a") is first
    assert asked.take("a") is None  # its answer is on its way
    assert asked.settle("a")
    assert asked.head is second
    assert asked.take("") is second
    assert not asked.settle("unknown")
    assert asked.take(None) is None
    assert asked.settle("b")
    assert asked.head is None


def test_a_later_question_may_go_first() -> None:
    asked = Confirmations()
    asked.ask(Question("a", "A?"))
    asked.ask(Question("b", "B?"))
    assert not asked.settle("b")
    assert asked.head == Question("a", "A?")


def test_too_many_questions() -> None:
    asked = Confirmations()
    for number in range(MAX_OPEN + 1):
        asked.ask(Question(str(number), "?"))
    for number in range(MAX_OPEN):
        assert asked.head == Question(str(number), "?")
        asked.settle(str(number))
    assert asked.head is None


@pytest.mark.parametrize(
    ("answer", "choice"),
    [
        ("allow", "once"),
        (" YES ", "once"),
        ("allow once", "once"),
        ("allow-session", "session"),
        ("always", "always"),
        ("deny", "deny"),
        ("cancel", "deny"),
        ("no", "deny"),
        ("", "deny"),
        ("yes but no", "deny"),
    ],
)
def test_only_a_clear_yes_is_one(answer: str, choice: str) -> None:
    assert choice_for(answer) == choice


def test_every_word_that_counts() -> None:
    words = {
        "once": "allow allow_once allowed approve approved confirm ok okay once yes y",
        "session": "allow_session session",
        "always": "allow_always always",
    }
    for choice, said in words.items():
        assert {choice_for(word) for word in said.split()} == {choice}
