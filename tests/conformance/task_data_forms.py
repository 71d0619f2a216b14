"""Phone tasks with settings, forms, pickers, buttons and names."""

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from clients.phone.emulator.actions import GoBack, ShowScreen
from clients.phone.emulator.layout import App, Form, Screen, button, cells, label
from clients.phone.emulator.record_apps import CALENDAR, CLOCK, EXPENSES, FILES, NOTES, PLAYER, TODO
from clients.phone.emulator.sample_apps import CAMERA, SETTINGS
from tests.conformance.task_goals import (
    Task,
    TaskRow,
    both,
    count_is,
    row,
    said,
    sent,
    shows,
    switch_is,
    tasks_of,
    text_is,
)
from tests.conformance.task_steps import Step, bar, key, look, more, scroll, tap, type_text

Steps: TypeAlias = Sequence[Step | str]
TOUR = "com.example.tour"
WELCOME = App(
    package=TOUR,
    label="Tour",
    screens={
        "welcome": Screen(title="Welcome", foot=(button("Get started", "start", ShowScreen("reports")),)),
        "reports": Screen(
            title="Help to improve Tour?",
            rows=(cells(button("Not now", "no", ShowScreen("main")), button("More about it", "about", GoBack())),),
            form=Form.DIALOG,
        ),
        "main": Screen(
            title="Tour", rows=(label("Twelve walks along the canals."), button("Walks", "walks", ShowScreen("walks")))
        ),
        "walks": Screen(title="Walks", rows=(label("Old harbour, 3 km"), label("Mills, 7 km"))),
    },
)


def setting_tasks() -> Iterator[Task]:
    def toggled(path: Sequence[str], text: str, name: str, on: bool) -> TaskRow:
        found = (scroll(page) for page in path if page == "Connected devices")
        prompt = f"Turn {text} {'on' if on else 'off'} and check that it is so."
        return row(prompt, switch_is(SETTINGS, name, on), SETTINGS, *found, *path, text, look())

    def slid(package: str, path: str, text: str, name: str, value: int) -> TaskRow:
        goal = text_is(package, name, str(value))
        return row(f"Set {text} to {value} percent.", goal, package, path, bar(text, value), look())

    quick = [key("quick_settings"), tap("Wi-Fi")]
    yield from tasks_of(
        "toggle a setting and verify",
        toggled(["Network"], "Wi-Fi", "wifi", False),
        toggled(["Network"], "Mobile data", "mobile", False),
        toggled([], "Airplane mode", "airplane", True),
        toggled(["Connected devices"], "Bluetooth", "bluetooth", True),
        toggled(["Connected devices"], "NFC", "nfc", True),
        toggled(["Display"], "Adaptive brightness", "adaptive", False),
        toggled(["Display"], "Dark theme", "dark", True),
        toggled(["Sound"], "Vibrate for calls", "vibrate", True),
        row("Turn the alarm for work on.", switch_is(CLOCK, "alarm 1", True), CLOCK, "06:45 Work"),
        ("Turn Wi-Fi off from the quick settings.", quick, switch_is(SETTINGS, "wifi", False)),
    )
    yield from tasks_of(
        "slider to a value",
        slid(SETTINGS, "Display", "Brightness level", "brightness", 80),
        slid(SETTINGS, "Display", "Brightness level", "brightness", 10),
        slid(SETTINGS, "Sound", "Media volume", "media", 25),
        slid(SETTINGS, "Sound", "Ring volume", "ring", 60),
        slid(PLAYER, "Slow Train", "Position", "place", 75),
    )
    first, begun = "open an app, get past its first questions", ("Get started", "Not now")
    yield from tasks_of(
        first,
        row("Open Tour and go to its first page.", shows("main"), TOUR, *begun),
        row("Show the walks of Tour.", shows("walks"), TOUR, *begun, "Walks"),
    )
    mills = row("How long is the walk along the mills?", said("7 km"), TOUR, *begun, "Walks")
    yield from tasks_of(first, mills, answer="7 km")


def form_tasks() -> Iterator[Task]:
    def expense(name: str, amount: str, category: str) -> TaskRow:
        chosen = [] if category == "Food" else ["Category", category]
        goal = count_is(EXPENSES, "expense", 1, name=name, amount=amount, category=category)
        steps: Steps = ("Add expense", type_text("Name", name), type_text("Amount", amount), *chosen, "Save")
        return row(f"Add the expense {name}, {amount}, category {category}.", goal, EXPENSES, *steps)

    def todo(name: str, priority: str) -> TaskRow:
        goal = count_is(TODO, "task", 1, task=name, priority=priority)
        steps = ("Add task", type_text("Task", name), "Priority", priority, "Save")
        return row(f"Add the task {name} with priority {priority}.", goal, TODO, *steps)

    def note(title: str, folder: str, text: str) -> TaskRow:
        chosen = [] if folder == "Home" else ["Folder", folder]
        goal = count_is(NOTES, "note", 1, title=title, folder=folder, text=text)
        steps: Steps = ("New note", type_text("Title", title), *chosen, type_text("Text", text), "Save")
        return row(f"Write a note {title} in {folder}: {text}", goal, NOTES, *steps)

    absent = count_is(EXPENSES, "expense", 0, name="Tea")
    unsaved = ("Add expense", type_text("Name", "Tea"), key("back"))
    yield from tasks_of(
        "fill a form and save (or not)",
        expense("Tea", "4.10", "Food"),
        expense("Ticket to Leiden", "9.80", "Travel"),
        expense("Chess set", "25.00", "Fun"),
        todo("Paint the door", "High"),
        todo("Feed the cat", "Medium"),
        note("Bread", "Home", "flour, water, salt"),
        note("Visit", "Work", "Bo comes at ten."),
        row("Start a new expense Tea, but do not save it.", absent, EXPENSES, *unsaved),
    )

    def event(title: str, months: int, day: str, iso: str, hour: str, minute: str, repeat: str = "") -> TaskRow:
        steps: list[Step | str] = ["New event", type_text("Title", title), "Day", *["Next month"] * months, day]
        steps += [
            "Start",
            f"{int(hour)} hours",
            f"{int(minute)} minutes",
            "OK",
            *(["Repeat", repeat] if repeat else []),
        ]
        shown = {"day": iso, "start": f"{hour}:{minute}", "repeat": repeat or "Does not repeat"}
        prompt = f"Add the event {title} on {day} at {hour}:{minute} {repeat}".strip()
        return row(prompt, count_is(CALENDAR, "event", 1, title=title, **shown), CALENDAR, *steps, "Save")

    def alarm(hour: str, minute: str, name: str) -> TaskRow:
        goal = count_is(CLOCK, "alarm", 1, at=f"{hour}:{minute}", name=name)
        steps = ("Time", f"{int(hour)} hours", f"{int(minute)} minutes", "OK", type_text("Label", name), "Save")
        return row(f"Set an alarm {name} for {hour}:{minute}.", goal, CLOCK, "Add alarm", *steps)

    yield from tasks_of(
        "date and time pickers",
        event("Piano", 0, "28 November 2026", "2026-11-28", "15", "00"),
        event("Boat trip", 1, "12 December 2026", "2026-12-12", "09", "45", "Monthly"),
        event("Yoga", 2, "4 January 2027", "2027-01-04", "18", "30", "Weekly"),
        event("Supper", 1, "24 December 2026", "2026-12-24", "19", "00"),
        alarm("05", "55", "Ferry"),
        alarm("22", "10", "Bed"),
    )

    def timer(prompt: str, number: str, state: str, *steps: str) -> TaskRow:
        goal = both(text_is(CLOCK, "digits", number), text_is(CLOCK, "timer", state))
        return row(prompt, goal, CLOCK, "Timer", *number, *steps)

    watch = ("Stopwatch", "Start", "Pause")
    yield from tasks_of(
        "number pad, start and stop",
        timer("Enter 4 minutes 50 into the timer, and do not start it.", "450", "stopped"),
        timer("Enter 12 minutes 30 into the timer, and do not start it.", "1230", "stopped"),
        timer("Start a timer of 3 minutes 15.", "315", "running", "Start"),
        row("Start the stopwatch, then pause it.", text_is(CLOCK, "watch", "paused"), CLOCK, *watch),
    )
    song = ("Copper Sky", "Play", "Pause")
    yield from tasks_of(
        "camera and recorder",
        row("Take a photo.", sent("photo"), CAMERA, "Shutter"),
        row("Take two photos.", sent("photo", 2), CAMERA, "Shutter", "Again", "Shutter"),
        row("Play Copper Sky, then pause it.", text_is(PLAYER, "state", "paused"), PLAYER, *song),
    )

    def made(name: str, folder: str, *chosen: str) -> TaskRow:
        goal = count_is(FILES, "file", 1, name=name, folder=folder)
        steps: Steps = ("New file", type_text("Name", name), *chosen, "Create")
        return row(f"Make the file {name} in {folder}.", goal, FILES, *steps)

    renamed = ("Pictures", more("boat.jpg"), "Rename", type_text("Name", "ferry.jpg"), "OK")
    yield from tasks_of(
        "create a file or folder with a name",
        made("list.txt", "Download"),
        made("2026.csv", "Documents", "Folder", "Documents"),
        made("song.mid", "Music", "Folder", "Music"),
        row("Rename boat.jpg to ferry.jpg.", count_is(FILES, "file", 1, name="ferry.jpg"), FILES, *renamed),
    )
