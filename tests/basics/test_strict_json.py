"""Strict JSON: accepted texts, texts refused with a `JsonError` that quotes no value, limits, and written forms."""

import json
import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from svc_proto.basics import strict_json
from svc_proto.basics.strict_json import (
    MAX_ESCAPES,
    MAX_STRINGS,
    MIN_CHECKED_LENGTH,
    UNCHECKED_SIZE,
    JsonError,
    JsonTooLarge,
    canonical,
    check_limits,
    dumps,
    dumps_bytes,
    loads,
)

TEXT = st.text(st.characters(codec="utf-8"))
SCALAR = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT
VALUE = st.recursive(SCALAR, lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner), max_leaves=20)


@given(VALUE)
def test_round_trip(value: object) -> None:
    assert loads(dumps(value)) == value
    assert loads(dumps_bytes(value)) == value
    assert loads(canonical(value)) == value


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"\xff", "UTF-8"),
        (b'"\xed\xa0\x80"', "UTF-8"),
        (b"", "line 1"),
        (b"\xef\xbb\xbf{}", "Expecting value"),
        ('{"a":1,}', "line 1, column"),
        ("[1] 2", "Extra data"),
        ('"a\nb"', "control character"),
        ("NaN", "NaN"),
        ("[-Infinity]", "-Infinity"),
        ("1e999", "too large"),
        ("9" * 5000, "too many digits"),
        ('{"a":1,"b":{"c":1,"d":1,"c":1}}', "'c' twice"),
        ('"\\ud800"', "surrogate"),
        ('["\\udc00\\ud800"]', "surrogate"),
        ('"\ud800"', "surrogate"),
        ('{"\\udfff":1}', "surrogate"),
    ],
)
def test_refused(text: bytes | str, problem: str) -> None:
    with pytest.raises(JsonError, match=problem):
        loads(text)


def test_a_refusal_quotes_no_value() -> None:
    with pytest.raises(JsonError) as caught:
        loads('{"session_token": "s3cret", "session_token": "s3cret"}')
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("data", [b'"\xc3\xa9"', '"\N{LATIN SMALL LETTER E WITH ACUTE}"'])
def test_size_is_counted_in_bytes(data: bytes | str) -> None:
    assert loads(data, max_bytes=4) == "\N{LATIN SMALL LETTER E WITH ACUTE}"
    with pytest.raises(JsonError, match="longer than 3 bytes"):
        loads(data, max_bytes=3)
    check_limits('"é"', max_bytes=4)


@pytest.mark.parametrize(
    "text",
    [
        *("[" * 65 + "]" * 65, '{"a":' * 65 + "1" + "}" * 65, "[" * 100_000),
        *('["' + "]" * 100 + '",' + "[" * 64 + "]" * 65, "[[]," + "[" * 64 + "]" * 65),
        '{"a":{},"b":' + '{"a":' * 64 + "1" + "}" * 65,
    ],
)
def test_too_deep(text: str) -> None:
    with pytest.raises(JsonError, match="deeper than 64"):
        loads(text)


def test_many_brackets_are_not_depth() -> None:
    assert loads("[" * 64 + "]" * 64)
    assert loads("[[]," + "[" * 63 + "]" * 64)  # 65 of them, 64 deep
    quoted = {"a": '[[{{"\\' * 500}
    wide: list[list[int]] = [[]] * 1000
    for value in (wide, quoted, "[" * 100):
        assert loads(json.dumps(value)) == value


def test_a_depth_beyond_the_interpreter_is_an_error_too() -> None:
    with pytest.raises(JsonError, match="too deep"):
        loads("[" * 100_000, max_depth=1_000_000)


@pytest.mark.timeout(10)
@pytest.mark.parametrize(
    "text", ['"' + '\\"' * 200_000 + "[" * 65, '"\\' + '"\\' * 200_000 + "[" * 65, "[" + '"\\\\"' * 200_000 + "[" * 65]
)
def test_the_depth_scan_is_linear(text: str) -> None:
    with pytest.raises(JsonError):
        loads(text)


MANY = 8 * 1024 * 1024  # bytes of a text


@pytest.mark.parametrize(
    ("items", "problem"),
    [
        (["{},", "[],", "1,", "1e1,", "9" * 4300 + ",", "true,", "]", "truefalse"], "too many values"),
        (['{"":{}},', '{"":{},"\\ud83d\\ude00":{}},', '"",'], "strings"),
        (['"\\\\",', '"\\n' + "\\n" * 100 + '",'], "escapes"),
    ],
)
def test_costly_texts_are_refused_before_parsing(items: list[str], problem: str) -> None:
    for item in items:
        text = "[" + item * (MANY // len(item)) + "0]"
        for data in (text, text.encode()):
            with pytest.raises(JsonTooLarge, match=problem):
                loads(data)


def test_the_bounds_are_exact() -> None:
    assert loads('["' + "\\n" * MAX_ESCAPES + '"]')
    assert loads("[" + '"",' * (MAX_STRINGS - 1) + '""]')
    for text in ('["' + "\\n" * (MAX_ESCAPES + 1) + '"]', "[" + '"",' * MAX_STRINGS + '""]'):
        with pytest.raises(JsonTooLarge):
            loads(text)
    assert isinstance(loads("[" + "{}," * 75_000 + "{}]"), list)
    with pytest.raises(JsonTooLarge):
        loads("[" + "{}," * 77_000 + "{}]")


NODE = {
    "id": "com.example:id/title",
    "text": 'Settings, [more] {and} "less": here',
    "class": "android.widget.TextView",
    "bounds": {"left": 0, "top": 120, "right": 1080, "bottom": 240},
    "clickable": True,
    "enabled": False,
    "scroll": 0.5,
    "children": [],
}


@pytest.mark.parametrize(
    "value",
    [
        [NODE] * 4000,
        {"message": "A line of text, with [brackets], {braces}: and more.\n" * 150_000},
        {"content": "QUJD" * (MANY // 4)},
        {"message": "\u4e2d\u6587, " * (MANY // 8)},
        {"message": "a" * (MANY - 100) + "\N{GRINNING FACE}"},
        [0.1234567890123] * 30_000,
    ],
)
def test_usual_values_are_accepted(value: object) -> None:
    assert loads(dumps_bytes(value)) == value
    assert loads(dumps(value)) == value


def test_trusted_files_have_no_cost_limit() -> None:
    text = "[" + '{"a\\n":[]},' * 300_000 + "0]"
    with pytest.raises(JsonTooLarge):
        loads(text)
    assert len(loads(text, ours=True)) == 300_001  # type: ignore[arg-type]  # it is a list
    with pytest.raises(JsonError, match="deeper"):
        loads("[" * 65 + "]" * 65, ours=True)


@pytest.mark.parametrize("tail", ["", " " * UNCHECKED_SIZE])
@pytest.mark.parametrize(
    ("texts", "good"),
    [
        (['"\\ud83d\\ude00"', '"\\\\\\ud83d\\ude00"', '"\\\\ud83d"', '"\\ud7ff\\ue000"'], True),
        (['"\\ud83d\\\\\\ude00"', '"\\ud83d\\ud83d\\ude00"', '"\\ud83d\\ude00\\ude00"'], False),
        (['"\\uD83D\\uDE00\\uDFFF"', '"\\ud83dx\\ude00"', '"\\udbff\\u0041"'], False),
    ],
)
def test_surrogates_come_in_pairs(texts: list[str], good: bool, tail: str) -> None:
    for text in texts:
        if good:
            assert loads(text + tail) == json.loads(text)
        else:
            with pytest.raises(JsonError, match="surrogate"):
                loads(text + tail)


@given(VALUE, st.booleans())
def test_the_scan_before_parsing_ignores_strings(value: object, ascii_only: bool) -> None:
    text = json.dumps([value, "\\", '"', "]" * 70, "[" * 70], ensure_ascii=ascii_only)
    assert loads(text + " " * UNCHECKED_SIZE) == loads(text)


@given(st.binary(max_size=60) | st.text('[]{}":,\\u0dD89aefEN-1 \n\ud800', max_size=40))
def test_nothing_but_json_error_escapes(data: bytes | str) -> None:
    try:
        value = loads(data, max_depth=3)
    except JsonError:
        return
    dumps_bytes(value)


@pytest.mark.parametrize("value", [math.nan, math.inf, [-math.inf]])
def test_no_nan_is_written(value: object) -> None:
    for write in (dumps, dumps_bytes, canonical):
        with pytest.raises(ValueError, match="not JSON compliant"):
            write(value)


def test_written_forms() -> None:
    value = {"b": ["\N{LATIN SMALL LETTER E WITH ACUTE}", None], "a": 1.5}
    assert dumps(value) == '{"b":["\N{LATIN SMALL LETTER E WITH ACUTE}",null],"a":1.5}'
    assert dumps_bytes(value) == b'{"b":["\xc3\xa9",null],"a":1.5}'
    assert canonical(value) == '{"a":1.5,"b":["\\u00e9",null]}'
    assert dumps("a\ud800") == '"a\\ud800"'  # lone surrogates are escapes
    assert dumps_bytes("\udc80") == b'"\\udc80"'
    assert strict_json.quoted("\ud800" * MIN_CHECKED_LENGTH) == '"' + "\\ud800" * MIN_CHECKED_LENGTH + '"'


@pytest.mark.parametrize(
    ("what", "most", "fits"),
    [
        ("1", 250, True),  # four bytes between the strings, brackets and a comma
        ("1", 249, False),
        ("1", 120, False),
        ("true", 340, True),  # whose `e` belongs to no number
        ("false", 370, True),
        ("1e1", 710, True),
        ("1e1", 709, False),
    ],
)
def test_the_limit_of_parsing_work(what: str, most: int, fits: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strict_json, "MAX_WORK", most)
    text = f'["{"x" * strict_json.UNCHECKED_SIZE}", {what}]'
    if fits:
        assert loads(text)
    else:
        with pytest.raises(JsonError, match="too many values"):
            loads(text)


@given(st.text())
@example('"' * MIN_CHECKED_LENGTH)
@example("é" * MIN_CHECKED_LENGTH)
@example('a\\b\\\\"\r\n\t\x1b[0m\\n' + "".join(map(chr, range(0x80))) + "é€😀\u2028")
def test_quoted_equals_dumps(text: str) -> None:
    assert strict_json.quoted(text) == dumps(text)
    raw = text.encode("utf-8", "replace")
    assert b'"%s"' % strict_json.escaped(raw) == dumps_bytes(raw.decode())


@pytest.mark.parametrize("text", [" 1", "1 ", "\t[1]\n", "[1] ", " {}"])
def test_blanks_around_a_value_are_ignored(text: str) -> None:
    assert strict_json.loads(text) == json.loads(text)


def test_large_values_are_written_as_one_text() -> None:
    made, value = json.JSONEncoder(separators=(",", ":")), [*range(120_000)]  # more than many encoders return at once
    text = strict_json.encoder(made)(value)
    assert text == strict_json.dumps(value) == strict_json.dumps_bytes(value).decode() == made.encode(value)


def test_a_python_without_an_encoder_in_c_writes_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    made, value = json.JSONEncoder(separators=(",", ":")), {"a": ["\u00e9", 1.5, None]}
    fast = strict_json.encoder(made)
    monkeypatch.setattr(json.encoder, "c_make_encoder", None)
    assert strict_json.encoder(made)(value) == fast(value) == json.dumps(value, separators=(",", ":"))


def test_loads_trusted_skips_the_checks() -> None:
    assert strict_json.loads_trusted(b'[{"a":1,"a":NaN,"b":"\\ud800"}]')[0]["b"] == "\ud800"
    assert strict_json.loads_trusted(strict_json.dumps({"a": "\u00e9"})) == {"a": "\u00e9"}
