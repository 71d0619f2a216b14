import time

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import PageOpener, Site
from tests.browser.test_layout import DASH, Scripted, start
from tests.browser.test_texts import unisolated

DAY = 86_400
MANY = 500


@pytest.mark.firefox
def test_five_hundred_devices_are_searched_and_sorted(site: Site, visit: PageOpener) -> None:
    now = time.time()
    sessions = [
        {
            "token_prefix": f"{place:08x}",
            "device_name": f"Tablet {place:03}",
            "last_seen": now - place,
            "expires_at": now + (MANY - place) * DAY,
            "online": place == MANY - 1,
            "grants": {"chat": now + DAY},
        }
        for place in range(MANY)
    ]
    page = start(site, visit, "", Scripted(sessions={"sessions": sessions}))
    names = page.get_by_role("table", name="Paired devices").locator("tbody .name")
    expect(names).to_have_count(25)
    assert names.first.inner_text() == "Tablet 499"  # the only one online
    expect(page.get_by_text("1 to 25 of 500")).to_be_visible()
    page.get_by_role("button", name="Next").click()
    expect(page.get_by_text("26 to 50 of 500")).to_be_visible()
    search = page.get_by_role("searchbox", name="Search devices")
    search.fill("tablet 4")
    expect(page.get_by_text("1 to 25 of 100")).to_be_visible()
    search.fill("00000123")
    expect(names).to_have_text(["Tablet 291"])
    search.fill("")
    page.get_by_role("combobox", name="Order").select_option("Next to expire first")
    expect(names).to_have_count(25)  # more rows are never drawn
    assert names.first.inner_text() == "Tablet 499"
    search.fill("nothing like it")
    expect(page.get_by_text("No device matches.")).to_be_visible()


def test_rename_and_extend_with_the_audit_log(site: Site, visit: PageOpener) -> None:
    site.world.start_relay()
    site.open()
    site.world.pair("Old name")
    page = visit(site.url)
    page.get_by_role("button", name="Change Old name").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("textbox", name="Name").fill("New <b>name</b>")
    dialog.get_by_role("combobox", name="Paired until").select_option("For good")
    dialog.get_by_role("button", name="Save").click()
    row = page.get_by_role("row", name="New <b>name</b>")
    expect(row).to_contain_text("Never")
    page.get_by_role("link", name="Audit").click()
    events = page.get_by_role("table", name="Audit log").locator("tbody tr")
    expect(events).to_have_count(2)
    expect(events.first).to_contain_text("Session changed")
    expect(events.first).to_contain_text("New <b>name</b>")
    expect(events.last).to_contain_text("Paired")


def test_changes_of_a_revoked_device_are_undone(site: Site, visit: PageOpener) -> None:
    change = {
        "kind": "setting", "target": "model", "before": "", "after": "<i>his</i>", "principal": "1c2d3e4f Pixel 8"
    }  # fmt: skip
    note = {**change, "kind": "memory", "target": "memory", "before": "a", "after": "b"}
    session = {"token_prefix": "1c2d3e4f", "device_name": "Pixel 8"}
    script = Scripted(
        sessions={"sessions": [session]},
        revoke={"ok": True, "revoked": "1c2d3e4f", "agent_changes": 2},
        changes={"changes": [change, note]},
        undone={
            "ok": False,
            "changes": [{**change, "undone": True}, {**note, "undone": False, "why": "changed again"}],
        },
    )
    page = start(site, visit, "", script)
    said = page.get_by_role("alertdialog")
    page.get_by_role("button", name="Revoke Pixel 8").click()
    said.get_by_role("button", name="Revoke").click()
    expect(said).to_contain_text("What it changed at the agent still holds:")
    lines = [unisolated(each) for each in said.get_by_role("listitem").all_inner_texts()]
    assert lines == [f"Setting model: {DASH} → <i>his</i>", "Note in memory: a → b"]
    said.get_by_role("button", name="Undo these changes").click()
    expect(said).to_contain_text("Not all changes could be undone")
    expect(said.get_by_role("listitem").first).to_contain_text("Undone")
    expect(said.get_by_role("listitem").last).to_contain_text("changed again")
    said.get_by_role("button", name="Close").click()


def test_standing_approvals_are_ended(site: Site, visit: PageOpener) -> None:
    now = time.time()
    good = {"pattern": "phone_call +15550100", "session_id": None, "principal": "1c2d3e4f Pixel 8", "at": now - 60}
    chat = {"pattern": "phone_tap 5", "session_id": "s-1", "principal": None, "at": None}
    script = Scripted(approvals={"approvals": [good, chat]}, audit={"events": []}, ended={"ok": True})
    page = start(site, visit, "#audit", script)
    rows = page.get_by_role("table", name="Standing approvals").locator("tbody tr")
    expect(rows).to_have_count(2)
    expect(rows.first).to_contain_text("For good")
    expect(rows.first).to_contain_text("Pixel 8")
    expect(rows.last).to_contain_text("In one chat")
    expect(page.get_by_text("No event yet")).to_be_visible()
    rows.first.get_by_role("button").click()
    script.answers["approvals"] = {"approvals": []}
    page.get_by_role("alertdialog").get_by_role("button", name="End").click()
    expect(rows).to_have_count(0)
    assert script.asked.count("/api/approvals") >= 3
