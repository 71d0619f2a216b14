"""Validation of a call's arguments against the schema of its tool, with errors that a model can act on.

Only the part of JSON Schema that our tools use: types, required, enum, minimum, maximum, items. Numbers and booleans
as text are converted, since models write them now and then. Members outside the schema are dropped, and reported.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

from svc_proto.basics.errors import ToolError
from svc_proto.schema import coercion
from svc_proto.schema.json_object import as_array, as_object

__all__ = ["check_arguments", "ignored_note"]

Schema: TypeAlias = Mapping[str, Any]
Reader: TypeAlias = Callable[[object], Any]

# Parser and displayed name by type.
READERS: Mapping[str, tuple[Reader, str]] = {
    "string": (coercion.coerce_text, "a string"),
    "integer": (partial(coercion.coerce_integer, pointed=True), "a whole number"),
    "boolean": (coercion.coerce_boolean, "true or false"),
    "array": (as_array, "an array"),
    "object": (as_object, "an object"),
}
MAX_NAME = 40  # characters of a name in a note on ignored arguments
MAX_IGNORED = 10  # names in such a note
ANYTHING: tuple[Reader, str] = (lambda value: value, "")


def check_arguments(schema: Schema, arguments: Mapping[str, object]) -> dict[str, object]:
    """Return the arguments that the schema has, converted; null ones are dropped.

    Raises `ToolError` that names the first missing or invalid one.
    """
    properties: Mapping[str, Schema] = schema["properties"]
    for name in schema.get("required", ()):
        if arguments.get(name) is None:
            raise ToolError(f"the argument {name} is missing")
    return {
        name: _value(properties[name], value, name)
        for name, value in arguments.items()
        if name in properties and value is not None
    }


def ignored_note(schema: Schema, arguments: Mapping[str, object]) -> str:
    """Return a line for the model on the arguments that its call was run without; empty if there are none."""
    properties: Mapping[str, Schema] = schema["properties"]
    ignored = [name[:MAX_NAME] for name in arguments if name not in properties][:MAX_IGNORED]
    if not ignored:
        return ""
    known = [name for name in properties if name != "device"]
    return f"\n(ignored, as unknown: {', '.join(ignored)}. Known arguments: {', '.join(known) or 'none'})"


def _value(schema: Schema, value: object, name: str) -> object:
    kind = schema.get("type", "")
    read, words = READERS.get(kind, ANYTHING)
    found = read(value)
    if found is None and words:
        raise ToolError(f"the argument {name} must be {words}")
    if kind == "array":
        items: Schema = schema.get("items", {})
        return [_value(items, item, f"{name}[{place}]") for place, item in enumerate(found)]
    if kind == "integer" and found < schema.get("minimum", found):
        raise ToolError(f"the argument {name} must be at least {schema['minimum']}")
    if kind == "integer" and found > schema.get("maximum", found):
        raise ToolError(f"the argument {name} must be at most {schema['maximum']}")
    if "enum" in schema and found not in schema["enum"]:
        raise ToolError(f"the argument {name} must be one of {', '.join(map(str, schema['enum']))}")
    return found
