import json
from collections import UserDict
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from svc_proto.basics import strict_json
from svc_proto.schema.redact import REDACTED, abridge, needs_no_redaction, redact, summary, unredacted_text

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(("a", "token", "Secret", "text", "b")), inner, max_size=4)
    ),
    max_leaves=12,
)


def test_secrets_of_every_type_are_removed_at_every_level() -> None:
    value = {
        "password": "p",
        "Token": {"a": 1},
        "list": [{"SECRET": [1]}, ({"otp": None},)],
        "bearer": 5,
        "access_token": "stays",
        "x": {"y": {"bEaReR": True, "z": "stays"}},
    }
    assert redact(value) == {
        "password": "[redacted]",
        "Token": "[redacted]",
        "list": [{"SECRET": "[redacted]"}, [{"otp": "[redacted]"}]],
        "bearer": "[redacted]",
        "access_token": "stays",
        "x": {"y": {"bEaReR": "[redacted]", "z": "stays"}},
    }
    assert value["password"] == "p"


def test_texts_are_hidden_when_asked() -> None:
    value = {"text": "abc", "Body": {"a": 1}, "note": "abc"}
    assert redact(value) == value
    assert redact(value, hide_text=True) == {"text": "[3 characters]", "Body": "[hidden]", "note": "abc"}
    assert redact({"text": ""}, hide_text=True) == {"text": "[0 characters]"}


@pytest.mark.parametrize("box", [lambda inner: [inner], lambda inner: {"a": inner}])
def test_depth_is_bounded(box: Any) -> None:
    value: object = "x"
    for _ in range(5_000):
        value = box(value)
    shown = json.dumps(redact(value))
    assert "[too deep]" in shown
    assert summary(value, 10_000) == json.dumps(redact(value), separators=(",", ":"))


@settings(max_examples=50)
@given(values, st.booleans())
def test_a_summary_is_the_redacted_json(value: object, hide_text: bool) -> None:
    whole = json.dumps(redact(value, hide_text=hide_text), separators=(",", ":"))
    assert summary(value, 10**6, hide_text=hide_text) == whole
    for limit in (3, 10, len(whole) - 1, len(whole)):
        if limit >= 3:
            expected = whole if len(whole) <= limit else whole[: limit - 3] + "..."
            assert summary(value, limit, hide_text=hide_text) == expected


def test_a_summary_is_cut() -> None:
    assert summary({"k" * 50: 1}, 10) == '{"kkkkk...'
    assert summary("y" * 10**6, 10) == '"yyyyyy...'
    assert summary([1, 2, 3], 7) == "[1,2,3]"
    assert summary([1, 2, 34], 7) == "[1,2..."


def test_values_outside_of_json_are_marked() -> None:
    assert summary({"a": b"raw"}, 100) == '{"a":"[not JSON]"}'


NAMES = st.sampled_from(("a", "token", "Secret", "text", "é"))


@given(st.dictionaries(NAMES, values), st.integers(3, 300), st.booleans())
def test_abridge_returns_a_copy_for_a_complete_summary(value: dict[str, object], limit: int, hide_text: bool) -> None:
    shown, start = abridge(value, limit, hide_text=hide_text)
    assert start == summary(value, limit, hide_text=hide_text)
    if len(start) < limit:
        assert shown == redact(value, hide_text=hide_text)


def test_abridge_copies_only_the_shown_part() -> None:
    rows: list[object] = [{"a": 1}] * 10_000
    shown, start = abridge({"rows": rows, "more": rows, "words": "x" * 10_000}, 100)
    assert len(strict_json.dumps(shown)) < 250
    assert start == summary({"rows": rows}, 100)
    assert abridge("x" * 10_000, 100)[0] == "x" * 100
    assert abridge({"k" * 10_000: 1}, 100)[0] == {"k" * 100: 1}
    assert abridge([0] * 9, 5)[0] == [0] * 6
    assert abridge(dict.fromkeys("abcd", 0), 8)[0] == dict.fromkeys("abc", 0)


def test_objects_of_other_kinds_are_copied_as_well() -> None:
    assert redact(UserDict({1: UserDict(token="x")})) == {"1": {"token": "[redacted]"}}


@given(st.dictionaries(NAMES, values), st.integers(3, 90))
def test_unredacted_text_equals_the_summary(value: dict[str, object], limit: int) -> None:
    text = unredacted_text(value, limit, limit)
    if text:
        assert text == summary(value, limit) == summary(value, limit, hide_text=True) == strict_json.dumps(value)


@given(values)
def test_needs_no_redaction_equals_redact(value: object) -> None:
    if needs_no_redaction(strict_json.dumps(value)):
        assert redact(value) == redact(value, hide_text=True) == value


def test_deep_or_secret_texts_need_redaction() -> None:
    assert needs_no_redaction("[" * 32 + "]" * 32)
    assert not needs_no_redaction("[" * 33 + "]" * 33)
    assert not needs_no_redaction('{"a":' * 33 + "0" + "}" * 33)
    assert not any(needs_no_redaction(f'{{"{name}":1}}') for name in ("Otp", "BEARER", "text", "to\u212aen"))
    assert needs_no_redaction('{"texts":1}')
    assert [needs_no_redaction(f'"{"[" * count}"') for count in (61, 62)] == [True, False]


def test_of_a_large_message_nothing_is_written_twice() -> None:
    assert [unredacted_text({"a": 1}, 60, size) for size in (120, 121)] == ['{"a":1}', ""]


def test_unredacted_text_of_secret_or_escaped_values_is_empty() -> None:
    assert (
        unredacted_text({"ok": True, "app": "mail", "n": 1.5, "none": None}, 60, 44)
        == '{"ok":true,"app":"mail","n":1.5,"none":null}'
    )
    assert unredacted_text({"a": "x" * 52}, 60, 60) == f'{{"a":"{"x" * 52}"}}'
    hidden: list[dict[str, object]] = [
        {"token": "x"},
        {"Text": "x"},
        {"a": "\xe4"},
        {"a": "\x7f"},
        {"a": "x" * 60},
        {"a": "x" * 53},
        {"a": [{"otp": 1}]},
    ]
    assert [unredacted_text(value, 60, 60) for value in hidden] == [""] * len(hidden)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({"API_KEY": "k", "authorization": "Bearer x", "cookie": "c", "pin": 1234}, dict.fromkeys(
            ("API_KEY", "authorization", "cookie", "pin"), REDACTED)),
        ("https://a.example/x?token=abc&page=2#access_token=def", f"https://a.example/x?token={REDACTED}&page=2#access_token={REDACTED}"),
        ("a=b ?x=1&key=k2 end", f"a=b ?x=1&key={REDACTED} end"),
        ("broken=1", "broken=1"),
    ],
)  # fmt: skip
def test_records_leave_out_more_than_the_specification_names(value: object, shown: object) -> None:
    assert abridge({"a": value}, 1_000) == ({"a": shown}, json.dumps({"a": shown}, separators=(",", ":")))
    assert needs_no_redaction(json.dumps({"a": value})) is (value == shown)
    assert redact({"a": value}) == {"a": value}  # approvals show calls as they are, but for the five names
