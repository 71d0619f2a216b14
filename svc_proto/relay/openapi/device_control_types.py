"""Types of the arguments of commands to a phone, from the rules of `schema.device_control_routes`.

Members without a rule are allowed, and are sent to the phone.

Phones parse numbers and booleans from text, so `12` and `"12"` are equivalent.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Required, get_type_hints

from svc_proto.schema.device_control_arguments import ArgumentRule
from svc_proto.schema.device_control_routes import DEVICE_CONTROL
from svc_proto.schema.json_schema import schema_keywords
from svc_proto.schema.relay_types import SelectorJson

__all__ = ["ARGUMENTS", "QUERIES", "SELECTOR"]

BooleanOrWord = bool | Literal["true", "false"]
TYPES_BY_RULE: Mapping[str, Any] = {
    "word": Annotated[str | float, schema_keywords(pattern=r"\S")],
    "text": str | float,
    "name": str,
    "whole": Annotated[int | str, schema_keywords(pattern="^ *-?[0-9]{1,19} *$")],
    "place": Annotated[int | str, schema_keywords(minimum=0, pattern="^ *[0-9]{1,19} *$")],
    "flag": BooleanOrWord,
    "array": list[object],
    "any": object,
}
QUERY_TYPES_BY_RULE: Mapping[str, Any] = {"whole": int, "flag": BooleanOrWord}


SELECTOR: Mapping[str, Any] = get_type_hints(SelectorJson, include_extras=True)
"""The query parameters that name a phone."""


def _arguments_type(path: str, rules: Sequence[ArgumentRule]) -> type:
    """Return a JSON type for `schema.json_schema`: a phone's selector and the arguments of the rules."""
    required = frozenset(name for each in rules if each.required for name in each.types)
    kinds = {name: TYPES_BY_RULE[kind] for each in rules for name, kind in each.types.items()}
    # Of an optional argument, null counts as absent.
    hints = {**SELECTOR, **{name: kind if name in required else kind | None for name, kind in kinds.items()}}
    words = "; ".join(each.words for each in rules if each.words)
    name = path.title().replace("/", "").replace("_", "")
    return type(name, (), {"__annotations__": hints, "__required_keys__": required, "__doc__": words})


ARGUMENTS = {
    row.path: _arguments_type(row.path, row.rules)
    for row in DEVICE_CONTROL.values()
    if row.rules and row.method == "POST"
}
"""The bodies of POST; other routes take nothing but a selector."""

QUERIES = {
    row.path: {
        **SELECTOR,
        **{
            name: Required[QUERY_TYPES_BY_RULE[kind]] if each.required else QUERY_TYPES_BY_RULE[kind]
            for each in row.rules
            for name, kind in each.types.items()
        },
    }
    for row in DEVICE_CONTROL.values()
    if row.rules and row.method == "GET"
}
"""The query parameters of GET."""
