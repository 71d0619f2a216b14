"""Arguments of tool calls as models write them: an object, or one behind a fence, in quotes, or absent."""

from __future__ import annotations

import re

from svc_proto.basics import lenient_json, strict_json
from svc_proto.schema.json_object import JsonObject, NotJsonObjectError, as_text

__all__ = ["parse_arguments"]

ABSENT = ("", "null", "None", '""', "[]")
_FENCE = re.compile(r"```[a-z]*\s*(.*?)\s*```", re.DOTALL)


def parse_arguments(written: str) -> tuple[JsonObject, str]:
    """Return the arguments as an object, and as the text of one. Raises `JsonError` for anything else."""
    arguments = written.strip()
    fenced = _FENCE.fullmatch(arguments)
    if fenced is not None:
        arguments = fenced[1]
    if arguments in ABSENT:
        arguments = "{}"
    value, deviations = lenient_json.loads(arguments)
    inner = as_text(value)
    if inner is not None:  # encoded twice
        return parse_arguments(inner) if len(inner) < len(arguments) else (JsonObject(), "{}")
    members = JsonObject.of_or_none(value)
    if members is None:
        raise NotJsonObjectError("it is of another type")
    return members, strict_json.dumps(members) if deviations else arguments
