"""Arguments of a call against the schema of its tool: what a model gets wrong is said so that it can do better.

Only the part of JSON Schema that our tools use: types, required, enum, minimum, maximum, items. Models write numbers
and booleans as text now and then; those are read as what they mean. Members that no schema names are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from svc_proto.agent.tools.tool import ToolError
from svc_proto.basics.validate import unquoted

__all__ = ["check"]

WORDS: dict[object, bool] = {"true": True, "false": False}
Schema = Mapping[str, object]


def check(schema: Schema, arguments: Mapping[str, object]) -> dict[str, object]:
    """The arguments as the tool takes them. Raises `ToolError` naming the first that is wrong."""
    properties = cast("Mapping[str, Schema]", schema["properties"])
    for name in cast("list[str]", schema.get("required", [])):
        if arguments.get(name) is None:
            raise ToolError(f"the argument {name} is missing")
    found: dict[str, object] = {}
    for name, value in arguments.items():
        if name in properties and value is not None:
            found[name] = _value(properties[name], value, name)
    return found


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
            items = cast("Schema", schema.get("items", {}))
            value = [_value(items, item, f"{name}[{place}]") for place, item in enumerate(value)]
        case "object":
            if not isinstance(value, dict):
                raise ToolError(f"the argument {name} must be an object")
        case _:
            pass  # anything
    allowed = cast("list[object] | None", schema.get("enum"))
    if allowed is not None and value not in allowed:
        raise ToolError(f"the argument {name} must be one of {', '.join(map(str, allowed))}")
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
    if isinstance(low, int) and value < low:
        raise ToolError(f"the argument {name} must be at least {low}")
    if isinstance(high, int) and value > high:
        raise ToolError(f"the argument {name} must be at most {high}")
    return value
