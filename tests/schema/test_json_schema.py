from typing import Annotated, Any, Literal, NotRequired, Required, TypedDict

import pytest
from attrs import frozen

from svc_proto.schema.json_object import JsonObject
from svc_proto.schema.json_schema import REFERENCE, SchemaComponents, inline_schema_of, schema_keywords, schema_of


class Leaf(TypedDict):
    """A leaf,
    of two lines."""

    name: str
    size: NotRequired[Annotated[float | None, schema_keywords(minimum=0), "cm"]]
    leaves: NotRequired[list["Leaf"]]


class Asked(TypedDict, total=False):
    which: Required[str]
    more: bool


class Bare(TypedDict, total=False):
    more: bool


class Branch(Leaf):
    """A branch."""

    bark: bool


@frozen
class Fruit:
    """A fruit."""

    ripe: bool
    seeds: int = 0


@pytest.mark.parametrize(
    ("kind", "schema"),
    [
        (str, {"type": "string"}),
        (int, {"type": "integer"}),
        (float, {"type": "number"}),
        (bool, {"type": "boolean"}),
        (type(None), {"type": "null"}),
        (object, {}),
        (Any, {}),
        (str | None, {"type": ["string", "null"]}),
        (str | list[int], {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "integer"}}]}),
        (Literal["a", "b"], {"enum": ["a", "b"]}),
        (list, {"type": "array"}),
        (list[object], {"type": "array", "items": {}}),
        (dict, {"type": "object"}),
        (dict[str, object], {"type": "object"}),
        (dict[str, bool], {"type": "object", "additionalProperties": {"type": "boolean"}}),
        (JsonObject, {"type": "object"}),
        (
            Annotated[int, schema_keywords(minimum=1, maximum=2), "one or two"],
            {"type": "integer", "minimum": 1, "maximum": 2, "description": "one or two"},
        ),
    ],
)
def test_types_without_names(kind: object, schema: dict[str, object]) -> None:
    parts = SchemaComponents()
    assert schema_of(kind, parts) == schema
    assert parts.schemas == {}


@pytest.mark.parametrize("kind", [bytes, set[str], complex, "str"])
def test_types_outside_of_json(kind: object) -> None:
    with pytest.raises(TypeError, match="no type of JSON"):
        schema_of(kind, SchemaComponents())


def test_a_class_is_a_part_that_may_hold_itself() -> None:
    parts = SchemaComponents()
    assert schema_of(list[Leaf], parts) == {"type": "array", "items": {"$ref": f"{REFERENCE}Leaf"}}
    assert parts.schemas == {
        "Leaf": {
            "description": "A leaf, of two lines.",
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "size": {"type": ["number", "null"], "minimum": 0, "description": "cm"},
                "leaves": {"type": "array", "items": {"$ref": f"{REFERENCE}Leaf"}},
            },
            "required": ["name"],
        }
    }


def test_required_members() -> None:
    assert inline_schema_of(Asked, SchemaComponents())["required"] == ["which"]
    assert inline_schema_of(Branch, SchemaComponents())["required"] == ["name", "bark"]
    assert inline_schema_of(Bare, SchemaComponents()) == {"type": "object", "properties": {"more": {"type": "boolean"}}}


def test_a_class_of_attrs_is_written_whole() -> None:
    parts = SchemaComponents()
    schema_of(Fruit, parts)
    assert parts.schemas["Fruit"]["required"] == ["ripe", "seeds"]
    assert list(parts.kinds) == ["Fruit"]


def test_two_classes_of_one_name() -> None:
    parts = SchemaComponents()
    schema_of(Fruit, parts)
    with pytest.raises(TypeError, match="have one name"):
        schema_of(TypedDict("Fruit", {"x": int}), parts)  # type: ignore[operator]  # made here
