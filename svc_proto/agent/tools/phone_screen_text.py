"""A screen as lines for a model: a head, then lines for its rows.

    screen 412 com.android.settings 1080x2400
    2 scroll more: below
    4 button "Network" "Wi-Fi, mobile data"
    9 switch "Airplane mode" off

A line has the number of its node, the kind, the texts as JSON strings, and only that state which is not usual; what can
be checked has its state if one is known. Texts of others stay inside of their JSON strings, so none can begin a line.
"""

import re
from collections.abc import Iterable, Sequence

from svc_proto.agent.tools.phone_screen import TEXT_LIMIT, PhoneScreen, ScreenRow
from svc_proto.basics import strict_json
from svc_proto.schema.screen_node import CHECKABLE, ScreenNode

__all__ = ["EMPTY", "SCREEN_BLOCK", "describe_row", "enter_key", "screen_head", "screen_lines", "quote"]

EMPTY = (
    "(nothing to read: the app draws without a description for readers, or is still loading. "
    "phone_wait and look again, or phone_screenshot)"
)
LOCKED = "(the phone is locked: ask the user to unlock it)"
TRUNCATED = "(the phone listed {count} nodes and left out more: scroll, or search with phone_find_nodes)"
# A head with the lines behind it. No text of others can begin a line.
SCREEN_BLOCK = re.compile(r"^screen (\d+) \S+ \d+x\d+.*(?:\n(?:\d|\().*)*", re.MULTILINE)
ENTER_KEYS = ("enter", "go", "done", "search", "send", "next", "return")


def screen_head(number: int, screen: PhoneScreen, *, settled: bool = True) -> str:
    """Return the first line of a screen: its number, app and size, and whether it is locked or has not settled."""
    left, top, right, bottom = screen.bounds
    size = f"{right - left}x{bottom - top}" + (f" at {left},{top}" if left or top else "")
    pieces = [f"screen {number}", screen.app or "unknown app", size]
    return " ".join(pieces + ["locked"] * screen.locked + ["settled: false"] * (not settled))


def screen_lines(screen: PhoneScreen, *, bounds: bool = False, rows: Iterable[ScreenRow] | None = None) -> list[str]:
    """Return the lines below the head: one for each keyboard, other rows, and notes; or only those of `rows`."""
    wanted = screen.rows if rows is None else tuple(rows)
    lines: list[str] = []
    if rows is None:
        lines += [LOCKED] * screen.locked
        lines += [EMPTY] * (not wanted)
    window = next(iter(screen.windows), "")
    for row in wanted:
        if row.node.window != window and rows is None:
            window = row.node.window
            lines.append(f"(window behind, {screen.windows[window] or 'unknown app'})")
        if rows is None and screen.is_keyboard(row.node.window):
            continue
        lines.append(describe_row(row, bounds=bounds))
    if rows is None:
        lines[:0] = _keyboards(screen)
        lines += [TRUNCATED.format(count=len(screen.nodes))] * screen.truncated
    return lines


def describe_row(row: ScreenRow, *, bounds: bool = False) -> str:
    """Return the line that describes a row of the screen to the model."""
    node = row.node
    pieces = [node.number]
    if kind := node.kind:
        pieces.append(kind)
    texts = [quote(node.content, node)] if node.editable else [quote(text, node) for text in row.texts]
    if node.editable:
        texts += [quote(text) for text in (node.description, node.hint) if text and text != node.content]
        texts = list(dict.fromkeys(texts))
    pieces += texts
    if not row.texts:
        pieces += [f"#{node.view_name}"] if node.view_name else [] if bounds else [_at(node)]
    pieces += _states(row)
    if bounds:
        pieces.append("[{},{},{},{}]".format(*node.bounds))
    return " ".join(pieces)


def quote(text: str, node: ScreenNode | None = None) -> str:
    """Return a text as a JSON string; a cut one with the length that it has, or with a mark."""
    quoted = strict_json.dumps(text)
    if len(text) < TEXT_LIMIT:
        return quoted
    length = node.text_length if node is not None else 0
    return f"{quoted} (cut, {length} characters)" if length > len(text) else f"{quoted} (cut)"


def _at(node: ScreenNode) -> str:
    return "@{},{}".format(*node.center)


def _states(row: ScreenRow) -> list[str]:
    node = row.node
    checked = row.checked
    states = []
    if checked is not None:
        states.append("on" if checked else "off")
    elif node.kind in CHECKABLE and node.checkable is None:
        states.append("state unknown")
    states += [f"value {node.value}"] if node.value else []
    states += [
        word
        for word, holds in (
            ("focused", node.focused),
            ("selected", node.selected or any(inner.selected for inner in row.inner)),
            ("disabled", not node.enabled),
            ("hold", node.long_clickable and not node.clickable),
            ("covered", row.covered),
        )
        if holds
    ]
    states += [f"more: {node.more}"] if node.more else []
    states += ["scroll"] if node.scrollable and node.kind != "scroll" else []
    return states


def _keyboards(screen: PhoneScreen) -> list[str]:
    """Return one line for each keyboard, with the number of its Enter key if it has one."""
    lines = []
    for window in screen.windows:
        if not screen.is_keyboard(window):
            continue
        keys = [row for row in screen.rows if row.node.window == window]
        enter = enter_key(keys)
        lines.append(f"(keyboard, {len(keys)} keys{'' if enter is None else f', Enter is {enter.node.number}'})")
    return lines


def enter_key(keys: Sequence[ScreenRow]) -> ScreenRow | None:
    """Return the key of a keyboard that ends the input; None if it has no such key."""
    return next((row for row in keys if any(text.strip().lower() in ENTER_KEYS for text in row.texts)), None)
