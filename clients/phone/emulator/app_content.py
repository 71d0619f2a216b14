"""Content of the apps: texts, switches, selections and records, their changes, and screens filled in with them."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import assert_never

from attrs import evolve, frozen

from clients.phone.emulator.actions import (
    Action,
    ChangeRecords,
    ClearSelection,
    OpenPicker,
    SelectEntry,
    SetBar,
    SetText,
    ShowScreen,
    ToggleSwitch,
)
from clients.phone.emulator.layout import App, Row, RowKind, Screen

__all__ = ["AppContent", "Outcome"]

ID = "id"  # text and member: the record that is open
ALL = "All"  # value of a filter that each record meets
_NAME = re.compile(r"\{(\w+)\}")


@frozen
class Outcome:
    """Result of a change: the screen to show, empty for none, and a notice that disappears."""

    then: str = ""
    toast: str = ""


class AppContent:
    """Content of all apps, by package and key. Tests and drivers may read and write its attributes."""

    def __init__(self, apps: Iterable[App]) -> None:
        self.texts: dict[tuple[str, str], str] = {}
        self.switches: dict[tuple[str, str], bool] = {}
        self.selected: dict[tuple[str, str], None] = {}
        self.records: dict[tuple[str, str], dict[str, dict[str, str]]] = {}  # by id, in their order
        self._counts: Counter[tuple[str, str]] = Counter()  # records ever made, by collection
        for app in apps:
            self.texts |= {(app.package, key): text for key, text in app.texts.items()}
            self.switches |= {(app.package, key): True for key in app.on}
            for name, found in app.records.items():
                for members in found:
                    self.add(app.package, name, members)

    def add(self, package: str, collection: str, members: Mapping[str, str], *, first: bool = False) -> str:
        """Add a record, the last one or the first one; return its id."""
        self._counts[package, collection] += 1
        key = str(self._counts[package, collection])
        old = self.records.get((package, collection), {})
        new = {key: {**members, ID: key}}
        self.records[package, collection] = {**new, **old} if first else {**old, **new}
        return key

    def list(self, package: str, collection: str) -> list[dict[str, str]]:
        """Return the records of a collection in their order."""
        return list(self.records.get((package, collection), {}).values())

    def texts_of(self, package: str) -> dict[str, str]:
        """Return the texts of an app by key."""
        return {key: text for (owner, key), text in self.texts.items() if owner == package}

    def set_defaults(self, package: str, screen: Screen) -> None:
        """Set each choice field of a screen that has no value yet to its first choice."""
        for row in screen.rows:
            if isinstance(row.press, OpenPicker) and row.press.choices and not self.texts.get((package, row.press.key)):
                self.texts[package, row.press.key] = row.press.choices[0]

    def apply(
        self, action: ToggleSwitch | SelectEntry | ClearSelection | SetText | SetBar, package: str, part: float
    ) -> None:
        """Change a text, a switch or a selection; `part` (0 to 1) is where in its width the node was touched."""
        match action:
            case ToggleSwitch(key):
                self.switches[package, key] = not self.switches.get((package, key), False)
            case SelectEntry(key):
                if (package, key) in self.selected:
                    del self.selected[package, key]
                else:
                    self.selected[package, key] = None
            case ClearSelection():
                self.selected.clear()
            case SetText(key, text, adds):
                self.texts[package, key] = (self.texts.get((package, key), "") if adds else "") + text
            case SetBar(key):
                self.texts[package, key] = str(round(100 * part))
            case _ as never:
                assert_never(never)

    def edit(self, command: str, place: tuple[str, str], pasted: str) -> str:
        """Perform `Select all`, `Copy`, `Cut` or `Delete` (the last character) on the field at `place`.

        Any other command appends `pasted`; `Select all` changes nothing. Returns the new clipboard text: for `Copy` and
        `Cut` the former text of the field unless empty, else `pasted`.
        """
        text = self.texts.get(place, "")
        match command:
            case "Select all":
                return pasted
            case "Copy":
                return text or pasted
            case "Cut":
                self.texts[place] = ""
                return text or pasted
            case "Delete":
                self.texts[place] = text[:-1]
            case _:
                self.texts[place] = text + pasted
        return pasted

    def change(self, action: ChangeRecords, package: str) -> Outcome:
        """Write, copy or delete records, and deselect all; return the screen and the toast to show.

        If a needed text is blank, nothing changes, and the toast names that text.
        """
        texts = self.texts_of(package)
        for key in action.needs:
            if not texts.get(key, "").strip():
                return Outcome(toast=f"{key.capitalize()} is missing")
        found = self.records.setdefault((package, action.collection), {})
        marks = [key for key in found if (package, f"{action.collection} {key}") in self.selected]
        ids = marks or [key for key in (texts.get(ID, ""),) if key in found]
        members = {name: texts.get(name, "") for name in action.fields}
        match action.how:
            case "delete":
                for key in ids:
                    del found[key]
            case "copy":
                for key in ids:
                    self.add(package, action.into or action.collection, {**found[key], **members})
            case _:
                for key in ids:
                    found[key] |= members
                if not ids:
                    self.add(package, action.collection, members)
        self.selected.clear()
        return Outcome(_filled(action.then, texts), _filled(action.toast, texts))

    def fill(self, screen: Screen, package: str) -> Screen:
        """Return a screen with the app's texts in place of names in braces, empty where the app has no such text.

        A row of kind `RECORDS` becomes a row for each record that matches its `where` and the searched text.
        """
        texts = self.texts_of(package)
        return evolve(
            screen,
            title=_filled(screen.title, texts),
            rows=tuple(row for each in screen.rows for row in self._rows(each, package, texts)),
            foot=tuple(row for each in screen.foot for row in self._rows(each, package, texts)),
        )

    def _rows(self, row: Row, package: str, texts: Mapping[str, str]) -> Iterator[Row]:
        if row.kind is not RowKind.RECORDS:
            yield _of_record(row, {}, texts) if "{" in f"{row.text}{row.detail}{row.key}" else row
            return
        wanted = [(name, _filled(value, texts)) for name, value in row.where]
        search = texts.get(row.search, "").strip().lower()
        for record in self.list(package, row.collection):
            has_words = not search or any(search in value.lower() for value in record.values())
            if has_words and all(value in ("", ALL, record.get(name)) for name, value in wanted):
                yield _of_record(row.parts[0], record, {**texts, **record}, f"{row.collection} {record[ID]}")


def _of_record(row: Row, record: Mapping[str, str], texts: Mapping[str, str], key: str | None = None) -> Row:
    """Return a row with `texts` in place of names in braces; its effects that show a screen fill in the record."""
    detail = None if row.detail is None else _filled(row.detail, texts)
    press, menu = (_opening(action, record) for action in (row.press, row.menu))
    key = _filled(row.key, texts) if row.key else key
    return evolve(row, text=_filled(row.text, texts), detail=detail, key=key, press=press, menu=menu)


def _opening(action: Action | None, record: Mapping[str, str]) -> Action | None:
    if isinstance(action, ShowScreen) and record:
        return evolve(action, fill=(*record.items(), *action.fill))
    return action


def _filled(text: str, texts: Mapping[str, str]) -> str:
    return _NAME.sub(lambda found: texts.get(found[1], ""), text)
