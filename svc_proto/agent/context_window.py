"""Fitting of a conversation into a model's context: estimates, turns and steps left out, and shortened results."""

from collections.abc import Mapping, Sequence
from math import ceil

from attrs import frozen

from svc_proto.agent.tools.phone_screen_text import SCREEN_BLOCK
from svc_proto.basics import strict_json
from svc_proto.schema.json_object import JsonObject, as_array, as_text

__all__ = ["BYTES_PER_TOKEN", "FittedMessages", "Row", "estimate_tokens", "fit_messages"]

BYTES_PER_TOKEN = 3.5  # UTF-8 bytes of one token, rather too few: of English and code 4, of Chinese 3
IMAGE_TOKENS = 1_000  # tokens of one image, whatever its bytes
MESSAGE_TOKENS = 5  # tokens of a message besides its content
BLOCK = 4  # turns, or steps, that are left out at once: requests begin alike in between, as a server's cache needs
SHORT_RESULT = 400  # characters that stay of an older result
STEPS_LEFT_OUT = "[{count} earlier steps of this task, which were done, are left out here.]"
SHORTENED = "\n[shortened to fit the model's context: {count} more characters]"

Row = Mapping[str, object]


@frozen(kw_only=True)
class FittedMessages:
    """Messages that `fit_messages` returns, with the numbers of messages and steps left out and of shortened results.

    A step is a message of the model with calls, and their results.
    """

    rows: list[Row]
    left_out: int
    steps: int
    shortened: int


def estimate_tokens(value: object) -> int:
    """Return the estimated tokens of messages, of tools, or of any other part of a request."""
    rows = as_array(value)
    if rows is None:
        return ceil(_size(value) / BYTES_PER_TOKEN)
    return sum(ceil(_size(row) / BYTES_PER_TOKEN) + MESSAGE_TOKENS for row in rows)


def fit_messages(rows: Sequence[Row], limit: int, turn_start: int) -> FittedMessages:
    """Fit messages into `limit` estimated tokens, as far as possible.

    These means are used in order, each until the messages fit. Whole turns before the message at `turn_start` are left
    out, the oldest first. Results of tools are shortened, but for the last one and the newest screen. Steps of the turn
    before those two are left out, the oldest first. Those two results are shortened. System messages at the head stay.
    Turns and steps are left out in blocks of `BLOCK`, so more than needed, unless less than half the limit would stay.
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
    spared = sorted({*results[-1:], *[place for place in results if _has_screen(kept[place])][-1:]}, reverse=True)
    shortened = 0
    for place in [each for each in results if each not in spared]:
        total, changed = _shorten(kept, place, total, limit, 0)
        shortened += changed
    steps = 0
    if total > limit and spared:
        total, steps, removed = _leave_out_steps(kept, turn_start - (first - head), spared[-1], total, limit)
        spared = [place - removed for place in spared]
    for place in spared:
        room = limit - (total - estimate_tokens([kept[place]])) - MESSAGE_TOKENS - len(SHORTENED)
        total, changed = _shorten(kept, place, total, limit, int(room * BYTES_PER_TOKEN))
        shortened += changed
    return FittedMessages(rows=kept, left_out=first - head, steps=steps, shortened=shortened)


def _has_screen(row: Row) -> bool:
    return SCREEN_BLOCK.search(as_text(row.get("content")) or "") is not None


def _shorten(rows: list[Row], place: int, total: int, limit: int, size: int) -> tuple[int, bool]:
    """Shorten one result if `total` exceeds `limit`; return the new total, and whether the result was shortened."""
    if total <= limit:
        return total, False
    before = rows[place]
    rows[place] = _shortened(before, max(SHORT_RESULT, size))
    return total + estimate_tokens([rows[place]]) - estimate_tokens([before]), rows[place] is not before


def _leave_out_steps(rows: list[Row], turn: int, end: int, total: int, limit: int) -> tuple[int, int, int]:
    """Leave out the oldest steps between the rows `turn` and `end`; note their count in row `turn`.

    Steps are left out until the rest fits, then up to a whole `BLOCK` of them unless the rest would be under half the
    limit. The last step stays. Nothing is left out of fewer than two steps, or if row `turn` is no user's message.

    Return the new total, and how many steps and rows were left out.
    """
    starts = [place for place in range(turn + 1, end) if rows[place]["role"] == "assistant"]
    if len(starts) < 2 or rows[turn]["role"] != "user":
        return total, 0, 0
    count, last = 0, len(starts) - 1
    total += ceil(len(STEPS_LEFT_OUT) / BYTES_PER_TOKEN)
    while count < last:
        size = estimate_tokens(rows[starts[count] : starts[count + 1]])
        if total <= limit and (count % BLOCK == 0 or total - size < limit // 2):
            break
        count, total = count + 1, total - size
    removed = starts[count] - starts[0]
    del rows[starts[0] : starts[count]]
    rows[turn] = _with_note(rows[turn], STEPS_LEFT_OUT.format(count=count))
    return total, count, removed


def _with_note(row: Row, note: str) -> Row:
    content = row.get("content")
    parts = as_array(content)
    more = f"{content}\n\n{note}" if parts is None else [*parts, {"type": "text", "text": note}]
    return {**row, "content": more}


def _shortened(row: Row, size: int) -> Row:
    content = as_text(row.get("content")) or ""
    left = len(content) - size
    if left <= len(SHORTENED):
        return row
    return {**row, "content": content[:size] + SHORTENED.format(count=left)}


def _size(value: object) -> int:
    """Return the approximate UTF-8 bytes of a text, a message or another value.

    Of a message whose content is a list only the content counts: texts, and the bytes of `IMAGE_TOKENS` for each image.
    """
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
