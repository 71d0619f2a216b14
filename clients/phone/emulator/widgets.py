"""Layout: turns a screen and its state into a window of nodes with places, classes and effects."""

from functools import partial
from typing import assert_never

from attrs import evolve

from clients.phone.emulator import actions
from clients.phone.emulator.layout import Form, Row, RowKind, Screen, ScreenState
from clients.phone.emulator.view_tree import Bounds, ViewNode, Window

__all__ = ["KEYBOARD", "build_keyboard", "build_toast", "build_window", "longest_scroll"]

STATUS_BAR, TOOL_BAR = 80, 240  # lower edges, px
FOOT = 320  # px below the scrolling rows
FOOT_HEIGHT = 140  # px, of a fixed row
MARGIN = 40  # px
POPUP_ROW = 130  # px, of a row in a dialog or menu, if there is room
KEYBOARD = "com.example.inputmethod"
KEYBOARD_TOP = 0.62  # part of the screen above it
KEYS = ("qwertyuiop", "asdfghjkl", "zxcvbnm", ("Space", "Delete", "Enter"))
BUTTON, LINE = "android.widget.Button", "android.widget.TextView"


def longest_scroll(screen: Screen, size: tuple[int, int] = (1080, 2400)) -> int:
    """Return how far the rows of a screen can be scrolled, px; 0 for a dialog or a menu."""
    if screen.form is not Form.WHOLE:
        return 0
    return max(0, len(screen.rows) * screen.row_height - _body(size).height)


def build_window(package: str, screen: Screen, look: ScreenState) -> Window:
    """Build the window of nodes that shows a screen in the state `look`."""
    if screen.form is not Form.WHOLE:
        return _popup(package, screen, look)
    width, height = look.size
    body = _body(look.size)
    children = [_tool_bar(package, screen, look), _list(package, screen, look, body)]
    for index, row in enumerate(screen.foot):
        top = body.bottom + 20 + index * FOOT_HEIGHT
        frame = Bounds(MARGIN, top, width - MARGIN, min(top + FOOT_HEIGHT - 20, height))
        children.append(_row(package, row, frame, look))
    return _window(package, Bounds(0, 0, width, height), *children)


def build_keyboard(size: tuple[int, int]) -> Window:
    """Build the keyboard over the lower part of the screen."""
    width, height = size
    top = int(height * KEYBOARD_TOP)
    deep = (height - top) // len(KEYS)
    nodes: list[ViewNode] = []
    for place, keys in enumerate(KEYS):
        wide = width // len(keys)
        for index, key in enumerate(keys):
            frame = Bounds(index * wide, top + place * deep, (index + 1) * wide, top + (place + 1) * deep)
            text = " " if key == "Space" else key
            nodes.append(
                ViewNode(
                    class_name=BUTTON,
                    bounds=frame,
                    description=key,
                    view_id=f"{KEYBOARD}:id/key",
                    press=actions.PressKey(text),
                )
            )
    return _window(KEYBOARD, Bounds(0, top, width, height), *nodes)


def build_toast(package: str, text: str, size: tuple[int, int]) -> Window:
    """Build the short notice near the lower edge, through which touches pass."""
    width, height = size
    frame = Bounds(width // 4, height - 400, width * 3 // 4, height - 330)
    text_node = ViewNode(class_name="android.widget.Toast", bounds=frame, text=text)
    return evolve(_window(package, frame, text_node), reacts=False)


def _window(package: str, bounds: Bounds, *children: ViewNode) -> Window:
    return Window(package, ViewNode(class_name="android.widget.FrameLayout", bounds=bounds, children=children))


def _body(size: tuple[int, int]) -> Bounds:
    """Return the area of the scrolling rows."""
    return Bounds(0, TOOL_BAR, size[0], size[1] - FOOT)


def _popup(package: str, screen: Screen, look: ScreenState) -> Window:
    width, height = look.size
    rows = (*screen.rows, *screen.foot)
    count = len(rows) + bool(screen.title)
    deep = min(POPUP_ROW, (height - 2 * STATUS_BAR) // count)
    if screen.form is Form.MENU:
        area = Bounds(width * 2 // 5, STATUS_BAR, width - 20, STATUS_BAR + count * deep)
    else:
        top = (height - count * deep) // 2
        area = Bounds(60, top, width - 60, top + count * deep)
    nodes = []
    if screen.title:
        nodes.append(_line(screen.title, Bounds(area.left, area.top, area.right, area.top + deep)))
    for index, row in enumerate(rows, len(nodes)):
        top = area.top + index * deep
        nodes.append(_row(package, row, Bounds(area.left, top, area.right, top + deep), look))
    return _window(package, area, *nodes)


def _tool_bar(package: str, screen: Screen, look: ScreenState) -> ViewNode:
    width = look.size[0]
    title = _line(screen.title, Bounds(160 if look.deep else MARGIN, STATUS_BAR, width, TOOL_BAR))
    up = ViewNode(
        class_name="android.widget.ImageButton",
        bounds=Bounds(0, STATUS_BAR, 140, TOOL_BAR),
        description="Navigate up",
        view_id=f"{package}:id/up",
        press=actions.GoBack(),
    )
    return ViewNode(
        class_name="android.view.ViewGroup",
        bounds=Bounds(0, STATUS_BAR, width, TOOL_BAR),
        children=(up, title) if look.deep else (title,),
    )


def _list(package: str, screen: Screen, look: ScreenState, body: Bounds) -> ViewNode:
    nodes = []
    for index, row in enumerate(screen.rows):
        top = body.top + index * screen.row_height - look.offset
        frame = Bounds(0, top, body.right, top + screen.row_height).clip(body)
        if not frame.empty:
            nodes.append(_row(package, row, frame, look))
    rest = longest_scroll(screen, look.size)
    above, below = look.offset > 0, look.offset < rest
    return ViewNode(
        class_name="androidx.recyclerview.widget.RecyclerView" if rest else "android.widget.LinearLayout",
        bounds=body,
        view_id=f"{package}:id/list",
        scrollable=rest > 0,
        more="above and below" if above and below else "above" if above else "below" if below else "",
        children=tuple(nodes),
    )


def _row(package: str, row: Row, frame: Bounds, look: ScreenState) -> ViewNode:
    view_id = f"{package}:id/{row.view}" if row.view else None
    key = row.key or ""
    node = partial(ViewNode, bounds=frame, view_id=view_id)
    match row.kind:
        case RowKind.LABEL:
            return _line(look.texts.get(key) or row.text, frame)
        case RowKind.ENTRY:
            return _entry(package, row, frame, look)
        case RowKind.BUTTON:
            enabled = _complete(row.press, look)
            return node(class_name=BUTTON, text=row.text, description=row.detail, press=row.press, enabled=enabled)
        case RowKind.ICON:
            return node(class_name="android.widget.ImageButton", description=row.text, press=row.press)
        case RowKind.FIELD:
            return node(
                class_name="android.widget.EditText",
                # Android reports the hint as the text of an empty field.
                text=_display_text(look.texts.get(key), hidden=row.password) or row.hint,
                description=row.hint,
                hint=row.hint,
                focused=look.cursor == key,
                password=row.password,
                press=actions.Focus(key),
                hold=actions.EditText(key),
                field=key,
            )
        case RowKind.SWITCH | RowKind.CHECK_BOX:
            return _two_states(row, frame, view_id, on=key in look.on)
        case RowKind.CHOICE:
            chosen = look.texts.get(key) or row.hint
            return node(class_name="android.widget.Spinner", text=chosen, description=row.text, press=row.press)
        case RowKind.BAR:
            return node(
                class_name="android.widget.SeekBar",
                bounds=Bounds(frame.left + MARGIN, frame.top, frame.right - MARGIN, frame.bottom),
                description=row.text,
                value=look.texts.get(key, "50"),
                press=actions.SetBar(key),
            )
        case RowKind.CELLS | RowKind.RECORDS:
            wide = frame.width // max(1, len(row.parts))
            lefts = (frame.left + place * wide for place in range(len(row.parts)))
            frames = (Bounds(left, frame.top, left + wide, frame.bottom) for left in lefts)
            nodes = tuple(_row(package, part, each, look) for part, each in zip(row.parts, frames, strict=True))
            return ViewNode(class_name="android.widget.LinearLayout", bounds=frame, children=nodes)
        case _ as never:
            assert_never(never)


def _entry(package: str, row: Row, frame: Bounds, look: ScreenState) -> ViewNode:
    lines = [line for line in (row.text, row.detail) if line]
    height = frame.height // max(1, len(lines))
    right = frame.right - (200 if row.menu else MARGIN)
    children = [
        _line(line, Bounds(frame.left + MARGIN, frame.top + index * height, right, frame.top + (index + 1) * height))
        for index, line in enumerate(lines)
    ]
    if row.menu is not None:
        children.append(
            ViewNode(
                class_name="android.widget.ImageButton",
                bounds=Bounds(right, frame.top, frame.right, frame.bottom),
                description="More options",
                view_id=f"{package}:id/more",
                press=row.menu,
            )
        )
    return ViewNode(
        class_name="android.widget.LinearLayout",
        bounds=frame,
        press=row.press,
        hold=actions.SelectEntry(row.key) if row.key else None,
        selected=row.key in look.selected,
        children=tuple(children),
    )


def _two_states(row: Row, frame: Bounds, view_id: str | None, *, on: bool) -> ViewNode:
    press = actions.ToggleSwitch(row.key or "")
    knob = ViewNode(
        class_name="android.widget.Switch" if row.kind is RowKind.SWITCH else "android.widget.CheckBox",
        bounds=Bounds(frame.right - 240, frame.top, frame.right - MARGIN, frame.bottom),
        description=row.text,
        view_id=view_id,
        checked=on,
        press=press,
    )
    line = _line(row.text, Bounds(frame.left + MARGIN, frame.top, frame.right - 240, frame.bottom))
    return ViewNode(class_name="android.widget.LinearLayout", bounds=frame, press=press, children=(line, knob))


def _line(text: str, frame: Bounds) -> ViewNode:
    return ViewNode(class_name=LINE, bounds=frame, text=text)


def _complete(press: actions.Action | None, look: ScreenState) -> bool:
    return not isinstance(press, actions.Submit) or all(look.texts.get(key, "").strip() for key in press.fields)


def _display_text(text: str | None, *, hidden: bool) -> str | None:
    if not text:
        return None
    return "•" * len(text) if hidden else text
