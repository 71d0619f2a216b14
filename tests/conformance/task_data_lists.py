"""Phone tasks with texts, lists, messages, pictures and questions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from clients.phone.emulator.record_apps import CALENDAR, EXPENSES, FILES, NOTES, PLAYER, TODO
from clients.phone.emulator.sample_apps import MAIL, MAPS, MESSAGES, SETTINGS
from tests.conformance.task_goals import (
    Goal,
    Task,
    both,
    count_is,
    drawn,
    said,
    sent,
    shows,
    tasks_of,
    text_is,
)
from tests.conformance.task_steps import (
    Step,
    call,
    drag,
    hold,
    more,
    open_app,
    scroll,
    tap,
    type_text,
)

__all__ = ["list_tasks", "message_tasks", "text_tasks"]

LOADED = call("phone_wait", text="Loading", gone=True)


def text_tasks() -> Iterator[Task]:
    def edited(name: str, hint: str, text: str, mode: str, goal: Goal) -> tuple[str, Sequence[Step], Goal]:
        return (
            f"Change the note {name}: {mode} {text}",
            [open_app(NOTES), tap(name), type_text(hint, text, mode), tap("Save")],
            goal,
        )

    lamp = [
        open_app(EXPENSES),
        tap("Lamp"),
        tap("More options"),
        tap("Edit"),
        type_text("Amount", "41.00"),
        tap("Save"),
    ]
    yield from tasks_of(
        "edit text that is there",
        [
            edited("Shopping", "Text", "\ntea", "append", count_is(NOTES, "note", 1, text="milk\neggs\nflour\ntea")),
            edited(
                "Meeting", "Text", "Moved to Monday.", "replace", count_is(NOTES, "note", 1, text="Moved to Monday.")
            ),
            edited("Wi-Fi code", "Text", "", "clear", count_is(NOTES, "note", 1, title="Wi-Fi code", text="")),
            ("The lamp cost 41.00. Correct it.", lamp, count_is(EXPENSES, "expense", 1, name="Lamp", amount="41.00")),
        ],
    )
    copied = [open_app(NOTES), tap("Wi-Fi code"), hold("Text"), tap("Copy")]
    yield from tasks_of(
        "clipboard and paste",
        [
            ("Copy the Wi-Fi code.", copied, lambda device, answer: device.clipboard == "harbour-lamp-42"),
            (
                "Paste the Wi-Fi code into the search of Maps.",
                [*copied, open_app(MAPS), hold("Search here"), tap("Paste")],
                text_is(MAPS, "place", "harbour-lamp-42"),
            ),
            (
                "Put harbour into the clipboard.",
                [call("phone_clipboard_write", text="harbour"), call("phone_clipboard_read")],
                lambda device, answer: device.clipboard == "harbour",
            ),
        ],
    )

    def deleted(
        package: str,
        collection: str,
        member: str,
        name: str,
        left: int = 0,
        *,
        row: bool = False,
        found: Sequence[Step] = (),
    ) -> tuple[str, Sequence[Step], Goal]:
        opened = [more(name)] if row else [tap(name), tap("More options")]
        steps = [open_app(package), *found, *opened, tap("Delete"), tap("Delete")]
        return f"Delete {name}{' once' if left else ''}.", steps, count_is(package, collection, left, **{member: name})

    lunches = [hold("Lunch"), hold("Lunch", 1), tap("More options", 0), tap("Delete selected"), tap("Delete")]
    yield from tasks_of(
        "find in a list and delete (many, duplicates)",
        [
            deleted(EXPENSES, "expense", "name", "Cinema"),
            deleted(EXPENSES, "expense", "name", "Bread"),
            deleted(EXPENSES, "expense", "name", "Lunch", 1),
            deleted(EXPENSES, "expense", "name", "Ferry", found=[scroll("Ferry")]),
            deleted(EXPENSES, "expense", "name", "Coffee 8", found=[scroll("Coffee 8")]),
            (
                "Delete both lunches.",
                [open_app(EXPENSES), *lunches],
                both(count_is(EXPENSES, "expense", 0, name="Lunch"), count_is(EXPENSES, "expense", 13)),
            ),
            deleted(TODO, "task", "task", "Return the books", found=[LOADED]),
            deleted(CALENDAR, "event", "title", "Market"),
            deleted(CALENDAR, "event", "title", "Dentist", 1),
            deleted(NOTES, "note", "title", "Meeting", row=True),
            deleted(NOTES, "note", "title", "Shopping", row=True),
            deleted(FILES, "file", "name", "ticket.pdf", row=True, found=[tap("Download")]),
        ],
    )

    def moved(name: str, source: str, target: str, press: str, left: int) -> tuple[str, Sequence[Step], Goal]:
        chosen = [] if target == source else [tap("Target folder"), tap(target)]
        steps = [open_app(FILES), tap(source), more(name), tap("Move or copy"), *chosen, tap(press)]
        return (
            f"{press.partition(' ')[0]} {name} to {target}.",
            steps,
            both(
                count_is(FILES, "file", 1, name=name, folder=target),
                count_is(FILES, "file", left, name=name, folder=source),
            ),
        )

    yield from tasks_of(
        "move or copy between folders",
        [
            moved("report.pdf", "Download", "Documents", "Move here", 0),
            moved("ticket.pdf", "Download", "Pictures", "Move here", 0),
            moved("lake.jpg", "Pictures", "Music", "Copy here", 1),
            moved("plan.txt", "Documents", "Download", "Move here", 0),
            moved("boat.jpg", "Pictures", "Documents", "Copy here", 1),
        ],
    )


def message_tasks() -> Iterator[Task]:
    def text(name: str, words: str) -> tuple[str, Sequence[Step], Goal]:
        return (
            f"Text {name}: {words}",
            [open_app(MESSAGES), tap(name), type_text("Text message", words), tap("Send")],
            sent("text", message=words),
        )

    new = [
        open_app(MESSAGES),
        tap("Start chat"),
        type_text("Recipient", "+15550109"),
        type_text("Text message", "Hello"),
        tap("Send"),
    ]
    mail = [
        open_app(MAIL),
        tap("Library"),
        tap("Reply"),
        type_text("Write a message", "I bring them today."),
        tap("Send"),
    ]
    yield from tasks_of(
        "send a message",
        [
            text("Ada", "I am late."),
            text("Bo", "See you at noon."),
            text("Cleo", "Thank you!"),
            ("Text Hello to +15550109.", new, sent("text", to="+15550109", message="Hello")),
            (
                "Answer the library: I bring them today.",
                mail,
                sent("mail", to="desk@library.example", body="I bring them today."),
            ),
        ],
    )
    yield from tasks_of(
        "carry text from one app to another",
        [
            (
                "Text Bo what the note about the meeting says.",
                [
                    open_app(NOTES),
                    tap("Meeting"),
                    open_app(MESSAGES),
                    tap("Bo"),
                    type_text("Text message", "Ask Bo for the figures of October."),
                    tap("Send"),
                ],
                sent("text", message="Ask Bo for the figures of October."),
            ),
            (
                "Add the date with Ada from the mail to the tasks.",
                [
                    open_app(MAIL),
                    tap("Ada"),
                    open_app(TODO),
                    tap("Add task"),
                    type_text("Task", "Noon at the harbour"),
                    tap("Save"),
                ],
                count_is(TODO, "task", 1, task="Noon at the harbour"),
            ),
            (
                "Write the ticket of the train into a note.",
                [
                    open_app(MAIL),
                    tap("Train service"),
                    open_app(NOTES),
                    tap("New note"),
                    type_text("Title", "Ticket"),
                    type_text("Text", "Coach 4, seat 61"),
                    tap("Save"),
                ],
                count_is(NOTES, "note", 1, title="Ticket", text="Coach 4, seat 61"),
            ),
            (
                "Search for the street of the dentist in Maps.",
                [
                    open_app(CALENDAR),
                    tap("Dentist"),
                    open_app(MAPS),
                    type_text("Search here", "Main Street 4"),
                    tap("Directions"),
                ],
                both(text_is(MAPS, "place", "Main Street 4"), shows("route")),
            ),
        ],
    )
    yield from tasks_of(
        "read a picture or a film",
        [
            ("Look at a picture of the calendar.", [open_app(CALENDAR), call("phone_screenshot")], said("Seen.")),
            ("Look at a picture of the files.", [open_app(FILES), call("phone_screenshot")], said("Seen.")),
        ],
        "Seen.",
    )
    yield from tasks_of(
        "draw, canvas, web page",
        [
            (f"Draw {words} on the map.", [open_app(MAPS), drag(*line)], drawn(*line))
            for words, line in (
                ("a line down", (500, 800, 500, 1500)),
                ("a line across", (200, 1400, 900, 1400)),
                ("a slope", (200, 900, 800, 1700)),
            )
        ],
    )
    yield from tasks_of(
        "map",
        [
            (
                f"Show the way to {place}.",
                [open_app(MAPS), type_text("Search here", place), tap("Directions")],
                both(text_is(MAPS, "place", place), shows("route")),
            )
            for place in ("Leiden", "the harbour", "Gouda")
        ],
    )


def list_tasks() -> Iterator[Task]:
    def queued(name: str) -> tuple[str, Sequence[Step], Goal]:
        return (
            f"Put {name} into the queue.",
            [open_app(PLAYER), more(name), tap("Add to queue"), tap("Queue it")],
            count_is(PLAYER, "listed", 1, name=name, list="Queue"),
        )

    def listed(name: str, playlist: str) -> tuple[str, Sequence[Step], Goal]:
        chosen = [] if playlist == "Morning" else [tap("Playlist"), tap(playlist)]
        return (
            f"Add {name} to {playlist}.",
            [open_app(PLAYER), more(name), tap("Add to playlist"), *chosen, tap("Add")],
            count_is(PLAYER, "listed", 1, name=name, list=playlist),
        )

    yield from tasks_of(
        "playlists and queues in order",
        [
            queued("Night Ferry"),
            queued("Harbour Lights"),
            queued("Old Bridge"),
            listed("Two Rivers", "Road trip"),
            listed("Slow Train", "Morning"),
            listed("Copper Sky", "Road trip"),
        ],
    )
    questions: Sequence[tuple[str, Sequence[Step], str]] = (
        ("How much was the lamp?", [open_app(EXPENSES), tap("Lamp")], "39.95"),
        ("How much was the cinema?", [open_app(EXPENSES), tap("Cinema")], "14.00"),
        ("What did the ferry cost?", [open_app(EXPENSES), scroll("Ferry"), tap("Ferry")], "7.00"),
        ("What is the note of the ferry?", [open_app(EXPENSES), scroll("Ferry"), tap("Ferry")], "to the island"),
        ("When are the books due?", [open_app(TODO), LOADED, tap("Return the books")], "2026-12-01"),
        ("How urgent is the plumber?", [open_app(TODO), LOADED, tap("Call the plumber")], "Low"),
        ("When is choir?", [open_app(CALENDAR), tap("Choir")], "2026-12-01 19:00"),
        ("Where is the dentist?", [open_app(CALENDAR), tap("Dentist")], "Main Street 4"),
        (
            "What is on 5 December?",
            [open_app(CALENDAR), tap("Shown day"), tap("Next month"), tap("5 December 2026")],
            "Market",
        ),
        ("What is the Wi-Fi code?", [open_app(NOTES), tap("Wi-Fi code")], "harbour-lamp-42"),
        ("Whom do I ask for the figures?", [open_app(NOTES), tap("Meeting")], "Bo"),
        ("When does the first boat leave?", [open_app(NOTES), tap("Timetable")], "7:15"),
        ("What is my seat?", [open_app(MAIL), tap("Train service")], "Coach 4, seat 61"),
        ("When does Ada want to meet?", [open_app(MAIL), tap("Ada")], "noon"),
        (
            "Which model is this phone?",
            [open_app(SETTINGS), scroll("About phone"), tap("About phone")],
            "Reference phone",
        ),
        (
            "What is in plan.txt?",
            [open_app(FILES), tap("Documents"), tap("plan.txt")],
            "Paint the door, then the fence.",
        ),
        ("Which playlist is the last one?", [open_app(PLAYER), tap("Playlists")], "Road trip"),
    )
    for prompt, steps, answer in questions:
        yield Task(name="", shape="answer a question", prompt=prompt, steps=steps, goal=said(answer), answer=answer)
