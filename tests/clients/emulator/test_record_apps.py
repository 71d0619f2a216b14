"""Tests of record apps: the screens and collections that their data names, a search, and a long text."""

from collections.abc import Iterator

import pytest

from clients.phone.emulator.actions import Action, ChangeRecords, ShowScreen
from clients.phone.emulator.layout import App, Row
from clients.phone.emulator.record_apps import CALENDAR, NOTES, RECORD_APPS, TODO
from clients.phone.emulator.sample_apps import SAMPLE_APPS
from tests.clients.emulator.driver import opened


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


def test_a_task_is_found_and_done() -> None:
    driver = opened(TODO, RECORD_APPS)
    driver.get("/ping")
    driver.post("/type", text="plumb")
    assert "Water the plants" not in driver.texts()
    driver.press("Call the plumber", "Done")
    assert driver.device.switches[TODO, "done 2"]


def test_the_agenda_of_a_day() -> None:
    driver = opened(CALENDAR, RECORD_APPS).press("Shown day", "Next month", "5 December 2026")
    assert "Market" in driver.texts()
    assert "Choir" not in driver.texts()


def test_a_note_of_a_folder_keeps_its_long_text() -> None:
    driver = opened(NOTES, RECORD_APPS).press("Shown folder", "Travel", "Timetable")
    (field,) = [node for node in driver.nodes() if node["editable"]]
    assert len(str(field["text"])) == 2_000
    assert field["textLength"] == len(driver.device.texts[NOTES, "text"]) > 2_000
