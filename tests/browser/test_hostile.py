"""Tests that names of devices, files, commands and agents are shown as text, also with markup in them."""

import pytest
from playwright.sync_api import Page, expect

from svc_proto.cli.health_checks import run_health_checks
from svc_proto.cli.health_facts import HostFacts, ModelFacts
from tests.browser.conftest import PageOpener, Site
from tests.browser.hostile_server import EVIL, HostileServer

WIDTHS = (320, 1600)  # px
STICKS_OUT = """(width) => document.documentElement.scrollWidth <= width ? [] : [...document.body.querySelectorAll("*")]
  .filter((each) => each.checkVisibility() && each.getBoundingClientRect().right > width + 1)
  .map((each) => `${each.tagName}.${each.className} ${each.getBoundingClientRect().right | 0}`)"""


@pytest.fixture
def page(site: Site, visit: PageOpener) -> Page:
    url = site.world.peer(HostileServer())
    site.open(relay_url=url, api_url=url)
    opened = visit(site.url)
    opened.on("dialog", lambda dialog: pytest.fail(f"a script ran: {dialog.message}"))
    return opened


def nothing_of_it_is_markup(page: Page) -> None:
    assert (
        page.locator("#panel img:not([alt]), #panel script, #panel b, dialog img, dialog script, dialog b").count() == 0
    )
    assert page.locator("a[href^='javascript' i]").count() == 0
    before = page.viewport_size
    assert before is not None
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 800})
        found = page.evaluate(STICKS_OUT, width)
        assert not found, "; ".join(found)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.set_viewport_size(before)


def test_devices(page: Page) -> None:
    row = page.get_by_role("table", name="Paired devices").locator("tbody tr")
    expect(row.locator(".name")).to_have_text(EVIL)
    assert (row.inner_text()).count("<script>") >= 4  # name, prefix, model, platform, and a grant
    expect(page.locator(".card .value").first).to_have_text(EVIL)
    server = page.get_by_role("table", name="MCP servers").locator("tbody tr")
    expect(server.locator(".name")).to_have_text(EVIL)
    assert server.inner_text().count("<script>") == 5
    nothing_of_it_is_markup(page)
    page.get_by_role("button", name="Pair new device").click()
    expect(page.get_by_role("dialog").locator(".code")).to_have_text(EVIL)
    expect(page.get_by_role("dialog").locator("input[readonly]")).to_have_value(EVIL)
    nothing_of_it_is_markup(page)


def test_commands(page: Page) -> None:
    page.get_by_role("link", name="Activity").click()
    row = page.locator("tr.command")
    expect(row.locator(".deed")).to_contain_text(f"/{EVIL}")
    row.locator(".unfold").click()
    details = page.locator("tr.details")
    expect(details.locator("pre").last).to_have_text(EVIL)
    assert details.inner_text().count("<script>") == 9  # each member, a parameter's name and value
    nothing_of_it_is_markup(page)


def test_approvals_and_audit_events(page: Page) -> None:
    page.get_by_role("link", name="Audit").click()
    for table in ("Standing approvals", "Audit log"):
        row = page.get_by_role("table", name=table).locator("tbody tr")
        expect(row).to_contain_text(EVIL)
        assert row.inner_text().count("<script>") >= 2
    nothing_of_it_is_markup(page)


def test_files(page: Page) -> None:
    page.get_by_role("link", name="Media").click()
    name = page.get_by_role("table", name="Files").locator("tbody .name")
    expect(name).to_have_text(EVIL.rpartition("/")[2])  # the part after the last slash
    nothing_of_it_is_markup(page)


def test_chats(page: Page) -> None:
    page.get_by_role("link", name="Chat").click()
    page.locator(".chat-title").click()
    expect(page.locator(".bubble")).to_have_text(EVIL)
    expect(page.locator(".prose li")).to_have_text(EVIL.replace("&lt;", "<"))  # an entity of CommonMark
    expect(page.locator(".prose pre")).to_have_text(EVIL)
    nothing_of_it_is_markup(page)
    page.get_by_label("Message", exact=True).fill("Hi")
    page.keyboard.press("Enter")
    expect(page.locator(".note.failed")).to_have_text("<img src=x onerror=alert(1)>")
    expect(page.locator(".prose").last.locator("strong")).to_have_text("<b>bold</b>")
    expect(page.locator(".prose").last.locator("a")).to_have_attribute("href", "https://a.example/")
    nothing_of_it_is_markup(page)


def test_phones(page: Page, visit: PageOpener) -> None:
    visit.tolerated = ("Failed to load resource",)  # there is no reference phone
    page.get_by_role("link", name="Phone").click()
    expect(page.locator(".news .name").first).to_contain_text("<script>")
    assert page.locator("#panel").inner_text().count("<script>") >= 4  # name, notification, command
    nothing_of_it_is_markup(page)


def test_settings(page: Page) -> None:
    page.get_by_role("link", name="Settings").click()
    expect(page.get_by_text("The agent uses")).to_contain_text("<script>")
    page.get_by_role("button", name="List the models").click()
    expect(page.locator(".found .chip").first).to_contain_text("<script>")
    expect(page.get_by_role("alert").first).to_contain_text("<script>")
    address = page.get_by_label("Public address, offered")
    expect(address).to_have_value(EVIL)
    expect(address).to_be_disabled()
    nothing_of_it_is_markup(page)


def test_health_checks(page: Page) -> None:
    host = HostFacts(
        now=0, version=EVIL, home=EVIL, model=ModelFacts(base_url=EVIL, name=EVIL, problem=EVIL), disk_free=1
    )
    checks = [each.members() for each in run_health_checks(host)]
    page.route("**/api/health", lambda route: route.fulfill(json={"checked_at": 1, "checks": checks}))
    page.reload()
    expect(page.get_by_role("table", name="Health")).to_contain_text("<script>")
    nothing_of_it_is_markup(page)


def test_clients_that_are_signed_in(site: Site, visit: PageOpener) -> None:
    url = site.world.peer(HostileServer())
    site.open(relay_url=url, api_url=url, password="correct horse")
    page = visit(f"{site.url}login", user_agent=EVIL)
    page.get_by_label("Password").fill("correct horse")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("table", name="Signed-in clients")).to_contain_text("This browser")
    nothing_of_it_is_markup(page)


def test_problems(site: Site, visit: PageOpener) -> None:
    visit.tolerated = ("Failed to load resource",)
    url = site.world.peer(HostileServer())
    site.open(relay_url=f"{url}/none", api_url=url)
    page = visit(site.url)
    expect(page.get_by_role("alert")).to_contain_text("<script>")
    nothing_of_it_is_markup(page)
