"""Phone tasks with settings, forms, pickers, buttons and names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from clients.phone.emulator.actions import GoBack, ShowScreen
from clients.phone.emulator.layout import App, Form, Screen, button, cells, label
from clients.phone.emulator.record_apps import CALENDAR, CLOCK, EXPENSES, FILES, NOTES, PLAYER, TODO
from clients.phone.emulator.sample_apps import CAMERA, SETTINGS
from tests.conformance.task_goals import (
    Goal,
    Task,
    both,
    count_is,
    said,
    sent,
    shows,
    switch_is,
    tasks_of,
    text_is,
)
from tests.conformance.task_steps import (
    Step,
    bar,
    key,
    look,
    more,
    open_app,
    scroll,
    tap,
    type_text,
)

__all__ = ["WELCOME", "form_tasks", "setting_tasks"]

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
    def toggled(path: Sequence[str], text: str, name: str, on: bool) -> tuple[str, Sequence[Step], Goal]:
        steps = [open_app(SETTINGS), *(scroll(page) for page in path if page == "Connected devices"), *map(tap, path)]
        prompt = f"Turn {text} {'on' if on else 'off'} and check that it is so."
        return prompt, [*steps, tap(text), look()], switch_is(SETTINGS, name, on)

    yield from tasks_of(
        "toggle a setting and verify",
        [
            toggled(["Network"], "Wi-Fi", "wifi", False),
            toggled(["Network"], "Mobile data", "mobile", False),
            toggled([], "Airplane mode", "airplane", True),
            toggled(["Connected devices"], "Bluetooth", "bluetooth", True),
            toggled(["Connected devices"], "NFC", "nfc", True),
            toggled(["Display"], "Adaptive brightness", "adaptive", False),
            toggled(["Display"], "Dark theme", "dark", True),
            toggled(["Sound"], "Vibrate for calls", "vibrate", True),
            ("Turn the alarm for work on.", [open_app(CLOCK), tap("06:45 Work")], switch_is(CLOCK, "alarm 1", True)),
            (
                "Turn Wi-Fi off from the quick settings.",
                [key("quick_settings"), tap("Wi-Fi")],
                switch_is(SETTINGS, "wifi", False),
            ),
        ],
    )
    yield from tasks_of(
        "slider to a value",
        [
            (
                f"Set {text} to {value} percent.",
                [open_app(package), *map(tap, path), bar(text, value), look()],
                text_is(package, name, str(value)),
            )
            for package, path, text, name, value in (
                (SETTINGS, ["Display"], "Brightness level", "brightness", 80),
                (SETTINGS, ["Display"], "Brightness level", "brightness", 10),
                (SETTINGS, ["Sound"], "Media volume", "media", 25),
                (SETTINGS, ["Sound"], "Ring volume", "ring", 60),
                (PLAYER, ["Slow Train"], "Position", "place", 75),
            )
        ],
    )
    yield from tasks_of(
        "open an app, get past its first questions",
        [
            (
                "Open Tour and go to its first page.",
                [open_app(TOUR), tap("Get started"), tap("Not now")],
                shows("main"),
            ),
            (
                "Show the walks of Tour.",
                [open_app(TOUR), tap("Get started"), tap("Not now"), tap("Walks")],
                shows("walks"),
            ),
        ],
    )
    walks = [open_app(TOUR), tap("Get started"), tap("Not now"), tap("Walks")]
    yield from tasks_of(
        "open an app, get past its first questions",
        [("How long is the walk along the mills?", walks, said("7 km"))],
        "7 km",
    )


def form_tasks() -> Iterator[Task]:
    def expense(name: str, amount: str, category: str) -> tuple[str, Sequence[Step], Goal]:
        chosen = [] if category == "Food" else [tap("Category"), tap(category)]
        steps = [open_app(EXPENSES), tap("Add expense"), type_text("Name", name), type_text("Amount", amount), *chosen]
        goal = count_is(EXPENSES, "expense", 1, name=name, amount=amount, category=category)
        return f"Add the expense {name}, {amount}, category {category}.", [*steps, tap("Save")], goal

    def todo(name: str, priority: str) -> tuple[str, Sequence[Step], Goal]:
        steps = [open_app(TODO), tap("Add task"), type_text("Task", name), tap("Priority"), tap(priority), tap("Save")]
        return (
            f"Add the task {name} with priority {priority}.",
            steps,
            count_is(TODO, "task", 1, task=name, priority=priority),
        )

    def note(title: str, folder: str, text: str) -> tuple[str, Sequence[Step], Goal]:
        chosen = [] if folder == "Home" else [tap("Folder"), tap(folder)]
        steps = [
            open_app(NOTES),
            tap("New note"),
            type_text("Title", title),
            *chosen,
            type_text("Text", text),
            tap("Save"),
        ]
        return (
            f"Write a note {title} in {folder}: {text}",
            steps,
            count_is(NOTES, "note", 1, title=title, folder=folder, text=text),
        )

    yield from tasks_of(
        "fill a form and save (or not)",
        [
            expense("Tea", "4.10", "Food"),
            expense("Ticket to Leiden", "9.80", "Travel"),
            expense("Chess set", "25.00", "Fun"),
            todo("Paint the door", "High"),
            todo("Feed the cat", "Medium"),
            note("Bread", "Home", "flour, water, salt"),
            note("Visit", "Work", "Bo comes at ten."),
            (
                "Start a new expense Tea, but do not save it.",
                [open_app(EXPENSES), tap("Add expense"), type_text("Name", "Tea"), key("back")],
                count_is(EXPENSES, "expense", 0, name="Tea"),
            ),
        ],
    )

    def event(
        title: str, months: int, day: str, iso: str, hour: str, minute: str, repeat: str = ""
    ) -> tuple[str, Sequence[Step], Goal]:
        steps = [
            open_app(CALENDAR),
            tap("New event"),
            type_text("Title", title),
            tap("Day"),
            *[tap("Next month")] * months,
            tap(day),
        ]
        steps += [tap("Start"), tap(f"{int(hour)} hours"), tap(f"{int(minute)} minutes"), tap("OK")]
        steps += [tap("Repeat"), tap(repeat)] if repeat else []
        goal = count_is(
            CALENDAR, "event", 1, title=title, day=iso, start=f"{hour}:{minute}", repeat=repeat or "Does not repeat"
        )
        return f"Add the event {title} on {day} at {hour}:{minute} {repeat}".strip(), [*steps, tap("Save")], goal

    def alarm(hour: str, minute: str, name: str) -> tuple[str, Sequence[Step], Goal]:
        steps = [
            open_app(CLOCK),
            tap("Add alarm"),
            tap("Time"),
            tap(f"{int(hour)} hours"),
            tap(f"{int(minute)} minutes"),
            tap("OK"),
        ]
        return (
            f"Set an alarm {name} for {hour}:{minute}.",
            [*steps, type_text("Label", name), tap("Save")],
            count_is(CLOCK, "alarm", 1, at=f"{hour}:{minute}", name=name),
        )

    yield from tasks_of(
        "date and time pickers",
        [
            event("Piano", 0, "28 November 2026", "2026-11-28", "15", "00"),
            event("Boat trip", 1, "12 December 2026", "2026-12-12", "09", "45", "Monthly"),
            event("Yoga", 2, "4 January 2027", "2027-01-04", "18", "30", "Weekly"),
            event("Supper", 1, "24 December 2026", "2026-12-24", "19", "00"),
            alarm("05", "55", "Ferry"),
            alarm("22", "10", "Bed"),
        ],
    )
    digits = {"450": "4 minutes 50", "1230": "12 minutes 30"}
    yield from tasks_of(
        "number pad, start and stop",
        [
            *(
                (
                    f"Enter {words} into the timer, and do not start it.",
                    [open_app(CLOCK), tap("Timer"), *map(tap, number)],
                    both(text_is(CLOCK, "digits", number), text_is(CLOCK, "timer", "stopped")),
                )
                for number, words in digits.items()
            ),
            (
                "Start a timer of 3 minutes 15.",
                [open_app(CLOCK), tap("Timer"), *map(tap, "315"), tap("Start")],
                both(text_is(CLOCK, "digits", "315"), text_is(CLOCK, "timer", "running")),
            ),
            (
                "Start the stopwatch, then pause it.",
                [open_app(CLOCK), tap("Stopwatch"), tap("Start"), tap("Pause")],
                text_is(CLOCK, "watch", "paused"),
            ),
        ],
    )
    yield from tasks_of(
        "camera and recorder",
        [
            ("Take a photo.", [open_app(CAMERA), tap("Shutter")], sent("photo")),
            ("Take two photos.", [open_app(CAMERA), tap("Shutter"), tap("Again"), tap("Shutter")], sent("photo", 2)),
            (
                "Play Copper Sky, then pause it.",
                [open_app(PLAYER), tap("Copper Sky"), tap("Play"), tap("Pause")],
                text_is(PLAYER, "state", "paused"),
            ),
        ],
    )
    yield from tasks_of(
        "create a file or folder with a name",
        [
            *(
                (
                    f"Make the file {name} in {folder}.",
                    [open_app(FILES), tap("New file"), type_text("Name", name), *chosen, tap("Create")],
                    count_is(FILES, "file", 1, name=name, folder=folder),
                )
                for name, folder, chosen in (
                    ("list.txt", "Download", []),
                    ("2026.csv", "Documents", [tap("Folder"), tap("Documents")]),
                    ("song.mid", "Music", [tap("Folder"), tap("Music")]),
                )
            ),
            (
                "Rename boat.jpg to ferry.jpg.",
                [
                    open_app(FILES),
                    tap("Pictures"),
                    more("boat.jpg"),
                    tap("Rename"),
                    type_text("Name", "ferry.jpg"),
                    tap("OK"),
                ],
                count_is(FILES, "file", 1, name="ferry.jpg"),
            ),
        ],
    )
