"""Screens in a conversation: older ones become one line, so that steps do not fill the model's context."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from svc_proto.agent.tools.phone_screen_text import SCREEN_BLOCK
from svc_proto.schema.json_object import JsonObject

__all__ = ["screen_budget", "shorten_screens"]

LARGE_BUDGET = 1_600  # tokens of screens in a request to a model with a large, or an unknown context
SMALL_CONTEXT = 4_096  # tokens; assumed where a model is offered few tools and its context is unknown
SHARE = 9  # of a small context, one part for screens
BYTES_PER_TOKEN = 3
Row = Mapping[str, object]


def screen_budget(context: int | None, *, few: bool) -> int:
    """Return how many tokens the screens of a request may have together; the newest one stays at any size.

    `few`: assume a small context if its size is unknown.
    """
    if context is None:
        return SMALL_CONTEXT // SHARE if few else LARGE_BUDGET
    return min(LARGE_BUDGET, context // SHARE)


def shorten_screens(rows: Iterable[Row], budget: int) -> list[Row]:
    """Return the rows of a request, with older screens replaced by one line each.

    Whenever the whole screens exceed `budget` tokens together, all of them but the newest are replaced. Of two equal
    screens in a row the older one is replaced. The newest screen stays at any size.
    """
    found = list(rows)
    kept: dict[int, str] = {}  # by place: what is shown, without its number
    size = 0
    for place, row in enumerate(found):
        block = SCREEN_BLOCK.search(JsonObject.of(row).text("content")) if row.get("role") == "tool" else None
        if block is None:
            continue
        shown = block[0].partition(block[1])[2]
        tokens = len(shown.encode("utf-8", "replace")) // BYTES_PER_TOKEN
        is_again = bool(kept) and kept[max(kept)] == shown
        crowded = list(kept) if size + tokens > budget else []
        older = [max(kept)] if is_again else crowded  # of two equal ones in a row only the newest is kept
        for each in older:
            found[each] = {**found[each], "content": SCREEN_BLOCK.sub(_replaced, str(found[each]["content"]))}
            size -= len(kept.pop(each).encode("utf-8", "replace")) // BYTES_PER_TOKEN
        kept[place] = shown
        size += tokens
    return found


def _replaced(block: re.Match[str]) -> str:
    return f"[screen {block[1]}: shown before]"
