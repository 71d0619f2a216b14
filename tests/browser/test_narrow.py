"""Tests of the page on a phone: a bar of tabs at the bottom of 320 px, and an installable page."""

import json

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import PageOpener, Site, box_of, read_script
from tests.browser.test_layout import Scripted, start

IN_REACH = ("Chat", "Phone", "Management", "Activity")
OTHERS = ("Audit", "Media", "Load", "Settings")
NARROW = {"width": 320, "height": 568}


ENTRIES = read_script("bar_entries.js")


def check_bar(page: Page, bar: Locator) -> None:
    """Assert that the bar has five entries inside 320 x 568 px, of at least 44 px, each with its word on one line."""
    expect(bar.locator("> ul > li > :is(a, button) span").last).to_be_visible()
    entries = bar.evaluate(ENTRIES)  # one call, since each costs Firefox much more than Chromium
    assert len(entries) == 5
    for entry in entries:
        assert entry["words"] == 1
        assert entry["visible"]
        assert entry["shown"] == entry["text"] != ""
        left, top, right, bottom = entry["box"]
        word_left, word_top, word_right, word_bottom = entry["word"]
        assert 0 <= left <= word_left < word_right <= right <= 320
        assert bottom <= 568
        assert 0 < word_bottom - word_top < 20, entry["shown"]  # one line
        assert min(right - left, bottom - top) >= 44  # WCAG 2.5.5
    assert page.evaluate("document.documentElement.scrollWidth") <= 320


@pytest.mark.firefox
def test_all_tabs_are_in_reach_at_the_bottom(site: Site, visit: PageOpener) -> None:
    visit.tolerated = ("Failed to load resource",)  # there is no reference phone
    page = start(site, visit, "", Scripted(), viewport=NARROW)
    bar = page.get_by_role("navigation", name="Dashboard")
    more = bar.get_by_role("button", name="More")
    for tab in IN_REACH:
        link = bar.get_by_role("link", name=tab, exact=True)
        link.click()
        expect(link).to_have_attribute("aria-current", "page")
        check_bar(page, bar)
        assert more.get_attribute("aria-current") is None
    for tab in OTHERS:
        link = bar.get_by_role("link", name=tab, exact=True)
        expect(link).to_have_count(0)  # hidden
        more.click()
        box = box_of(link)
        assert box["y"] >= 0
        assert box["height"] >= 44
        link.click()
        expect(link).to_have_count(0)
        expect(page.get_by_role("heading", name=tab, exact=True, level=2)).to_have_count(1)
        expect(more).to_have_attribute("aria-current", "true")
        check_bar(page, bar)
    page.set_viewport_size({"width": 1024, "height": 768})
    expect(more).to_have_count(0)
    names = bar.get_by_role("link").all_inner_texts()
    assert names == ["Management", "Activity", "Audit", "Media", "Load", "Phone", "Chat", "Settings"]
    expect(bar.get_by_role("link", name="Settings")).to_have_attribute("aria-current", "page")


@pytest.mark.parametrize("locale", ["de-DE", "es-ES", "fr-FR", "zh-CN"])
def test_each_entry_of_the_bar_has_its_word(locale: str, site: Site, visit: PageOpener) -> None:
    page = start(site, visit, "", Scripted(), viewport=NARROW, locale=locale)
    expect(page.locator(".tabs a[aria-current]")).to_be_visible()
    check_bar(page, page.locator(".tabs"))


def test_the_other_tabs_open_by_the_keyboard(site: Site, visit: PageOpener) -> None:
    page = start(site, visit, "", Scripted(), viewport=NARROW)
    more = page.get_by_role("button", name="More")
    expect(more).to_have_attribute("aria-expanded", "false")
    more.focus()
    page.keyboard.press("Enter")
    expect(more).to_have_attribute("aria-expanded", "true")
    snapshot = page.locator(".tabs").aria_snapshot()
    assert '- button "More" [expanded]' in snapshot
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Audit")).to_be_focused()
    page.keyboard.press("Escape")
    expect(more).to_be_focused()
    expect(page.get_by_role("link", name="Audit")).to_have_count(0)
    page.keyboard.press("Space")
    for _ in OTHERS:
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Settings", exact=True, level=2)).to_have_count(1)
    expect(more).to_be_focused()
    page.keyboard.press("Space")
    expect(page.get_by_role("link", name="Settings")).to_have_attribute("aria-current", "page")
    page.keyboard.press("Shift+Tab")
    expect(more).to_have_attribute("aria-expanded", "false")  # the focus is outside
    more.click()
    page.locator("main").click(position={"x": 5, "y": 5})
    expect(more).to_have_attribute("aria-expanded", "false")


def test_the_page_can_be_installed(site: Site, visit: PageOpener) -> None:
    page = start(site, visit, "", Scripted())
    session = page.context.new_cdp_session(page)
    found = session.send("Page.getAppManifest")
    assert found["url"] == f"{site.url}page/manifest.webmanifest"
    assert found["errors"] == []
    assert json.loads(found["data"])["display"] == "standalone"
    assert session.send("Page.getInstallabilityErrors")["installabilityErrors"] == []


@pytest.mark.firefox
def test_the_chat_fills_the_screen_down_to_the_tabs(site: Site, visit: PageOpener) -> None:
    page = start(site, visit, "#chat", Scripted(), viewport={"width": 390, "height": 740})
    composer, tabs = page.locator(".talk"), page.locator("#tabs")
    expect(composer).to_be_visible()
    low, top = box_of(composer), box_of(tabs)
    assert 0 <= top["y"] - low["y"] - low["height"] <= 16
    assert page.evaluate("document.documentElement.scrollHeight - innerHeight") <= 0
