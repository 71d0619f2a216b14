"""Phone tasks with texts, lists, messages, pictures and questions."""

from collections.abc import Iterator, Sequence

from clients.phone.emulator.record_apps import CALENDAR, EXPENSES, FILES, NOTES, PLAYER, TODO
from clients.phone.emulator.sample_apps import MAIL, MAPS, MESSAGES, SETTINGS
from tests.conformance.task_goals import Task, TaskRow, both, count_is, drawn, row, said, sent, shows, tasks_of, text_is
from tests.conformance.task_steps import Step, call, drag, hold, more, open_app, scroll, type_text

LOADED = call("phone_wait", text="Loading", gone=True)


def text_tasks() -> Iterator[Task]:
    def edited(name: str, typed: str, mode: str, **members: str) -> TaskRow:
        goal = count_is(NOTES, "note", 1, **members)
        steps = (name, type_text("Text", typed, mode), "Save")
        return row(f"Change the note {name}: {mode} {typed}", goal, NOTES, *steps)

    lamp = ("Lamp", "More options", "Edit", type_text("Amount", "41.00"), "Save")
    dearer = count_is(EXPENSES, "expense", 1, name="Lamp", amount="41.00")
    yield from tasks_of(
        "edit text that is there",
        edited("Shopping", "\ntea", "append", text="milk\neggs\nflour\ntea"),
        edited("Meeting", "Moved to Monday.", "replace", text="Moved to Monday."),
        edited("Wi-Fi code", "", "clear", title="Wi-Fi code", text=""),
        row("The lamp cost 41.00. Correct it.", dearer, EXPENSES, *lamp),
    )
    code, copied = "harbour-lamp-42", ("Wi-Fi code", hold("Text"), "Copy")
    pasted = (*copied, open_app(MAPS), hold("Search here"), "Paste")
    written = [call("phone_clipboard_write", text="harbour"), call("phone_clipboard_read")]
    yield from tasks_of(
        "clipboard and paste",
        row("Copy the Wi-Fi code.", lambda device, answer: device.clipboard == code, NOTES, *copied),
        row("Paste the Wi-Fi code into the search of Maps.", text_is(MAPS, "place", code), NOTES, *pasted),
        ("Put harbour into the clipboard.", written, lambda device, answer: device.clipboard == "harbour"),
    )

    def deleted(
        package: str, place: str, name: str, *found: Step | str, left: int = 0, by_row: bool = False
    ) -> TaskRow:
        collection, member = place.split()
        goal = count_is(package, collection, left, **{member: name})
        steps = (*found, *([more(name)] if by_row else [name, "More options"]), "Delete", "Delete")
        return row(f"Delete {name}{' once' if left else ''}.", goal, package, *steps)

    lunches = (hold("Lunch"), hold("Lunch", 1), "More options", "Delete selected", "Delete")
    hungry = both(count_is(EXPENSES, "expense", 0, name="Lunch"), count_is(EXPENSES, "expense", 13))
    yield from tasks_of(
        "find in a list and delete (many, duplicates)",
        deleted(EXPENSES, "expense name", "Cinema"),
        deleted(EXPENSES, "expense name", "Bread"),
        deleted(EXPENSES, "expense name", "Lunch", left=1),
        deleted(EXPENSES, "expense name", "Ferry", scroll("Ferry")),
        deleted(EXPENSES, "expense name", "Coffee 8", scroll("Coffee 8")),
        row("Delete both lunches.", hungry, EXPENSES, *lunches),
        deleted(TODO, "task task", "Return the books", LOADED),
        deleted(CALENDAR, "event title", "Market"),
        deleted(CALENDAR, "event title", "Dentist", left=1),
        deleted(NOTES, "note title", "Meeting", by_row=True),
        deleted(NOTES, "note title", "Shopping", by_row=True),
        deleted(FILES, "file name", "ticket.pdf", "Download", by_row=True),
    )

    def moved(name: str, source: str, target: str, press: str, left: int) -> TaskRow:
        there, here = (count_is(FILES, "file", n, name=name, folder=to) for n, to in ((1, target), (left, source)))
        steps = (source, more(name), "Move or copy", "Target folder", target, press)
        return row(f"{press.partition(' ')[0]} {name} to {target}.", both(there, here), FILES, *steps)

    yield from tasks_of(
        "move or copy between folders",
        moved("report.pdf", "Download", "Documents", "Move here", 0),
        moved("ticket.pdf", "Download", "Pictures", "Move here", 0),
        moved("lake.jpg", "Pictures", "Music", "Copy here", 1),
        moved("plan.txt", "Documents", "Download", "Move here", 0),
        moved("boat.jpg", "Pictures", "Documents", "Copy here", 1),
    )


def message_tasks() -> Iterator[Task]:
    def text(name: str, words: str) -> TaskRow:
        steps = (name, type_text("Text message", words), "Send")
        return row(f"Text {name}: {words}", sent("text", message=words), MESSAGES, *steps)

    new = ("Start chat", type_text("Recipient", "+15550109"), type_text("Text message", "Hello"), "Send")
    mail = ("Library", "Reply", type_text("Write a message", "I bring them today."), "Send")
    answered = sent("mail", to="desk@library.example", body="I bring them today.")
    yield from tasks_of(
        "send a message",
        text("Ada", "I am late."),
        text("Bo", "See you at noon."),
        text("Cleo", "Thank you!"),
        row("Text Hello to +15550109.", sent("text", to="+15550109", message="Hello"), MESSAGES, *new),
        row("Answer the library: I bring them today.", answered, MAIL, *mail),
    )
    figures, seat = "Ask Bo for the figures of October.", "Coach 4, seat 61"
    told = ("Meeting", open_app(MESSAGES), "Bo", type_text("Text message", figures), "Send")
    added = ("Ada", open_app(TODO), "Add task", type_text("Task", "Noon at the harbour"), "Save")
    noted = ("New note", type_text("Title", "Ticket"), type_text("Text", seat), "Save")
    ticket = count_is(NOTES, "note", 1, title="Ticket", text=seat)
    route = ("Dentist", open_app(MAPS), type_text("Search here", "Main Street 4"), "Directions")
    shown = both(text_is(MAPS, "place", "Main Street 4"), shows("route"))
    noon = count_is(TODO, "task", 1, task="Noon at the harbour")
    yield from tasks_of(
        "carry text from one app to another",
        row("Text Bo what the note about the meeting says.", sent("text", message=figures), NOTES, *told),
        row("Add the date with Ada from the mail to the tasks.", noon, MAIL, *added),
        row("Write the ticket of the train into a note.", ticket, MAIL, "Train service", open_app(NOTES), *noted),
        row("Search for the street of the dentist in Maps.", shown, CALENDAR, *route),
    )
    yield from tasks_of(
        "read a picture or a film",
        row("Look at a picture of the calendar.", said("Seen."), CALENDAR, call("phone_screenshot")),
        row("Look at a picture of the files.", said("Seen."), FILES, call("phone_screenshot")),
        answer="Seen.",
    )

    def line(words: str, *points: int) -> TaskRow:
        return row(f"Draw {words} on the map.", drawn(*points), MAPS, drag(*points))

    def way(place: str) -> TaskRow:
        goal = both(text_is(MAPS, "place", place), shows("route"))
        return row(f"Show the way to {place}.", goal, MAPS, type_text("Search here", place), "Directions")

    yield from tasks_of(
        "draw, canvas, web page",
        line("a line down", 500, 800, 500, 1500),
        line("a line across", 200, 1400, 900, 1400),
        line("a slope", 200, 900, 800, 1700),
    )
    yield from tasks_of("map", way("Leiden"), way("the harbour"), way("Gouda"))


def list_tasks() -> Iterator[Task]:
    def queued(name: str) -> TaskRow:
        goal = count_is(PLAYER, "listed", 1, name=name, list="Queue")
        return row(f"Put {name} into the queue.", goal, PLAYER, more(name), "Add to queue", "Queue it")

    def listed(name: str, playlist: str) -> TaskRow:
        goal = count_is(PLAYER, "listed", 1, name=name, list=playlist)
        chosen = [] if playlist == "Morning" else ["Playlist", playlist]
        return row(f"Add {name} to {playlist}.", goal, PLAYER, more(name), "Add to playlist", *chosen, "Add")

    yield from tasks_of(
        "playlists and queues in order",
        queued("Night Ferry"),
        queued("Harbour Lights"),
        queued("Old Bridge"),
        listed("Two Rivers", "Road trip"),
        listed("Slow Train", "Morning"),
        listed("Copper Sky", "Road trip"),
    )
    questions: Sequence[tuple[str, str, str, Sequence[Step | str]]] = (
        ("How much was the lamp?", "39.95", EXPENSES, ["Lamp"]),
        ("How much was the cinema?", "14.00", EXPENSES, ["Cinema"]),
        ("What did the ferry cost?", "7.00", EXPENSES, [scroll("Ferry"), "Ferry"]),
        ("What is the note of the ferry?", "to the island", EXPENSES, [scroll("Ferry"), "Ferry"]),
        ("When are the books due?", "2026-12-01", TODO, [LOADED, "Return the books"]),
        ("How urgent is the plumber?", "Low", TODO, [LOADED, "Call the plumber"]),
        ("When is choir?", "2026-12-01 19:00", CALENDAR, ["Choir"]),
        ("Where is the dentist?", "Main Street 4", CALENDAR, ["Dentist"]),
        ("What is on 5 December?", "Market", CALENDAR, ["Shown day", "Next month", "5 December 2026"]),
        ("What is the Wi-Fi code?", "harbour-lamp-42", NOTES, ["Wi-Fi code"]),
        ("Whom do I ask for the figures?", "Bo", NOTES, ["Meeting"]),
        ("When does the first boat leave?", "7:15", NOTES, ["Timetable"]),
        ("What is my seat?", "Coach 4, seat 61", MAIL, ["Train service"]),
        ("When does Ada want to meet?", "noon", MAIL, ["Ada"]),
        ("Which model is this phone?", "Reference phone", SETTINGS, [scroll("About phone"), "About phone"]),
        ("What is in plan.txt?", "Paint the door, then the fence.", FILES, ["Documents", "plan.txt"]),
        ("Which playlist is the last one?", "Road trip", PLAYER, ["Playlists"]),
    )
    for prompt, answer, package, steps in questions:
        yield from tasks_of("answer a question", row(prompt, said(answer), package, *steps), answer=answer)
