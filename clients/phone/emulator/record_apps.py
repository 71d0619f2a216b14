"""Apps that store records, as data: expenses, tasks, calendar, notes, files, player, clock. Names are invented."""

from clients.phone.emulator.actions import ChangeRecords, GoBack, SetText, ShowScreen
from clients.phone.emulator.layout import (
    App,
    Form,
    Row,
    Screen,
    bar,
    button,
    cells,
    check_box,
    choice,
    date,
    entry,
    icon,
    label,
    records,
    text_field,
    time,
)
from clients.phone.emulator.sample_apps import SAMPLE_APPS

__all__ = ["ALL_APPS", "CALENDAR", "CLOCK", "EXPENSES", "FILES", "NOTES", "PLAYER", "RECORD_APPS", "TODO"]

EXPENSES = "com.example.expenses"
TODO = "com.example.todo"
CALENDAR = "com.example.calendar"
NOTES = "com.example.notes"
FILES = "com.example.files"
PLAYER = "com.example.player"
CLOCK = "com.android.deskclock"
MORE = "More options"
CANCEL = button("Cancel", "cancel", GoBack())
LONG_TEXT = "\n".join(f"{number}. The boat leaves the harbour at {number % 12 + 6}:15." for number in range(1, 71))


def _empty(*keys: str) -> tuple[tuple[str, str], ...]:
    """Return pairs of key and empty text for a form and the id of its record, so that a new record is entered."""
    return tuple((key, "") for key in ("id", *keys))


def _confirmed(collection: str, name: str, then: str) -> dict[str, Screen]:
    """Return the screens of an open record: a menu with Edit and Delete, and a dialog that confirms the deletion."""
    erase = ChangeRecords("delete", collection, then, toast="Deleted")
    return {
        "menu": _menu(entry("Edit", None, ShowScreen("edit")), entry("Delete", None, ShowScreen("confirm"))),
        "confirm": _dialog(
            f"Delete {name}?", label("This cannot be undone."), cells(CANCEL, button("Delete", "delete", erase))
        ),
    }


def _menu(*rows: Row) -> Screen:
    return Screen(title="", rows=rows, form=Form.MENU)


def _dialog(title: str, *rows: Row) -> Screen:
    return Screen(title=title, rows=rows, form=Form.DIALOG)


def _form(title: str, collection: str, then: str, rows: tuple[Row, ...], needs: tuple[str, ...]) -> Screen:
    keys = tuple(row.key for row in rows if row.key)
    save = ChangeRecords("write", collection, then, keys, needs, toast="Saved")
    return Screen(title=title, rows=rows, foot=(button("Save", "save", save),))


def _expenses() -> App:
    form = (
        text_field("name", "Name"),
        text_field("amount", "Amount"),
        choice("category", "Category", "Food", "Travel", "Home", "Fun"),
        text_field("note", "Note"),
        date("day", "Date"),
    )
    keys = tuple(str(row.key) for row in form)
    found = (
        ("Lunch", "12.50", "Food", "with Ada", "2026-11-02"),
        ("Train to Delft", "23.00", "Travel", "", "2026-11-03"),
        ("Lunch", "12.50", "Food", "with Ada", "2026-11-02"),
        ("Lamp", "39.95", "Home", "for the desk", "2026-11-05"),
        ("Cinema", "14.00", "Fun", "", "2026-11-07"),
        ("Bread", "3.20", "Food", "", "2026-11-09"),
        *((f"Coffee {number}", "2.80", "Food", "", f"2026-11-{number + 9}") for number in range(1, 9)),
        ("Ferry", "7.00", "Travel", "to the island", "2026-11-20"),
    )
    erase = ChangeRecords("delete", "expense", "list", toast="Deleted")
    screens = {
        "list": Screen(
            title="Expenses",
            rows=(records("expense", entry("{name}", "{amount} · {category}", ShowScreen("detail"))),),
            foot=(
                icon("Add expense", "add", ShowScreen("edit", _empty(*keys))),
                icon(MORE, "more", ShowScreen("list menu")),
            ),
        ),
        "detail": Screen(
            title="{name}",
            rows=tuple(map(label, ("Amount: {amount}", "Category: {category}", "Note: {note}", "Date: {day}"))),
            foot=(icon(MORE, "more", ShowScreen("menu")),),
        ),
        "edit": _form("Expense", "expense", "list", form, ("name", "amount")),
        "list menu": _menu(entry("Delete selected", None, ShowScreen("confirm selected"))),
        "confirm selected": _dialog("Delete the selected expenses?", cells(CANCEL, button("Delete", "delete", erase))),
        **_confirmed("expense", "{name}", "list"),
    }
    rows = tuple(dict(zip(keys, each, strict=True)) for each in found)
    return App(package=EXPENSES, label="Expenses", screens=screens, records={"expense": rows})


def _todo() -> App:
    form = (
        text_field("task", "Task"),
        choice("priority", "Priority", "Low", "Medium", "High"),
        date("due", "Due date"),
    )
    found = (
        ("Water the plants", "High", "2026-11-28"),
        ("Call the plumber", "Low", "2026-11-30"),
        ("Return the books", "Medium", "2026-12-01"),
        ("Buy a birthday present", "High", "2026-12-04"),
    )
    screens = {
        "list": Screen(
            title="Tasks",
            rows=(
                text_field("query", "Filter tasks"),
                records("task", entry("{task}", "{priority} · {due}", ShowScreen("detail")), search="query"),
            ),
            foot=(icon("Add task", "add", ShowScreen("edit", _empty("task", "priority", "due"))),),
            late=1.0,
        ),
        "detail": Screen(
            title="{task}",
            rows=(label("Priority: {priority}"), label("Due: {due}"), check_box("done {id}", "Done")),
            foot=(icon(MORE, "more", ShowScreen("menu")),),
        ),
        "edit": _form("Task", "task", "list", form, ("task",)),
        **_confirmed("task", "{task}", "list"),
    }
    rows = tuple(dict(zip(("task", "priority", "due"), each, strict=True)) for each in found)
    return App(package=TODO, label="Tasks", screens=screens, records={"task": rows})


def _calendar() -> App:
    repeats = choice("repeat", "Repeat", "Does not repeat", "Daily", "Weekly", "Monthly")
    form = (
        text_field("title", "Title"),
        date("day", "Day"),
        time("start", "Start"),
        repeats,
        text_field("place", "Place"),
    )
    keys = tuple(str(row.key) for row in form)
    found = (
        ("Dentist", "2026-11-30", "09:30", "", "Main Street 4"),
        ("Choir", "2026-12-01", "19:00", "Weekly", "Town hall"),
        ("Dentist", "2026-12-14", "10:15", "", "Main Street 4"),
        ("Market", "2026-12-05", "08:00", "Monthly", ""),
    )
    screens = {
        "agenda": Screen(
            title="Agenda",
            rows=(
                date("shown", "Shown day"),
                records("event", entry("{title}", "{day} {start}", ShowScreen("event")), day="{shown}"),
            ),
            foot=(icon("New event", "add", ShowScreen("edit", _empty(*keys))),),
        ),
        "event": Screen(
            title="{title}",
            rows=(label("{day} {start}"), label("Repeat: {repeat}"), label("Place: {place}")),
            foot=(icon(MORE, "more", ShowScreen("menu")),),
        ),
        "edit": _form("Event", "event", "agenda", form, ("title", "day")),
        **_confirmed("event", "{title}", "agenda"),
    }
    rows = tuple(dict(zip(keys, each, strict=True)) for each in found)
    return App(package=CALENDAR, label="Calendar", screens=screens, records={"event": rows})


def _notes() -> App:
    form = (
        text_field("title", "Title"),
        choice("folder", "Folder", "Home", "Work", "Travel"),
        text_field("text", "Text"),
    )
    found = (
        ("Shopping", "Home", "milk\neggs\nflour"),
        ("Timetable", "Travel", LONG_TEXT),
        ("Meeting", "Work", "Ask Bo for the figures of October."),
        ("Wi-Fi code", "Home", "harbour-lamp-42"),
    )
    screens = {
        "list": Screen(
            title="Notes",
            rows=(
                choice("shown", "Shown folder", "All", "Home", "Work", "Travel"),
                records(
                    "note", entry("{title}", "{folder}", ShowScreen("note"), menu=ShowScreen("menu")), folder="{shown}"
                ),
            ),
            foot=(icon("New note", "add", ShowScreen("edit", _empty("title", "folder", "text"))),),
        ),
        "note": Screen(
            title="{title}",
            rows=(label("Folder: {folder}"), text_field("text", "Text")),
            foot=(
                button("Save", "save", ChangeRecords("write", "note", "list", ("text",), toast="Saved")),
                icon(MORE, "more", ShowScreen("menu")),
            ),
        ),
        "edit": _form("Note", "note", "list", form, ("title",)),
        **_confirmed("note", "{title}", "list"),
    }
    rows = tuple(dict(zip(("title", "folder", "text"), each, strict=True)) for each in found)
    return App(package=NOTES, label="Notes", screens=screens, records={"note": rows})


def _files() -> App:
    found = (
        ("report.pdf", "Download", "Report of the harbour, 12 pages."),
        ("ticket.pdf", "Download", "Coach 4, seat 61."),
        ("boat.jpg", "Pictures", ""),
        ("lake.jpg", "Pictures", ""),
        ("plan.txt", "Documents", "Paint the door, then the fence."),
    )
    folders = ("Download", "Pictures", "Documents", "Music")
    create = ChangeRecords("write", "file", "folders", ("name", "folder"), ("name",), toast="Created")
    rename = ChangeRecords("write", "file", "folder", ("name",), ("name",), toast="Renamed")
    move = ChangeRecords("write", "file", "folder", ("folder",), toast="Moved to {folder}")
    keep = ChangeRecords("copy", "file", "folder", ("folder",), toast="Copied to {folder}")
    screens = {
        "folders": Screen(
            title="Files",
            rows=tuple(entry(each, None, ShowScreen("folder", (("shown", each),))) for each in folders),
            foot=(icon("New file", "add", ShowScreen("new", _empty("name", "folder"))),),
        ),
        "folder": Screen(
            title="{shown}",
            rows=(
                records("file", entry("{name}", None, ShowScreen("file"), menu=ShowScreen("menu")), folder="{shown}"),
            ),
            foot=(icon(MORE, "more", ShowScreen("menu")),),
        ),
        "file": Screen(title="{name}", rows=(label("{folder}/{name}"), label("{content}"))),
        "new": Screen(
            title="New file",
            rows=(text_field("name", "Name"), choice("folder", "Folder", *folders)),
            foot=(button("Create", "create", create),),
        ),
        "rename": _dialog("Rename", text_field("name", "Name"), cells(CANCEL, button("OK", "ok", rename))),
        "move": _dialog(
            "Move or copy",
            choice("folder", "Target folder", *folders),
            cells(CANCEL, button("Copy here", "copy", keep), button("Move here", "move", move)),
        ),
        "menu": _menu(
            entry("Rename", None, ShowScreen("rename")),
            entry("Move or copy", None, ShowScreen("move")),
            entry("Delete", None, ShowScreen("confirm")),
        ),
        "confirm": _confirmed("file", "{name}", "folder")["confirm"],
    }
    rows = tuple(dict(zip(("name", "folder", "content"), each, strict=True)) for each in found)
    return App(package=FILES, label="Files", screens=screens, records={"file": rows})


def _player() -> App:
    songs = ("Harbour Lights", "Slow Train", "Two Rivers", "Night Ferry", "Copper Sky", "Old Bridge")
    lists = ("Queue", "Morning", "Road trip")
    add = ChangeRecords("copy", "song", "songs", ("list",), into="listed", toast="Added to {list}")
    screens = {
        "songs": Screen(
            title="Songs",
            rows=(
                records("song", entry("{name}", "{artist}", ShowScreen("song"), menu=ShowScreen("menu"))),
                entry("Playlists", None, ShowScreen("lists")),
            ),
        ),
        "song": Screen(
            title="{name}",
            rows=(bar("place", "Position"), choice("repeat", "Repeat", "Off", "One", "All"), label("State: {state}")),
            foot=(
                cells(
                    button("Play", "play", SetText("state", "playing")),
                    button("Pause", "pause", SetText("state", "paused")),
                ),
            ),
        ),
        "menu": _menu(
            entry("Add to queue", None, ShowScreen("queued", (("list", "Queue"),))),
            entry("Add to playlist", None, ShowScreen("choose")),
            entry("Details", None, ShowScreen("song")),
        ),
        "choose": _dialog(
            "Add {name} to",
            choice("list", "Playlist", "Morning", "Road trip"),
            cells(CANCEL, button("Add", "add", add)),
        ),
        "queued": _dialog("Play {name} next?", cells(CANCEL, button("Queue it", "queue", add))),
        "lists": Screen(
            title="Playlists",
            rows=tuple(entry(each, None, ShowScreen("list", (("list", each),))) for each in lists),
        ),
        "list": Screen(title="{list}", rows=(records("listed", entry("{name}", "{artist}"), list="{list}"),)),
    }
    rows = tuple({"name": name, "artist": f"Band {number}"} for number, name in enumerate(songs, 1))
    return App(package=PLAYER, label="Player", screens=screens, records={"song": rows}, texts={"state": "stopped"})


def _clock() -> App:
    keys = tuple(
        cells(*(button(digit, f"digit_{digit}", SetText("digits", digit, adds=True)) for digit in part))
        for part in ("123", "456", "789", "0")
    )
    screens = {
        "alarms": Screen(
            title="Alarms",
            rows=(
                records("alarm", check_box("alarm {id}", "{at} {name}")),
                entry("Timer", None, ShowScreen("timer", (("digits", ""), ("timer", "stopped")))),
                entry("Stopwatch", None, ShowScreen("stopwatch")),
            ),
            foot=(icon("Add alarm", "add", ShowScreen("edit", _empty("at", "name"))),),
        ),
        "edit": _form("Alarm", "alarm", "alarms", (time("at", "Time"), text_field("name", "Label")), ("at",)),
        "timer": Screen(
            title="Timer",
            rows=(label("0", "digits"), *keys, button("Clear digits", "clear", SetText("digits", ""))),
            foot=(button("Start", "start", SetText("timer", "running")), label("Timer {timer}")),
        ),
        "stopwatch": Screen(
            title="Stopwatch",
            rows=(label("Stopwatch {watch}"),),
            foot=(
                button("Start", "start", SetText("watch", "running")),
                button("Pause", "pause", SetText("watch", "paused")),
            ),
        ),
    }
    alarms = ({"at": "06:45", "name": "Work"}, {"at": "08:30", "name": "Weekend"})
    return App(package=CLOCK, label="Clock", screens=screens, records={"alarm": alarms}, texts={"watch": "stopped"})


RECORD_APPS: tuple[App, ...] = (_expenses(), _todo(), _calendar(), _notes(), _files(), _player(), _clock())
ALL_APPS = (*SAMPLE_APPS, *RECORD_APPS)
