"""Shortening of a tool's result, so that it fits the model's context.

A JSON object loses items of its longest array, and their number is added. Other text is cut between lines, with the
number of lines that are left out, or, if the first line is too long, within it and without a number.
"""

from bisect import bisect_right
from itertools import accumulate

from svc_proto.basics import strict_json
from svc_proto.schema.json_object import JsonObject, as_array

__all__ = ["MAX_OUTPUT", "fit_output", "output_limit"]

MAX_OUTPUT = 64 * 1024  # characters of one result for the model
SHARE = 4  # of a model's context, one part for one result
CHARACTERS_PER_TOKEN = 3
CUT = "\n[cut: the rest is too long]"
CUT_LINES = "\n(cut: {count} more lines are too long for one result)"


def output_limit(context: int | None) -> int:
    """Return how many characters a result may have for a model with a context of so many tokens (None: unknown)."""
    return MAX_OUTPUT if context is None else min(MAX_OUTPUT, context * CHARACTERS_PER_TOKEN // SHARE)


def fit_output(output: str, limit: int) -> str:
    """Return the output if it fits, else its beginning with a note on what is left out.

    Of a JSON object, items at the end of its longest array are left out if that suffices; `left_out` is their number.
    """
    if len(output) <= limit:
        return output
    if output.startswith("{") and (found := JsonObject.parse(output)) is not None:
        return _fit_object(found, limit) or _fit_lines(output, limit)
    return _fit_lines(output, limit)


def _fit_object(found: JsonObject, limit: int) -> str:
    """Return an object as JSON with as few items as needed dropped from its longest array; "" if that does not fit."""
    arrays = {name: items for name, value in found.items() if (items := as_array(value))}
    if not arrays:
        return ""
    name = max(arrays, key=lambda each: len(strict_json.dumps(arrays[each])))
    items = arrays[name]
    low, high = 0, len(items)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if len(_with(found, name, items, middle)) <= limit else (low, middle - 1)
    text = _with(found, name, items, low)
    return text if len(text) <= limit else ""


def _with(found: JsonObject, name: str, items: list[object], count: int) -> str:
    return strict_json.dumps({**found, name: items[:count], "left_out": len(items) - count})


def _fit_lines(output: str, limit: int) -> str:
    lines = output.split("\n")
    room = limit - len(CUT_LINES.format(count=len(lines)))
    ends = list(accumulate(len(line) + 1 for line in lines))
    count = bisect_right(ends, room + 1)
    if not count:
        return output[: limit - len(CUT)] + CUT
    return "\n".join(lines[:count]) + CUT_LINES.format(count=len(lines) - count)
