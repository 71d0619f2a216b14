import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import PageOpener, Site, body_of

FAILED_LOADS = ("Failed to load resource",)  # messages of the browser itself for a 502


def test_a_time_to_live_runs_out(site: Site, visit: PageOpener, tmp_path: Path) -> None:
    files = tmp_path / "files"  # the folder around it is the service home, whose files phones cannot get
    files.mkdir()
    site.world.start_relay(media_ttl_seconds=6, media_allowed_roots=(str(files),))
    site.open()
    (files / "notes.txt").write_bytes(b"x" * 2048)
    body = {"path": f"{files}/notes.txt", "content_type": "text/plain", "file_name": "notes.txt"}
    assert site.world.http("POST", "/media/register", body).status in (200, 201)
    page = visit(f"{site.url}#media")
    row = page.get_by_role("row", name="notes.txt")
    expect(row.locator(".ttl")).to_have_class(re.compile(r"\bbad\b"))  # less than a minute
    expect(row.locator(".ttl")).to_have_text(re.compile(r"0:0[1-6]"))
    expect(row).to_contain_text("2.0 KB")
    expect(row.locator(".ttl")).to_have_text("expired")
    site.world.eventually(lambda: site.board.relay("GET", "/media").json["media"] == [])
    page.clock.fast_forward(15_000)  # Media refreshes every 15 s
    expect(page.get_by_text("No file is waiting")).to_be_visible()
    page.get_by_role("switch", name="Include expired").click()
    expect(row.locator(".ttl")).to_have_text("expired")


@pytest.mark.firefox
def test_a_relay_that_stops_and_restarts(site: Site, visit: PageOpener) -> None:
    visit.tolerated = FAILED_LOADS
    relay = site.world.start_relay()
    site.open()
    page = visit(site.url)
    expect(page.get_by_text("Healthy")).to_be_visible()
    relay.stop()
    page.clock.fast_forward(10_000)
    problem = page.get_by_role("alert")
    expect(problem).to_contain_text(f"relay unreachable at 127.0.0.1:{relay.port}: ")
    expect(problem).to_contain_text("What you see below is older")
    page.get_by_role("link", name="Activity").click()  # this tab has no earlier data to show
    expect(page.get_by_role("alert")).to_contain_text("relay unreachable")
    stop_clock(page)  # else the tab might find the relay before the button is pressed
    expect(page.locator("[aria-busy=true]")).to_have_count(0)  # or by a request of the last second
    relay.restart()
    page.get_by_role("button", name="Retry").click()
    expect(page.get_by_text("No command yet")).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)


def stop_clock(page: Page) -> None:
    page.clock.pause_at(page.evaluate("Date.now() / 1000 + 1"))


def calls(visit: PageOpener) -> int:
    return sum("/api/plugins/" in url for url in visit.asked)


@pytest.mark.parametrize(("tab", "every"), [("management", 10), ("activity", 5), ("media", 15)])
def test_only_the_visible_tab_sends_requests(site: Site, visit: PageOpener, tab: str, every: int) -> None:
    site.world.start_relay()
    site.open()
    page = visit(f"{site.url}#{tab}")
    expect(page.locator(".empty")).to_be_visible()
    each = 3 if tab == "management" else 1
    stop_clock(page)

    def pass_time(seconds: float) -> int:
        """Advance the page's clock; return the number of requests for `/api/plugins/` that the page sent meanwhile."""
        before = calls(visit)
        page.clock.fast_forward(int(seconds * 1000))
        with page.expect_response("**/page/icon.svg"):
            page.evaluate("fetch('/page/icon.svg', { cache: 'no-store' }).then((answer) => answer.text())")
        expect(page.locator("[aria-busy=true]")).to_have_count(0)  # else its answer would come after the next leap
        return calls(visit) - before

    assert pass_time(every) == each  # the time until then was the browser's, and some may be left of it
    assert pass_time(every - 2) == 0
    assert pass_time(3) == each
    hide(page, hidden=True)
    assert pass_time(4 * every) == 0
    hide(page, hidden=False)
    assert pass_time(0.01) == each  # overdue refreshes are requested at once


def hide(page: Page, *, hidden: bool) -> None:
    page.evaluate(
        """(hidden) => {
            Object.defineProperty(document, "hidden", { configurable: true, get: () => hidden });
            document.dispatchEvent(new Event("visibilitychange"));
        }""",
        hidden,
    )


def test_the_auto_refresh_setting_is_stored(site: Site, visit: PageOpener) -> None:
    site.world.start_relay()
    site.open()
    page = visit(site.url)
    expect(page.get_by_text("Healthy")).to_be_visible()
    refresh = page.get_by_role("button", name="Refresh")
    expect(refresh).to_have_count(0)
    page.get_by_role("switch", name="Auto-refresh").click()
    expect(refresh).to_be_visible()
    assert page.evaluate("localStorage.getItem('svc-relay-autorefresh')") == "off"
    page.reload()
    expect(page.get_by_role("switch", name="Auto-refresh")).not_to_be_checked()
    expect(page.get_by_text("Healthy")).to_be_visible()
    before = calls(visit)
    page.clock.fast_forward(60_000)
    site.world.pair("Desk")
    refresh.click()
    expect(page.get_by_role("row", name="Desk")).to_be_visible()
    assert calls(visit) == before + 3


@pytest.mark.firefox
def test_the_keyboard_is_enough(site: Site, visit: PageOpener) -> None:
    site.world.start_relay()
    site.open()
    phone = site.world.phone(name="Pixel")
    site.world.http("GET", "/ping", headers={"authorization": f"Bearer {phone.token}"})
    page = visit(site.url)
    expect(page.get_by_role("row", name="Pixel")).to_be_visible()
    press(page, "Skip to the content")
    page.keyboard.press("Enter")
    expect(page.locator("#panel")).to_be_focused()
    press(page, "Pair new device")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog").locator(".code")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.reload()
    press(page, "Activity")
    page.keyboard.press("Enter")
    expect(page.locator("tr.command")).to_have_count(1)
    press(page, "Details of /ping")
    page.keyboard.press("Enter")
    expect(page.locator("tr.details:visible")).to_have_count(1)
    site.world.http("GET", "/screen_hash", headers={"authorization": f"Bearer {phone.token}"})
    page.clock.fast_forward(5_000)  # a refresh takes neither the focus nor the details
    expect(page.locator("tr.command")).to_have_count(2)
    assert "Details of /ping" in page.evaluate("document.activeElement.textContent")
    page.keyboard.press(" ")
    expect(page.locator("tr.details:visible")).to_have_count(0)


def press(page: Page, name: str) -> None:
    """Press Tab until an element in the page has the focus and contains this text; raise AssertionError after 40."""
    for _ in range(40):
        page.keyboard.press("Tab")
        if name in page.evaluate("document.activeElement === document.body ? '' : document.activeElement.textContent"):
            return
    raise AssertionError(f"{name} cannot be reached")


def inviting(site: Site, visit: PageOpener) -> Locator:
    """Open the page and the dialog for a new device, and return the dialog."""
    visit.tolerated = FAILED_LOADS
    site.world.start_relay()
    site.open()
    page = visit(site.url)
    page.get_by_role("button", name="Pair new device").click()
    return page.get_by_role("dialog")


def test_options_of_an_invite(site: Site, visit: PageOpener) -> None:
    dialog = inviting(site, visit)
    page = dialog.page
    first = dialog.locator(".code").inner_text()
    dialog.get_by_role("button", name="New code").click()
    expect(dialog.locator(".code")).not_to_have_text(first)
    first = dialog.locator(".code").inner_text()
    note = dialog.get_by_text("SVC_DASHBOARD_PASSWORD")
    expect(note).to_be_hidden()
    dialog.get_by_role("textbox", name="Public address").fill("https://relay.example")
    dialog.get_by_role("combobox", name="Routes").select_option("public")  # from then on the relay requires its secret
    expect(dialog.locator(".code")).not_to_have_text(first)
    expect(dialog.locator(".endpoints li")).to_have_text(["Public address relay.example:443"], use_inner_text=False)
    expect(note).to_be_visible()
    page.clock.fast_forward(9 * 60_000 + 5_000)
    expect(dialog.locator(".left")).to_have_class(re.compile("soon"))
    page.clock.fast_forward(60_000)
    expect(dialog.locator(".left")).to_have_text("Expired: make a new one")
    dialog.get_by_role("button", name="Done").click()
    page.get_by_role("button", name="Pair new device").click()  # the choice was stored
    expect(page.get_by_role("textbox", name="Public address")).to_have_value("https://relay.example")
    assert json.loads(page.evaluate("localStorage.getItem('svc-relay-pairing')"))["mode"] == "public"


@pytest.mark.firefox
def test_grants_are_selected_while_pairing(site: Site, visit: PageOpener) -> None:
    dialog = inviting(site, visit)
    first = dialog.locator(".code").inner_text()
    with dialog.page.expect_response("**/pairing"):
        dialog.get_by_role("combobox", name="May do").select_option("Chat alone")
    with dialog.page.expect_request("**/pairing") as sent:
        dialog.get_by_role("combobox", name="Paired for").select_option("A week")
    wish = body_of(sent.value)
    assert (wish["ttl_seconds"], set(wish["grants"].values()), "chat" in wish["grants"]) == (604_800, {False}, False)
    expect(dialog.locator(".code")).to_be_visible()
    code = dialog.locator(".code").inner_text()
    assert code != first
    site.world.phone(code=code, name="Tablet")
    expect(dialog.get_by_text("Tablet is paired")).to_be_visible()
    expect(dialog.locator(".success")).to_contain_text("Chat, 7 days")


@pytest.mark.firefox
def test_theme(site: Site, visit: PageOpener) -> None:
    visit.tolerated = FAILED_LOADS  # the settings, without an API server
    site.world.start_relay()
    site.open(api_url=None)
    page = visit(f"{site.url}#media", color_scheme="light")
    expect(page.get_by_text("No file is waiting")).to_be_visible()
    colour = "() => getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(colour)
    button = page.get_by_role("button", name="Theme")
    button.click()
    button.click()
    expect(page.get_by_role("button", name="Theme: dark")).to_be_visible()
    assert page.evaluate(colour) != light
    page.reload()
    expect(page.get_by_role("button", name="Theme: dark")).to_be_visible()
    assert page.evaluate(colour) != light
    page.goto(f"{site.url}#settings")
    page.get_by_role("combobox", name="Theme").select_option("Light")
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    expect(page.get_by_role("button", name="Theme: Light")).to_be_visible()


def test_under_a_path_of_a_proxy(site: Site, visit: PageOpener) -> None:
    site.world.start_relay()
    site.open(root_path="/board")
    page = visit(f"{site.url}board")  # a request outside of it is a fault
    expect(page.get_by_text("No device is paired")).to_be_visible()
    page.get_by_role("button", name="Pair new device").click()
    expect(page.get_by_role("img", name="QR code of the invite")).to_be_visible()
    assert page.url.endswith("/board/")
