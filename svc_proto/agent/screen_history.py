"""Screens in a conversation: older ones become one line, so that steps do not fill the model's context."""

import re
from collections.abc import Iterable

from svc_proto.agent.context_window import Row, estimate_tokens
from svc_proto.agent.tools.phone_screen_text import SCREEN_BLOCK
from svc_proto.schema.json_object import JsonObject

__all__ = ["screen_budget", "shorten_screens"]

LARGEST_BUDGET = 1_600  # tokens of screens in a request
SHARE = 9  # of a small context, one part for screens
SENT_PER_LOST = 20  # tokens in all requests for one that replacements take out of a server's cache
ALLOWANCE = 500  # tokens that replacements may take out besides, since the first prompts of a task are short


def screen_budget(context: int | None) -> int:
    """Return the limit on the tokens of all screens of a request, for a context of this size (None: unknown).

    A screen that exceeds it is replaced when the next one follows.
    """
    return LARGEST_BUDGET if context is None else min(LARGEST_BUDGET, context // SHARE)


def shorten_screens(rows: Iterable[Row], budget: int, base: int = 0) -> list[Row]:
    """Return the rows of a request, with older screens replaced by one line each. The newest one stays at any size.

    `base`: tokens of the request besides the rows. When a screen follows, the one before is replaced or stays for good:
    at the end of the prompt, a replacement takes that screen alone out of a server's cache. It is replaced if both are
    equal, if all whole screens exceed `budget` tokens, or if `SENT_PER_LOST` and `ALLOWANCE` permit the loss.
    """
    found = list(rows)
    newest, shown = -1, ""  # place and text of the newest screen; the text is without its number
    prompt, sent, lost, size = base, 0, 0, 0  # tokens: of the prompt so far, of all requests, of screens
    for place, row in enumerate(found):
        sent += prompt if row["role"] == "assistant" else 0
        prompt += estimate_tokens([row])
        block = SCREEN_BLOCK.search(JsonObject.of(row).text("content")) if row["role"] == "tool" else None
        if block is None:
            continue
        before, shown = shown, block[0].partition(block[1])[2]
        tokens = estimate_tokens(before)
        size += estimate_tokens(shown)
        is_again = before == shown
        if before and (is_again or size > budget or lost + tokens <= sent // SENT_PER_LOST + ALLOWANCE):
            found[newest] = {**found[newest], "content": SCREEN_BLOCK.sub(_replaced, str(found[newest]["content"]))}
            lost += 0 if is_again else tokens  # a second look is the model's choice: others do not stay for it
            prompt -= tokens
            size -= tokens
        newest = place
    return found


def _replaced(block: re.Match[str]) -> str:
    return f"[screen {block[1]}: shown before]"
