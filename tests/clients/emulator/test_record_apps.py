"""Tests of record apps: the screens and collections that their data names, and typical work in several apps."""

from collections.abc import Iterator

import pytest

from clients.phone.emulator.actions import Action, ChangeRecords, ShowScreen
from clients.phone.emulator.layout import App, Row
from clients.phone.emulator.record_apps import CALENDAR, CLOCK, EXPENSES, FILES, NOTES, PLAYER, RECORD_APPS, TODO
from clients.phone.emulator.sample_apps import SAMPLE_APPS
from tests.clients.emulator.driver import EmulatorDriver, opened


def actions_of(row: Row) -> Iterator[Action]:
    yield from (action for action in (row.press, row.menu) if action is not None)
    for part in row.parts:
        yield from actions_of(part)


@pytest.mark.parametrize("app", [*SAMPLE_APPS, *RECORD_APPS], ids=lambda app: app.label)
def test_effects_name_screens_that_exist(app: App) -> None:
    for screen in app.screens.values():
        for row in (*screen.rows, *screen.foot):
            for action in actions_of(row):
                if isinstance(action, ShowScreen):
                    assert action.screen in app.screens
                if isinstance(action, ChangeRecords):
                    assert action.then in app.screens
                    assert action.collection in app.records


def press(driver: EmulatorDriver, *texts: str) -> EmulatorDriver:
    for text in texts:
        driver.post("/tap_text", text=text, exact=True)
    return driver


def more_of(driver: EmulatorDriver, place: int) -> EmulatorDriver:
    rows = [node for node in driver.nodes() if node["contentDescription"] == "More options"]
    driver.post("/tap", nodeId=rows[place]["nodeId"])
    return driver


def members(driver: EmulatorDriver, package: str, collection: str, name: str) -> list[str]:
    return [record.get(name, "") for record in driver.device.content.list(package, collection)]


def test_an_expense_is_changed() -> None:
    driver = press(opened(EXPENSES, RECORD_APPS), "Lamp", "More options", "Edit")
    driver.post("/tap", nodeId=driver.node_id(hintText="Amount"))
    driver.post("/type", text="41.00")
    press(driver, "Save")
    assert members(driver, EXPENSES, "expense", "amount")[3] == "41.00"


def test_a_task_is_found_and_done() -> None:
    driver = opened(TODO, RECORD_APPS)
    driver.get("/ping")
    driver.post("/type", text="plumb")
    assert "Water the plants" not in driver.texts()
    press(driver, "Call the plumber", "Done")
    assert driver.device.switches[TODO, "done 2"]


def test_the_agenda_of_a_day() -> None:
    driver = press(opened(CALENDAR, RECORD_APPS), "Shown day", "Next month", "5 December 2026")
    assert "Market" in driver.texts()
    assert "Choir" not in driver.texts()


def test_a_note_of_a_folder_keeps_its_long_text() -> None:
    driver = press(opened(NOTES, RECORD_APPS), "Shown folder", "Travel", "Timetable")
    (field,) = [node for node in driver.nodes() if node["editable"]]
    assert len(str(field["text"])) == 2_000
    assert field["textLength"] == len(driver.device.texts[NOTES, "text"]) > 2_000


def test_a_file_is_moved() -> None:
    driver = press(opened(FILES, RECORD_APPS), "Download")
    more_of(driver, 0)
    press(driver, "Move or copy", "Target folder", "Music", "Move here")
    assert driver.texts()[0] == "Moved to Music"
    assert members(driver, FILES, "file", "folder")[0] == "Music"


def test_a_song_is_added_to_a_list() -> None:
    driver = more_of(opened(PLAYER, RECORD_APPS), 2)
    press(driver, "Add to playlist", "Playlist", "Road trip", "Add")
    assert [(each["name"], each["list"]) for each in driver.device.content.list(PLAYER, "listed")] == [
        ("Two Rivers", "Road trip")
    ]


def test_a_timer_by_its_digits() -> None:
    driver = press(opened(CLOCK, RECORD_APPS), "Timer", "4", "5", "0")
    assert "450" in driver.texts()
    press(driver, "Start")
    assert "Timer running" in driver.texts()
