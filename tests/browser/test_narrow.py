"""The page on a phone: a bar of tabs at the bottom of 320 px, and an installable page."""

from __future__ import annotations

import json

from playwright.sync_api import expect

from tests.browser.conftest import PageOpener, Site
from tests.browser.test_layout import Scripted, start

TABS = ("Management", "Activity", "Audit", "Media", "Load", "Phone", "Chat", "Settings")


def test_all_tabs_are_in_reach_at_the_bottom(site: Site, visit: PageOpener) -> None:
    visit.tolerated = ("Failed to load resource",)  # there is no reference phone
    page = start(site, visit, "", Scripted(), viewport={"width": 320, "height": 568})
    bar = page.get_by_role("navigation", name="Dashboard")
    for tab in TABS:
        link = bar.get_by_role("link", name=tab, exact=True)
        link.click()
        expect(link).to_have_attribute("aria-current", "page")
        box = link.bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 320
        assert box["y"] + box["height"] <= 568
        assert min(box["width"], box["height"]) >= 24  # WCAG 2.5.8
        assert page.evaluate("document.documentElement.scrollWidth") <= 320, tab
    page.set_viewport_size({"width": 1024, "height": 768})
    expect(bar.get_by_text("Activity", exact=True)).to_be_visible()


def test_the_page_can_be_installed(site: Site, visit: PageOpener) -> None:
    page = start(site, visit, "", Scripted())
    session = page.context.new_cdp_session(page)
    found = session.send("Page.getAppManifest")
    assert found["url"] == f"{site.url}page/manifest.webmanifest"
    assert found["errors"] == []
    assert json.loads(found["data"])["display"] == "standalone"
    assert session.send("Page.getInstallabilityErrors")["installabilityErrors"] == []


def test_the_chat_fills_the_screen_down_to_the_tabs(site: Site, visit: PageOpener) -> None:
    page = start(site, visit, "#chat", Scripted(), viewport={"width": 390, "height": 740})
    composer, tabs = page.locator(".talk"), page.locator("#tabs")
    expect(composer).to_be_visible()
    low, top = composer.bounding_box(), tabs.bounding_box()
    assert low is not None
    assert top is not None
    assert 0 <= top["y"] - low["y"] - low["height"] <= 16
    assert page.evaluate("document.documentElement.scrollHeight - innerHeight") <= 0
