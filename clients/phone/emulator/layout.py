"""Screens as data, and the layout that turns one into a tree of nodes.

A screen is a tool bar, a list of rows that scrolls when it is longer than the screen, and up to two rows that stay at
the bottom. A row is a line of text, a list entry, a button, a text field or a switch.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from typing import assert_never

from attrs import frozen

from clients.phone.emulator.view_tree import (
    FULL,
    HEIGHT,
    WIDTH,
    Action,
    Bounds,
    Focus,
    GoBack,
    SelectEntry,
    Submit,
    ToggleSwitch,
    ViewNode,
    Window,
)

__all__ = [
    "App",
    "RowKind",
    "ScreenState",
    "Row",
    "Screen",
    "build_window",
    "button",
    "entry",
    "icon",
    "label",
    "longest_scroll",
    "switch",
    "text_field",
]

STATUS_BAR, TOOL_BAR = 80, 240  # lower edges, px
BODY = Bounds(0, TOOL_BAR, WIDTH, 2080)  # area of the scrolling rows
FOOT_HEIGHT = 140  # px, of a fixed row
MARGIN = 40  # px


class RowKind(Enum):
    """Kinds of rows."""

    LABEL = auto()
    ENTRY = auto()
    BUTTON = auto()
    ICON = auto()
    FIELD = auto()
    SWITCH = auto()


@frozen(kw_only=True)
class Row:
    """A row. `key` names the field or switch behind it; `view` is the last part of its resource name."""

    kind: RowKind
    text: str = ""
    detail: str | None = None
    key: str | None = None
    view: str | None = None
    hint: str | None = None
    password: bool = False
    press: Action | None = None


@frozen(kw_only=True)
class Screen:
    """A screen of an app."""

    title: str
    rows: tuple[Row, ...] = ()
    foot: tuple[Row, ...] = ()
    row_height: int = 160  # px


@frozen(kw_only=True)
class App:
    """An installed app: screens by name; the first one opens with the app."""

    package: str
    label: str
    screens: Mapping[str, Screen]

    @property
    def home(self) -> str:
        """Return the name of the screen that opens with the app."""
        return next(iter(self.screens))


@frozen(kw_only=True)
class ScreenState:
    """State of a visible screen: texts, switches, selections, cursor and scroll offset."""

    texts: Mapping[str, str]
    on: frozenset[str] = frozenset()
    selected: frozenset[str] = frozenset()
    cursor: str | None = None
    offset: int = 0  # px
    deep: bool = False  # whether there is a screen to go back to


def label(text: str, key: str | None = None) -> Row:
    """Build a line of text; with a key, it shows the text of that field once it has one."""
    return Row(kind=RowKind.LABEL, text=text, key=key)


def entry(text: str, detail: str | None = None, press: Action | None = None, *, key: str | None = None) -> Row:
    """Build a list entry of one or two lines; with a key, a long press selects it."""
    return Row(kind=RowKind.ENTRY, text=text, detail=detail, press=press, key=key)


def button(text: str, view: str, press: Action) -> Row:
    """Build a button, which is enabled once the fields that it submits are filled."""
    return Row(kind=RowKind.BUTTON, text=text, view=view, press=press)


def icon(description: str, view: str, press: Action) -> Row:
    """Build a button without text."""
    return Row(kind=RowKind.ICON, text=description, view=view, press=press)


def text_field(key: str, hint: str, *, password: bool = False) -> Row:
    """Build a text field."""
    return Row(kind=RowKind.FIELD, key=key, hint=hint, view=key, password=password)


def switch(key: str, text: str) -> Row:
    """Build a switch with its label."""
    return Row(kind=RowKind.SWITCH, text=text, key=key, view=key)


def longest_scroll(screen: Screen) -> int:
    """Return how far the rows of a screen can be scrolled, px."""
    return max(0, len(screen.rows) * screen.row_height - BODY.height)


def build_window(package: str, screen: Screen, look: ScreenState) -> Window:
    """Build the window of a screen."""
    children = [_tool_bar(package, screen, look), _body(package, screen, look)]
    for index, row in enumerate(screen.foot):
        top = BODY.bottom + 20 + index * FOOT_HEIGHT
        frame = Bounds(MARGIN, top, WIDTH - MARGIN, min(top + FOOT_HEIGHT - 20, HEIGHT))
        children.append(_row(package, row, frame, look))
    return Window(package, ViewNode(class_name="android.widget.FrameLayout", bounds=FULL, children=tuple(children)))


def _tool_bar(package: str, screen: Screen, look: ScreenState) -> ViewNode:
    title = ViewNode(
        class_name="android.widget.TextView",
        bounds=Bounds(160 if look.deep else MARGIN, STATUS_BAR, WIDTH, TOOL_BAR),
        text=screen.title,
    )
    up = ViewNode(
        class_name="android.widget.ImageButton",
        bounds=Bounds(0, STATUS_BAR, 140, TOOL_BAR),
        description="Navigate up",
        view_id=f"{package}:id/up",
        press=GoBack(),
    )
    return ViewNode(
        class_name="android.view.ViewGroup",
        bounds=Bounds(0, STATUS_BAR, WIDTH, TOOL_BAR),
        children=(up, title) if look.deep else (title,),
    )


def _body(package: str, screen: Screen, look: ScreenState) -> ViewNode:
    nodes = []
    for index, row in enumerate(screen.rows):
        top = BODY.top + index * screen.row_height - look.offset
        frame = Bounds(0, top, WIDTH, top + screen.row_height).clip(BODY)
        if not frame.empty:
            nodes.append(_row(package, row, frame, look))
    rest = longest_scroll(screen)
    above, below = look.offset > 0, look.offset < rest
    return ViewNode(
        class_name="androidx.recyclerview.widget.RecyclerView" if rest else "android.widget.LinearLayout",
        bounds=BODY,
        view_id=f"{package}:id/list",
        scrollable=rest > 0,
        more="above and below" if above and below else "above" if above else "below" if below else "",
        children=tuple(nodes),
    )


def _row(package: str, row: Row, frame: Bounds, look: ScreenState) -> ViewNode:
    view_id = f"{package}:id/{row.view}" if row.view else None
    key = row.key or ""
    match row.kind:
        case RowKind.LABEL:
            return _line(look.texts.get(key) or row.text, frame)
        case RowKind.ENTRY:
            return _entry(row, frame, look)
        case RowKind.BUTTON:
            return ViewNode(
                class_name="android.widget.Button",
                bounds=frame,
                text=row.text,
                view_id=view_id,
                press=row.press,
                enabled=_complete(row.press, look),
            )
        case RowKind.ICON:
            return ViewNode(
                class_name="android.widget.ImageButton",
                bounds=frame,
                description=row.text,
                view_id=view_id,
                press=row.press,
            )
        case RowKind.FIELD:
            return ViewNode(
                class_name="android.widget.EditText",
                bounds=frame,
                text=_display_text(look.texts.get(key), hidden=row.password),
                description=row.hint,
                hint=row.hint,
                view_id=view_id,
                focused=look.cursor == key,
                password=row.password,
                press=Focus(key),
                field=key,
            )
        case RowKind.SWITCH:
            return _switch(row, frame, view_id, on=key in look.on)
        case _ as never:
            assert_never(never)


def _entry(row: Row, frame: Bounds, look: ScreenState) -> ViewNode:
    lines = [line for line in (row.text, row.detail) if line]
    height = frame.height // max(1, len(lines))
    children = tuple(
        _line(line, Bounds(MARGIN, frame.top + index * height, WIDTH - MARGIN, frame.top + (index + 1) * height))
        for index, line in enumerate(lines)
    )
    return ViewNode(
        class_name="android.widget.LinearLayout",
        bounds=frame,
        press=row.press,
        hold=SelectEntry(row.key) if row.key else None,
        selected=row.key in look.selected,
        children=children,
    )


def _switch(row: Row, frame: Bounds, view_id: str | None, *, on: bool) -> ViewNode:
    press = ToggleSwitch(row.key or "")
    knob = ViewNode(
        class_name="android.widget.Switch",
        bounds=Bounds(WIDTH - 240, frame.top, WIDTH - MARGIN, frame.bottom),
        description=row.text,
        view_id=view_id,
        checked=on,
        press=press,
    )
    line = _line(row.text, Bounds(MARGIN, frame.top, WIDTH - 240, frame.bottom))
    return ViewNode(class_name="android.widget.LinearLayout", bounds=frame, press=press, children=(line, knob))


def _line(text: str, frame: Bounds) -> ViewNode:
    return ViewNode(class_name="android.widget.TextView", bounds=frame, text=text)


def _complete(press: Action | None, look: ScreenState) -> bool:
    return not isinstance(press, Submit) or all(look.texts.get(key, "").strip() for key in press.fields)


def _display_text(text: str | None, *, hidden: bool) -> str | None:
    if not text:
        return None
    return "•" * len(text) if hidden else text
