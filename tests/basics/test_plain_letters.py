"""Plain form of labels, and letters that look like others."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_proto.basics.plain_letters import has_look_alikes, plain, show_look_alikes, without_marks


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["S e n d", "\uff33\uff45\uff4e\uff44!", "\u0405\u0435nd"], "send"),
        (["Send_now"], "send now"),
        (["SendMoney"], "send money"),
        (["de\u00adlete"], "delete"),
        (["P4y n0w"], "pay now"),
        (["2 ABC"], "2 abc"),
        (
            ["\u041e\u0442\u043f\u0440\u0430\u0432\u0438\u0442\u044c"],
            "\u043e\u0442\u043f\u0440\u0430\u0432\u0438\u0442\u044c",
        ),
    ],
)
def test_plain(texts: list[str], expected: str) -> None:
    for text in texts:
        assert plain(text) == expected


@given(st.text(max_size=40))
def test_plain_has_no_case_and_single_spaces(text: str) -> None:
    found = plain(text)
    assert found == " ".join(found.split())
    assert found == found.casefold() or not found.isascii()


def test_marks_without_width() -> None:
    assert without_marks("a\u200bb\ufe00\ufe0fc\U000e0041") == "abc"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("com.ex\u0430mple.mail", "com.ex\\u0430mple.mail"),
        ("\u043f\u0440\u0438\u0432\u0435\u0442 caf\u00e9", None),
        ("a\uff42", "a\\uff42"),
        ("plain", None),
    ],
)
def test_look_alikes(text: str, shown: str | None) -> None:
    assert has_look_alikes(text) is (shown is not None)
    assert show_look_alikes(text) == (shown or text)
