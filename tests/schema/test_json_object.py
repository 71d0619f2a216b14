from collections.abc import Iterator

import pytest

from svc_proto.basics import strict_json
from svc_proto.basics.errors import Refused
from svc_proto.schema.json_object import (
    JsonObject,
    NotJsonObjectError,
    as_array,
    as_object,
    as_text,
    content_text,
    error_text,
    json_object,
    json_value,
)

FOUND = JsonObject(
    {"a": "x", "blank": " ", "none": "", "i": 3, "f": 2.5, "yes": True, "o": {"p": {"q": "z"}}, "l": [1]}
)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '"x"', "5", "NaN", '{"a":1,"a":2}', b"\xff"])
def test_texts_that_are_no_object(text: bytes | str) -> None:
    assert JsonObject.parse(text) is None
    assert JsonObject.parse_or_empty(text) == {}


def test_other_json_raises_its_own_error() -> None:
    with pytest.raises(NotJsonObjectError, match="another type"):
        JsonObject.load("[]")
    with pytest.raises(strict_json.JsonError, match="longer"):
        JsonObject.load('{"a": 1}', max_bytes=4)


def test_an_object() -> None:
    found = JsonObject.parse(b'{"a": 1}')
    assert found is not None
    assert found == JsonObject.parse_or_empty('{"a": 1}') == {"a": 1}
    assert strict_json.dumps(found) == '{"a":1}'
    assert JsonObject.of(found) is found
    assert JsonObject.of({"a": 1}) == found
    assert (JsonObject.of([]), JsonObject.of(None), JsonObject.parse("{}")) == ({}, {}, {})


@pytest.mark.parametrize(
    ("value", "string", "flag", "nested", "listed"),
    [
        ("", "", None, None, None),
        (False, None, False, None, None),
        ({}, None, None, {}, None),
        ([], None, None, None, []),
        (0, None, None, None, None),
        (None, None, None, None, None),
    ],
)
def test_empty_values_are_present(value: object, string: object, flag: object, nested: object, listed: object) -> None:
    members = JsonObject({"x": value})
    assert (members.string("x"), members.boolean("x"), members.array_or_none("x")) == (string, flag, listed)
    assert (as_text(value), as_object(value), as_array(value)) == (string, nested, listed)
    assert members.object_or_none("x") == JsonObject.of_or_none(value) == nested


def test_any_value() -> None:
    assert (json_value("[1]"), json_value(b"null", 5), json_value("no"), json_value("no", 5)) == ([1], None, None, 5)
    deep = "[" * 20_000 + "]" * 20_000
    assert json_value(deep, "too deep") == json_value(deep, "too deep", ours=True) == "too deep"
    many = f'{{"a":[{"{},".join([""] * 80_000)}{{}}]}}'
    assert (JsonObject.parse(many), json_value(many, 5)) == (None, 5)
    assert JsonObject.load(many, ours=True) == JsonObject.parse(many, ours=True) == json_value(many, ours=True) != {}
    with pytest.raises(Refused, match="413 too many values"):
        json_object(many, lambda error: Refused(413, "large", f"413 {error}"))
    assert [json_object(text, ValueError) for text in ('{"a": 1}', b"{}")] == [{"a": 1}, {}]
    assert [json_object(text, ValueError) for text in ("[]", "{", "")] == [None] * 3


def test_text() -> None:
    assert (FOUND.text("a"), FOUND.text("none", "i", "a"), FOUND.text("blank")) == ("x", "x", " ")
    assert (FOUND.text(), FOUND.text("i", "o", "l", "yes", "missing")) == ("", "")


@pytest.mark.parametrize(("value", "data"), [("aGk=", b"hi"), ("", b""), ("A", b""), ("é", b""), (5, b""), (None, b"")])
def test_base64(value: object, data: bytes) -> None:
    assert JsonObject({"a": value}).binary("a") == data


def test_first_text() -> None:
    members = JsonObject({"a": " x ", "b": " "})
    assert (members.first_text("b", "a"), members.first_text("b"), members.first_text("c")) == ("x", "", "")


@pytest.mark.parametrize(
    ("value", "name"), [("x", "x"), (7, "7"), (0, "0"), ("", ""), (True, ""), (2.0, ""), (None, "")]
)
def test_an_identity(value: object, name: str) -> None:
    assert JsonObject({"id": value}).identifier("other", "id") == name


@pytest.mark.parametrize("value", [True, False, "3", None, [3], {}])
def test_values_that_are_no_number(value: object) -> None:
    assert (JsonObject({"n": value}).number("n"), JsonObject({"n": value}).integer("n")) == (None, None)


def test_numbers() -> None:
    assert (FOUND.number("i"), FOUND.number("f"), FOUND.integer("i"), FOUND.integer("f")) == (3, 2.5, 3, None)
    assert (FOUND.integer("i", 3, 3), FOUND.integer("i", 4), FOUND.integer("i", 0, 2)) == (3, None, None)
    assert (FOUND.number("f", 2.5, 2.5), FOUND.number("f", 3), FOUND.number("f", 0, 2)) == (2.5, None, None)


def test_nested_objects() -> None:
    assert FOUND.get_object("o", "p") == {"q": "z"}
    assert FOUND.get_object("o", "p").text("q") == "z"
    assert (FOUND.get_object("a"), FOUND.get_object("missing", "p"), FOUND.get_object("l")) == ({}, {}, {})


def test_arrays() -> None:
    found = JsonObject({"l": [{"a": 1}, 5, "x", ""], "e": [], "no": "x"})
    assert (found.array("no", "l"), found.array("no")) == ([{"a": 1}, 5, "x", ""], [])
    assert (found.objects("missing", "l"), found.texts("l"), found.objects("e", "l")) == ([{"a": 1}], ["x", ""], [])
    assert isinstance(found.objects("l")[0], JsonObject)


@pytest.mark.parametrize("made", [list, tuple])
def test_the_text_of_a_message(made: type) -> None:
    parts = made([{"type": "text", "text": "a"}, {"type": "image_url"}, {"text": 5}, 7, {"text": "b"}])
    assert (content_text("x"), content_text(parts), content_text(None)) == ("x", "a\nb", "")


@pytest.mark.parametrize(
    ("values", "text"),
    [
        (["plain"], "plain"),
        ([{"message": "inner"}, {"error": "inner", "message": "outer"}], "inner"),
        ([{"error": {"code": 5, "message": "inner"}}, {"detail": [{"msg": "inner"}]}], "inner"),
        ([{"errors": []}, {"code": 5}, [[[[[[["too deep"]]]]]]], None], ""),
        ([{"error": 5, "detail": "beside"}], "beside"),
        ([[[[[[["deep"]]]]]]], "deep"),
    ],
)
def test_error_text(values: list[object], text: str) -> None:
    for value in values:
        assert error_text(value) == text


def test_error_text_looks_once_into_each_object(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []

    class Names(tuple[str, ...]):
        __slots__ = ()

        def __iter__(self) -> Iterator[str]:
            looks.append(1)
            return super().__iter__()

    monkeypatch.setattr("svc_proto.schema.json_object._ERRORS", Names(("error", "message", "detail")))
    assert error_text({"error": {"code": 5}, "message": 7}) == ""
    assert len(looks) == 2
