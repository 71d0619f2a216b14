"""Apps and screens as data: rows, forms and records. `widgets` draws them, `app_content` fills in texts and records.

A screen is a tool bar, a list of rows that scrolls when it is longer than the screen, and up to two rows that stay at
the bottom. A dialog and a menu are screens above the one from which they were opened. A text may name texts of the app
in braces: `Delete {name}?`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto

from attrs import frozen

from clients.phone.emulator.actions import Action, OpenPicker

__all__ = [
    "App",
    "Form",
    "Row",
    "RowKind",
    "Screen",
    "ScreenState",
    "bar",
    "button",
    "cells",
    "check_box",
    "choice",
    "date",
    "entry",
    "icon",
    "label",
    "records",
    "switch",
    "text_field",
    "time",
]


class RowKind(Enum):
    """Kinds of rows, by the widget that shows them; `RECORDS` is a row for each record."""

    LABEL = auto()
    ENTRY = auto()
    BUTTON = auto()
    ICON = auto()
    FIELD = auto()
    SWITCH = auto()
    CHECK_BOX = auto()
    CHOICE = auto()
    BAR = auto()
    CELLS = auto()
    RECORDS = auto()


class Form(Enum):
    """Forms of screens: a whole one, or a window above the screen from which it was opened."""

    WHOLE = auto()
    DIALOG = auto()
    MENU = auto()


@frozen(kw_only=True)
class Row:
    """A row of a screen. `key` names the text or switch behind it; `view` is the last part of its resource name.

    `menu` is the effect of a button `More options` at its end. A row of kind `RECORDS` is drawn once for each record of
    `collection` whose members have the values `where` (an empty value and `ALL` match each record), and which contains
    the app's text named `search`, if that is set.
    """

    kind: RowKind
    text: str = ""
    detail: str | None = None
    key: str | None = None
    view: str | None = None
    hint: str | None = None
    password: bool = False
    press: Action | None = None
    menu: Action | None = None
    parts: tuple[Row, ...] = ()
    collection: str = ""
    where: tuple[tuple[str, str], ...] = ()
    search: str = ""


@frozen(kw_only=True)
class Screen:
    """A screen of an app. Its rows are shown `late` seconds after the screen."""

    title: str
    rows: tuple[Row, ...] = ()
    foot: tuple[Row, ...] = ()
    row_height: int = 160  # px
    form: Form = Form.WHOLE
    late: float = 0.0


@frozen(kw_only=True)
class App:
    """An installed app: screens by name, and initial records, texts and switches.

    The first screen opens with the app.
    """

    package: str
    label: str
    screens: Mapping[str, Screen]
    records: Mapping[str, tuple[Mapping[str, str], ...]] = {}
    texts: Mapping[str, str] = {}
    on: tuple[str, ...] = ()  # switches

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
    size: tuple[int, int] = (1080, 2400)  # px; the sides change places with a rotation


def label(text: str, key: str | None = None) -> Row:
    """Build a line of text; with a key, it shows the text of that field once it has one."""
    return Row(kind=RowKind.LABEL, text=text, key=key)


def entry(
    text: str,
    detail: str | None = None,
    press: Action | None = None,
    *,
    key: str | None = None,
    menu: Action | None = None,
) -> Row:
    """Build a list entry of one or two lines; with a key, a long press selects or deselects it."""
    return Row(kind=RowKind.ENTRY, text=text, detail=detail, press=press, key=key, menu=menu)


def button(text: str, view: str, press: Action) -> Row:
    """Build a button; one whose effect is `Submit` is enabled only while all its fields have text."""
    return Row(kind=RowKind.BUTTON, text=text, view=view, press=press)


def icon(description: str, view: str, press: Action) -> Row:
    """Build a button without text; its description names it."""
    return Row(kind=RowKind.ICON, text=description, view=view, press=press)


def text_field(key: str, hint: str, *, password: bool = False) -> Row:
    """Build a text field."""
    return Row(kind=RowKind.FIELD, key=key, hint=hint, view=key, password=password)


def switch(key: str, text: str) -> Row:
    """Build a switch with its label."""
    return Row(kind=RowKind.SWITCH, text=text, key=key, view=key)


def check_box(key: str, text: str) -> Row:
    """Build a check box with its label."""
    return Row(kind=RowKind.CHECK_BOX, text=text, key=key, view=key)


def choice(key: str, text: str, *choices: str) -> Row:
    """Build a spinner, which shows the chosen one of some texts."""
    press = OpenPicker("choice", key, text, choices)
    return Row(kind=RowKind.CHOICE, text=text, key=key, view=key, press=press, hint=choices[0])


def date(key: str, text: str) -> Row:
    """Build a button that shows a date and opens a calendar."""
    return Row(kind=RowKind.CHOICE, text=text, key=key, view=key, press=OpenPicker("date", key, text), hint="no date")


def time(key: str, text: str) -> Row:
    """Build a button that shows a time and opens the hours and minutes."""
    return Row(kind=RowKind.CHOICE, text=text, key=key, view=key, press=OpenPicker("time", key, text), hint="no time")


def bar(key: str, text: str) -> Row:
    """Build a bar, which a touch sets to a part of its length."""
    return Row(kind=RowKind.BAR, text=text, key=key, view=key)


def cells(*parts: Row) -> Row:
    """Build a row that shows these rows side by side."""
    return Row(kind=RowKind.CELLS, parts=parts)


def records(collection: str, row: Row, *, search: str = "", **where: str) -> Row:
    """Build a row that is drawn for each record that matches `search` and `where`, with its members in the texts."""
    return Row(kind=RowKind.RECORDS, collection=collection, parts=(row,), search=search, where=tuple(where.items()))
