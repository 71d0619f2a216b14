import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from svc_proto.basics.strict_json import JsonError, JsonTooLarge
from svc_proto.schema import long_member
from svc_proto.schema.long_member import LongMemberReader

NAMES = ("content_base64", "data_url")
LETTERS = st.text(st.characters(codec="utf-8"), max_size=20)
STRINGS = LETTERS | st.text('/\\"+=uA\n😀', max_size=20)
VALUES = st.none() | st.booleans() | st.integers() | STRINGS | st.lists(STRINGS, max_size=2)


@st.composite
def members(draw: st.DrawFn) -> dict[str, Any]:
    """Draw an object with one long member; other members may have the name of a long member as their value."""
    names = STRINGS.filter(lambda name: name not in NAMES)
    before, behind = (draw(st.dictionaries(names, VALUES | st.sampled_from(NAMES), max_size=2)) for _ in range(2))
    return {**before, draw(st.sampled_from(NAMES)): draw(STRINGS), **behind}


def read(text: str, cuts: list[int]) -> tuple[str, str, str]:
    """Read a text in pieces; return the name of the long member, its content and the rest."""
    reader, places = LongMemberReader(NAMES), [0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]
    content = "".join(reader.receive_text(text[start:end]) for start, end in pairwise(places))
    rest = reader.finish()
    assert len(rest) >= reader.size
    return reader.name, content, rest


@given(members(), st.booleans(), st.sampled_from((None, 1)), st.lists(st.integers(0, 400), max_size=8))
@example({"data_url": "😀"}, True, None, [*range(30)])
@example({"data_url": '\\"\n'}, False, None, [*range(30)])
def test_any_split_gives_the_values_of_the_whole_text(
    given_members: dict[str, Any], ascii_only: bool, indent: int | None, cuts: list[int]
) -> None:
    text = json.dumps({"id": 1, "params": given_members}, ensure_ascii=ascii_only, indent=indent)
    name, content, rest = read(text, cuts)
    found = json.loads(rest)
    assert (name in NAMES, found["params"][name]) == (True, "")
    found["params"][name] = content
    assert found == json.loads(text)
    assert list(found["params"]) == list(given_members)


@given(st.text('{}[]:,"\\ nt1ab', max_size=30), st.lists(st.integers(0, 30), max_size=4))
def test_a_text_without_the_member_is_the_rest(text: str, cuts: list[int]) -> None:
    assert read(text, cuts) == ("", "", text)


@pytest.mark.parametrize("end", range(1, 6))
@pytest.mark.parametrize("escape", [r"\/", r"\u002f", r"\ud83d\ude00", r"\\"])
def test_an_escape_that_is_cut(escape: str, end: int) -> None:
    text = f'{{"data_url":"a{escape}b"}}'
    place = text.index("\\") + end
    assert read(text, [place])[1] == json.loads(text)["data_url"]


@pytest.mark.parametrize("value", ['"a\nb"', r'"\q"', r'"\ud83d"', '"a'])
@pytest.mark.parametrize("cuts", [[], [*range(30)]])
def test_an_invalid_string_is_refused(value: str, cuts: list[int]) -> None:
    with pytest.raises(JsonError):
        read(f'{{"data_url":{value}}}' if value.endswith('"') else f'{{"data_url":{value}', cuts)


@pytest.mark.parametrize(
    "text",
    [
        '{"data_url": ["x"], "a": "data_url"}',
        '{"data_url":' + " " * 64 + '"x"}',
        '{"data_url":' + " " * 63 + '["x"]}',
        '{"data_url\\n": "x", "a": {"content": "data_url"}}',
    ],
)
def test_other_places_of_the_name(text: str) -> None:
    for cuts in ([], [*range(len(text))]):
        assert read(text, cuts) == ("", "", text)


def test_the_second_member_is_part_of_the_rest() -> None:
    text = '{"id":1}\n{"data_url":"x"}\n{"data_url":"y"}'
    reader = LongMemberReader(NAMES)
    assert (reader.receive_text(text), reader.line) == ("x", 1)
    assert reader.finish() == '{"id":1}\n{"data_url":""}\n{"data_url":"y"}'


def test_a_gap_before_the_long_member() -> None:
    assert read('{"data_url":' + " " * 63 + '"x"}', [])[:2] == ("data_url", "x")


def test_the_number_of_strings_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_member, "MAX_STRINGS", 2)
    reader = LongMemberReader(NAMES)
    reader.receive_text('["a","b"')
    with pytest.raises(JsonTooLarge):
        reader.receive_text(',"c"')
