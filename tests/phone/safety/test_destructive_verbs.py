import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_proto.phone.safety.destructive_verbs import DEFAULT_VERBS, MAX_VERBS, DestructiveVerbs


@pytest.mark.parametrize(
    ("text", "verb"),
    [
        ("Send", "send"),
        ("SEND!", "send"),
        ("pay-now", "pay"),
        ("Re: send it", "send"),
        *((text, None) for text in ("Resend", "sender", "PayPal", "send_now", "posting", "pay2", "éSend", "")),
        ("delete, then send", "send"),  # the order of the list decides, not of the text
        ("a\nsend\nb", "send"),
    ],
)
def test_words(text: str, verb: str | None) -> None:
    assert DestructiveVerbs().first(text) == verb
    assert DestructiveVerbs().matches("Delete and SEND") == ("send", "delete")


def test_user_changes_up_to_a_size() -> None:
    verbs = DestructiveVerbs(["send", " Buy ", ""])
    assert list(verbs.verbs) == ["send", "buy"]
    assert verbs.add(" Call ")
    assert not verbs.add("call")
    assert not verbs.add(" ")
    assert list(verbs.verbs) == ["buy", "call", "send"]
    assert verbs.remove("SEND")
    assert not verbs.remove("send")
    assert list(verbs.verbs) == ["buy", "call"]
    assert verbs.first("send") is None
    verbs.reset()
    assert verbs.verbs == DEFAULT_VERBS
    verbs = DestructiveVerbs(f"verb{number}" for number in range(MAX_VERBS + 1))
    assert len(verbs) == MAX_VERBS
    assert not verbs.add("another")


@pytest.mark.parametrize(("verb", "text"), [("a.b", "a.b"), ("pay!", "Pay!"), ("$", "10 $"), ("wipe all", "Wipe all?")])
def test_a_verb_is_literal(verb: str, text: str) -> None:
    verbs = DestructiveVerbs([verb])
    assert verbs.first(text) == verb
    assert verbs.first("axb") is None


LETTERS = "paysend-_ !\u017f\u212a\xdf\u0130\u0131\u041f\u0430\u044b"  # some are equal except for case


@given(st.text(LETTERS), st.lists(st.text(LETTERS), max_size=4))
def test_fast_path_finds_the_same_verbs(text: str, words: list[str]) -> None:
    known = DestructiveVerbs(words)
    assert known.matches(text) == tuple(
        verb for verb in known.verbs if re.search(rf"(?<!\w){re.escape(verb)}(?!\w)", text, re.IGNORECASE)
    )
