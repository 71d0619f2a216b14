import pytest

from svc_proto.machines.confirmations import MAX_OPEN, Confirmation, PendingConfirmations, choice_for


def test_confirmations_are_shown_one_at_a_time_in_order() -> None:
    asked = PendingConfirmations()
    assert asked.pop(None) is None
    first, second = Confirmation("a", "A?"), Confirmation("b", "B?")
    assert asked.add(first)
    assert not asked.add(second)
    assert not asked.add(first)
    assert asked.pop("b") is None
    assert asked.pop("a") is first
    assert asked.pop("a") is None  # its answer is on its way
    assert asked.resolve("a")
    assert asked.head is second
    assert asked.pop("") is second
    assert not asked.resolve("unknown")
    assert asked.pop(None) is None
    assert [asked.resolve("b"), asked.head] == [True, None]
    asked = PendingConfirmations()
    asked.add(Confirmation("a", "A?"))
    asked.add(Confirmation("b", "B?"))
    assert not asked.resolve("b")
    assert asked.head == Confirmation("a", "A?")
    asked = PendingConfirmations()
    for number in range(MAX_OPEN + 1):
        asked.add(Confirmation(str(number), "?"))
    for number in range(MAX_OPEN):
        assert asked.head == Confirmation(str(number), "?")
        asked.resolve(str(number))
    assert asked.head is None


@pytest.mark.parametrize(
    ("choice", "answers"),
    [
        ("once", "allow, allow_once, allowed, approve, approved, confirm, ok, okay, once, yes, y,  YES , allow once"),
        ("session", "allow_session, session, allow-session"),
        ("always", "allow_always, always"),
        ("deny", "deny, cancel, no, yes but no, "),
    ],
)
def test_only_a_clear_yes_is_accepted(choice: str, answers: str) -> None:
    assert {answer: choice_for(answer) for answer in answers.split(", ")} == dict.fromkeys(answers.split(", "), choice)
