"""Fitting of a conversation into a model's context: estimates, turns that are left out, results that are shortened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil

from attrs import frozen

from svc_proto.basics import strict_json
from svc_proto.schema.json_object import JsonObject, as_array, as_text

__all__ = ["BYTES_PER_TOKEN", "FittedMessages", "Row", "estimate_tokens", "fit_messages"]

BYTES_PER_TOKEN = 3.5  # UTF-8 bytes of one token, rather too few: of English and code 4, of Chinese 3
IMAGE_TOKENS = 1_000  # tokens of one image, whatever its bytes
MESSAGE_TOKENS = 5  # tokens of a message besides its content
BLOCK = 4  # turns that are left out at once: until the next block, requests begin alike, as a server's cache needs
SHORT_RESULT = 400  # characters that stay of an older result
SHORTENED = "\n[shortened to fit the model's context: {count} more characters]"

Row = Mapping[str, object]


@frozen(kw_only=True)
class FittedMessages:
    """Messages that fit, with the number of those left out and of results that are shortened."""

    rows: list[Row]
    left_out: int = 0
    shortened: int = 0


def estimate_tokens(value: object) -> int:
    """Return the estimated tokens of messages, of tools, or of any other part of a request."""
    rows = as_array(value)
    if rows is None:
        return ceil(_size(value) / BYTES_PER_TOKEN)
    return sum(ceil(_size(row) / BYTES_PER_TOKEN) + MESSAGE_TOKENS for row in rows)


def fit_messages(rows: Sequence[Row], limit: int, turn_start: int) -> FittedMessages:
    """Fit messages into `limit` estimated tokens.

    Whole turns before the message at `turn_start` are left out, the oldest first: in blocks, unless that would use less
    than half of the limit. Then results of tools are shortened, the oldest first. System messages at the head stay.
    What still does not fit is returned as it is.
    """
    sizes = [estimate_tokens([row]) for row in rows]
    head = next((place for place, row in enumerate(rows) if row["role"] != "system"), len(rows))
    total, first, turns = sum(sizes), head, 0
    while first < turn_start:
        end = next((place for place in range(first + 1, turn_start) if rows[place]["role"] == "user"), turn_start)
        size = sum(sizes[first:end])
        if total <= limit and (turns % BLOCK == 0 or total - size < limit // 2):
            break
        first, total, turns = end, total - size, turns + 1
    kept: list[Row] = [*rows[:head], *rows[first:]]
    results = [place for place, row in enumerate(kept) if row["role"] == "tool"]
    shortened = 0
    for place in results:
        if total <= limit:
            break
        before = estimate_tokens([kept[place]])
        room = limit - (total - before) - MESSAGE_TOKENS - len(SHORTENED)
        row = _shortened(kept[place], max(SHORT_RESULT, int(room * BYTES_PER_TOKEN) if place == results[-1] else 0))
        shortened += row is not kept[place]
        kept[place] = row
        total += estimate_tokens([row]) - before
    return FittedMessages(rows=kept, left_out=first - head, shortened=shortened)


def _shortened(row: Row, size: int) -> Row:
    content = as_text(row.get("content")) or ""
    left = len(content) - size
    if left <= len(SHORTENED):
        return row
    return {**row, "content": content[:size] + SHORTENED.format(count=left)}


def _size(value: object) -> int:
    """Return the UTF-8 bytes of a value as JSON; an image counts as `IMAGE_TOKENS`."""
    text = as_text(value)
    if text is not None:
        return len(text.encode("utf-8", "replace"))
    row = JsonObject.of(value)
    parts = as_array(row.get("content"))
    if parts is None:
        content = as_text(row.get("content"))
        rest = {name: each for name, each in row.items() if name != "content"} if content else value
        return (len(content.encode("utf-8", "replace")) if content else 0) + len(strict_json.dumps_bytes(rest))
    images = sum("image_url" in JsonObject.of(part) for part in parts)
    texts = sum(len((JsonObject.of(part).text("text")).encode("utf-8", "replace")) for part in parts)
    return texts + int(images * IMAGE_TOKENS * BYTES_PER_TOKEN)
