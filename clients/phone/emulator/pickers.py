"""Windows that set a text: a menu of choices, a calendar, hours and minutes, and the menu of a text field."""

from calendar import Calendar, month_name
from collections.abc import Mapping
from datetime import date
from typing import assert_never

from attrs import frozen

from clients.phone.emulator.actions import Action, Dismiss, EditText, OpenPicker, SetText
from clients.phone.emulator.layout import Form, Row, RowKind, Screen, button, cells, entry

__all__ = ["Picker", "picker_screen"]

FIRST_MONTH = "2026-11"  # of a calendar without a date
MINUTES = range(0, 60, 5)
CANCEL = button("Cancel", "cancel", Dismiss())


@frozen
class Picker:
    """An open picker, with the package of the app whose text it sets."""

    package: str
    action: OpenPicker | EditText


def picker_screen(picker: Picker, texts: Mapping[str, str]) -> Screen:
    """Build the screen of a picker; `texts` are the texts of its app by key."""
    match picker.action:
        case EditText(key):
            commands = ("Select all", "Cut", "Copy", "Paste")
            return Screen(
                title="", rows=tuple(entry(each, None, EditText(key, each)) for each in commands), form=Form.MENU
            )
        case OpenPicker("date", key, title):
            return _calendar(title, key, texts.get(f"{key} month") or texts.get(key, "")[:7] or FIRST_MONTH)
        case OpenPicker("time", key, title):
            return _clock(title, key, texts.get(f"{key} new") or texts.get(key) or "12:00")
        case OpenPicker(_, key, _, choices):
            rows = tuple(entry(each, None, SetText(key, each, closes=True)) for each in choices)
            return Screen(title="", rows=rows, form=Form.MENU)
        case _ as never:
            assert_never(never)


def _calendar(title: str, key: str, shown: str) -> Screen:
    year, month = map(int, shown.split("-"))
    weeks = Calendar().monthdatescalendar(year, month)
    days = (cells(*(_day(day, key) for day in week)) for week in weeks)
    before = f"{year - (month == 1)}-{(month - 2) % 12 + 1:02}"
    after = f"{year + (month == 12)}-{month % 12 + 1:02}"
    months = cells(
        button("Previous month", "previous", SetText(f"{key} month", before)),
        button("Next month", "next", SetText(f"{key} month", after)),
    )
    head = f"{title}: {month_name[month]} {year}"
    return Screen(title=head, rows=(months, *days, CANCEL), form=Form.DIALOG)


def _day(day: date, key: str) -> Row:
    name = f"{day.day} {month_name[day.month]} {day.year}"
    return _cell(str(day.day), name, SetText(key, day.isoformat(), closes=True))


def _clock(title: str, key: str, shown: str) -> Screen:
    hour, _, minute = shown.partition(":")

    def hours(first: int) -> Row:
        new = f"{key} new"
        return cells(*(_cell(str(h), f"{h} hours", SetText(new, f"{h:02}:{minute}")) for h in range(first, first + 6)))

    def minutes(first: int) -> Row:
        new = f"{key} new"
        half = MINUTES[first : first + 6]
        return cells(*(_cell(f"{m:02}", f"{m} minutes", SetText(new, f"{hour}:{m:02}")) for m in half))

    rows = (*map(hours, range(0, 24, 6)), *map(minutes, (0, 6)))
    done = cells(CANCEL, button("OK", "ok", SetText(key, shown, closes=True)))
    return Screen(title=f"{title}: {shown}", rows=(*rows, done), form=Form.DIALOG)


def _cell(text: str, description: str, press: Action) -> Row:
    return Row(kind=RowKind.BUTTON, text=text, detail=description, press=press)
