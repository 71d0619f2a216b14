"""Lenient JSON: strict texts are read alike, deviations by their meaning, other texts are refused."""

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_proto.basics import strict_json
from svc_proto.basics.lenient_json import JsonDeviation, loads
from svc_proto.basics.strict_json import MAX_DEPTH, MAX_STRINGS, JsonError, JsonTooLarge
from tests.basics.test_strict_json import VALUE

BOM, NOT_UTF8, SURROGATE = (JsonDeviation.BYTE_ORDER_MARK, JsonDeviation.INVALID_UTF8, JsonDeviation.LONE_SURROGATE)
CONTROL, NUMBER, REPEATED = (
    JsonDeviation.CONTROL_CHARACTER,
    JsonDeviation.UNREPRESENTABLE_NUMBER,
    JsonDeviation.REPEATED_NAME,
)


@given(VALUE)
def test_json_is_read_as_the_strict_reader_reads_it(value: object) -> None:
    assert loads(strict_json.dumps(value)) == (value, frozenset())


@pytest.mark.parametrize(
    ("text", "value", "deviations"),
    [
        (b"\xef\xbb\xbf{}", {}, {BOM}),
        ("\ufeff[1]", [1], {BOM}),
        (b'"caf\xe9"', "caf\ufffd", {NOT_UTF8}),
        (b'"\xed\xa0\xbd"', "\ufffd\ufffd\ufffd", {NOT_UTF8}),
        ('"found \\ud83d"', "found \ufffd", {SURROGATE}),
        ('"\\uD83Dx\\uDE00"', "\ufffdx\ufffd", {SURROGATE}),
        ('"\\ud83d\\ude00 \\ude00"', "\U0001f600 \ufffd", {SURROGATE}),
        ('"\ud83d"', "\ufffd", {SURROGATE}),
        ('"\ud83d\ude00"', "\U0001f600", {SURROGATE}),
        ('{"\\ud800":[{"a":"\\udfff","b":null}]}', {"\ufffd": [{"a": "\ufffd", "b": None}]}, {SURROGATE}),
        ('"\\\\ud83d" ', "\\ud83d", set()),
        ('["\\\\ud83d",NaN]', ["\\ud83d", None], {NUMBER}),
        ('"a\tb\nc"', "a\tb\nc", {CONTROL}),
        ("[NaN,Infinity,-Infinity,1e999,-1e999,1.5]", [None, None, None, None, None, 1.5], {NUMBER}),
        (f"[{'9' * 5000},12]", [None, 12], {NUMBER}),
        ('{"a":1,"b":{"a":2,"a":3},"a":4}', {"a": 4, "b": {"a": 3}}, {REPEATED}),
        (b'\xef\xbb\xbf{"a":NaN,"a":"\xff\\ud800\x01"}', {"a": "\ufffd\ufffd\x01"}, {*JsonDeviation}),
    ],
)
def test_a_deviation_is_read_by_its_meaning_and_named(
    text: bytes | str, value: object, deviations: set[JsonDeviation]
) -> None:
    assert loads(text) == (value, frozenset(deviations))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "Expecting value"),
        ('{"a":NaN,}', "line 1, column"),
        ("{'a':1}", "property name"),
        ('{"a":NaN', "delimiter"),
        ("[NaN] 2", "Extra data"),
        ("nan", "Expecting value"),
        ("[NaN," + "[" * MAX_DEPTH + "]" * MAX_DEPTH + "]", "nested deeper"),
    ],
)
def test_a_text_without_a_clear_meaning_is_refused(text: str, problem: str) -> None:
    with pytest.raises(JsonError, match=problem):
        loads(text)


@pytest.mark.parametrize(
    ("text", "limit"),
    [("[1]", 2), ("[NaN]", 4), ('"\\ud83d"', 7), (b'"\xe9"', 4), ("[NaN" + ',""' * (MAX_STRINGS + 1) + "]", None)],
)
def test_the_limits_of_the_strict_reader_hold(text: bytes | str, limit: int | None) -> None:
    with pytest.raises(JsonTooLarge):
        loads(text, max_bytes=limit)


@given(st.recursive(st.floats() | st.text(st.characters()), lambda inner: st.lists(inner), max_leaves=9))
def test_each_text_of_a_writer_that_checks_nothing_is_read_and_can_be_written(value: object) -> None:
    for text in (json.dumps(value), json.dumps(value, ensure_ascii=False)):
        found, _ = loads(text)
        assert loads(strict_json.dumps_bytes(found)) == (found, frozenset())


@given(st.binary())
def test_each_refusal_is_a_json_error(data: bytes) -> None:
    with suppress(JsonError):
        loads(data)
