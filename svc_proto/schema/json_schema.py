"""JSON Schema (2020-12) of types, for a server's API documents, from a `TypedDict` or a class of attrs.

 class Note(TypedDict):
     "A note."
     text: Annotated[str, schema_keywords(maxLength=80), "the content of the note"]
     seen_at: NotRequired[float | None]

 parts = SchemaComponents()
 schema_of(Note, parts)  # {"$ref": "#/components/schemas/Note"}; parts.schemas["Note"] is the object's schema

Objects may have further members, which readers ignore. A text in `Annotated` is the description, `schema_keywords` adds
keywords. A `TypedDict` is written in a module without `from __future__ import annotations`, which would hide
`NotRequired`.
"""

from collections.abc import Mapping, Sequence
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    Required,
    TypeAlias,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from attrs import define, field, fields, frozen, has

__all__ = [
    "REFERENCE",
    "JsonSchema",
    "SchemaComponents",
    "SchemaKeywords",
    "inline_schema_of",
    "schema_keywords",
    "schema_of",
]

JsonSchema: TypeAlias = dict[str, object]

REFERENCE = "#/components/schemas/"
SIMPLE: Mapping[object, str] = {str: "string", int: "integer", float: "number", bool: "boolean", NoneType: "null"}
ANYTHING = (object, Any)
LISTS = (list, tuple, Sequence)
OBJECTS = (dict, Mapping)


@frozen
class SchemaKeywords:
    """Keywords of JSON Schema for a type in `Annotated`."""

    keywords: tuple[tuple[str, object], ...]


def schema_keywords(**keywords: object) -> SchemaKeywords:
    """Return keywords for `Annotated`, such as `schema_keywords(minimum=0)`."""
    return SchemaKeywords(tuple(keywords.items()))


@define
class SchemaComponents:
    """Schemas of classes, by class name without `Json` at its end."""

    schemas: dict[str, JsonSchema] = field(factory=dict)
    kinds: dict[str, type] = field(factory=dict)


def schema_of(kind: object, parts: SchemaComponents) -> JsonSchema:
    """Return the schema of a type, or a reference to it: classes become components, by name.

    Raise `TypeError` for a type that JSON does not have, and for two classes with one name.
    """
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _annotated(arguments, parts)
    if origin is None and kind in ANYTHING:
        return {}
    if origin is None and kind in SIMPLE:
        return {"type": SIMPLE[kind]}
    if origin in (NotRequired, Required):
        return schema_of(arguments[0], parts)
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin in (Union, UnionType):
        return _union([schema_of(each, parts) for each in arguments])
    if (origin or kind) in LISTS:
        return {"type": "array", "items": schema_of(arguments[0], parts)} if arguments else {"type": "array"}
    if (origin or kind) in OBJECTS:
        values = schema_of(arguments[1], parts) if arguments else {}
        return {"type": "object", "additionalProperties": values} if values else {"type": "object"}
    if isinstance(kind, type) and (has(kind) or hasattr(kind, "__required_keys__")):
        return _reference(kind, parts)
    if isinstance(kind, type) and issubclass(kind, dict):
        return {"type": "object"}
    raise TypeError(f"{kind!r} is no type of JSON")


def _annotated(arguments: Sequence[Any], parts: SchemaComponents) -> JsonSchema:
    found = dict(schema_of(arguments[0], parts))
    for more in arguments[1:]:
        found.update(more.keywords if isinstance(more, SchemaKeywords) else {"description": more})
    return found


def _union(schemas: list[JsonSchema]) -> JsonSchema:
    """Return the schema of a union: a list of type names if each member has the keyword `type` alone, else `anyOf`."""
    names = [schema.get("type") for schema in schemas if list(schema) == ["type"]]
    return {"type": names} if len(names) == len(schemas) else {"anyOf": schemas}


def inline_schema_of(kind: type, parts: SchemaComponents) -> JsonSchema:
    """Return the object schema of a `TypedDict` or a class of attrs itself, rather than a reference to a component."""
    hints = get_type_hints(kind, include_extras=True)
    if has(kind):  # an attrs class is only written, so each member is there
        named = required = [each.name for each in fields(kind)]
    else:
        # A `TypedDict` has this attribute.
        named, required = [*hints], [name for name in hints if name in kind.__required_keys__]  # type: ignore[attr-defined]
    schema: JsonSchema = {"type": "object", "properties": {name: schema_of(hints[name], parts) for name in named}}
    if required:
        schema["required"] = required
    words = " ".join((kind.__doc__ or "").split())
    return {"description": words, **schema} if words else schema


def _reference(kind: type, parts: SchemaComponents) -> JsonSchema:
    name = kind.__name__.removesuffix("Json")
    if name not in parts.kinds:
        parts.kinds[name] = kind
        parts.schemas[name] = {}  # ends the recursion of a class that contains itself
        parts.schemas[name] = inline_schema_of(kind, parts)
    elif parts.kinds[name] is not kind:
        raise TypeError(f"{kind!r} and {parts.kinds[name]!r} have one name")
    return {"$ref": REFERENCE + name}
