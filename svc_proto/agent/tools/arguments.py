"""Arguments of a call against the schema of its tool: what a model gets wrong is said so that it can do better.

Only the part of JSON Schema that our tools use: types, required, enum, minimum, maximum, items. Models write numbers
and booleans as text now and then; those are read as what they mean. Members that no schema names are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from svc_proto.basics.errors import ToolError
from svc_proto.basics.validate import unquoted

__all__ = ["check"]

WORDS: dict[object, bool] = {"true": True, "false": False}
Schema: TypeAlias = Mapping[str, Any]


def check(schema: Schema, arguments: Mapping[str, object]) -> dict[str, object]:
    """The arguments as the tool takes them. Raises `ToolError` naming the first that is wrong."""
    properties: Mapping[str, Schema] = schema["properties"]
    for name in schema.get("required", ()):
        if arguments.get(name) is None:
            raise ToolError(f"the argument {name} is missing")
    return {
        name: _value(properties[name], value, name)
        for name, value in arguments.items()
        if name in properties and value is not None
    }


def _value(schema: Schema, value: object, name: str) -> object:
    match schema.get("type"):
        case "string":
            value = _text(value, name)
        case "integer":
            value = _whole(schema, value, name)
        case "boolean":
            found = WORDS.get(value) if isinstance(value, str) else value
            if not isinstance(found, bool):
                raise ToolError(f"the argument {name} must be true or false")
            value = found
        case "array":
            if not isinstance(value, list):
                raise ToolError(f"the argument {name} must be an array")
            items: Schema = schema.get("items", {})
            value = [_value(items, item, f"{name}[{place}]") for place, item in enumerate(value)]
        case "object":
            if not isinstance(value, dict):
                raise ToolError(f"the argument {name} must be an object")
        case _:
            pass  # anything
    if "enum" in schema and value not in schema["enum"]:
        raise ToolError(f"the argument {name} must be one of {', '.join(map(str, schema['enum']))}")
    return value


def _text(value: object, name: str) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        raise ToolError(f"the argument {name} must be a string")
    return value


def _whole(schema: Schema, value: object, name: str) -> int:
    if not isinstance(value, int):
        value = unquoted(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise ToolError(f"the argument {name} must be a whole number")
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and value < low:
        raise ToolError(f"the argument {name} must be at least {low}")
    if high is not None and value > high:
        raise ToolError(f"the argument {name} must be at most {high}")
    return value
