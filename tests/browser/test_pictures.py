"""How it looks: each tab in both themes, wide and narrow, without a fault of accessibility.

Pictures for the documents (`SHOWN`) are taken where `SVC_PICTURES` names a folder: docs/dashboard, from the root of the
project.
"""

from __future__ import annotations

import json
import os
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from playwright.sync_api import Page, expect

from clients.phone.handset import SimulatedHandset
from tests.browser.conftest import Site, Visitor
from tests.loops.world import bearer

Theme = Literal["light", "dark"]
WIDE = {"width": 1280, "height": 860}
THEMES: tuple[Theme, ...] = ("light", "dark")
NARROW = {"width": 390, "height": 844}
SERIOUS = ("serious", "critical")
KEY = "sk-pictures-7a"
AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8")
WORDS = (("/phone open_app com.example.maps", ".tool"), ("/screenshot", ".media-card .ttl"), ("/think", ".thought"))
TABS = (("Management", "tbody tr"), ("Activity", "tr.command"), ("Media", "tbody tr"), ("Chat", ".log"))
SHOWN = ("management", "pairing", "activity", "media", "phone", "chat", "narrow-activity", "narrow-chat")
COMMANDS: list[tuple[str, str, dict[str, Any] | None]] = [
    ("GET", "/ping", None),
    ("GET", "/screen", None),
    ("POST", "/open_app", {"package": "com.example.mail"}),
    ("POST", "/tap_text", {"text": "Compose"}),
    ("POST", "/open_app", {"package": "com.chase.sig.android"}),
    ("POST", "/type", {"text": "See you at eight"}),
    ("POST", "/tap_text", {"text": "nothing that is there"}),
    ("POST", "/tap_text", {"text": "Send"}),
    ("GET", "/current_app", None),
]


def faults(page: Page) -> list[str]:
    """What axe finds wrong, the serious things only."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE)
    found = page.evaluate("axe.run({ resultTypes: ['violations'] })")["violations"]
    return [
        f"{each['id']}: {each['help']}: {node['target']}"
        for each in found
        if each["impact"] in SERIOUS
        for node in each["nodes"]
    ]


class Album:
    """Looks at a page with axe, in both themes, and takes pictures if they are wanted."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self._folder = os.environ.get("SVC_PICTURES")

    def take(self, name: str, *themes: Theme) -> None:
        overflow = self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert overflow <= 0, f"{name} is wider than the screen"
        for theme in themes or THEMES:
            self.page.emulate_media(color_scheme=theme)
            assert faults(self.page) == [], (name, theme)
            if self._folder and name in SHOWN:
                self.page.evaluate("scrollTo(0, 0)")
                self.page.screenshot(path=Path(self._folder) / f"{name}-{theme}.png", animations="disabled")

    def open(self, tab: str, selector: str) -> None:
        self.page.get_by_role("link", name=tab, exact=True).first.click()
        expect(self.page.locator(selector).first).to_be_visible()


def furnish(site: Site) -> None:
    """A phone and a desktop that are paired, and a few commands."""
    world = site.world
    world.start_relay(media_ttl_seconds=900)
    world.pair("Workbench", ttl_seconds=86_400)
    phone = world.phone(handset=SimulatedHandset(name="Pixel 9"), name="Pixel 9")
    for method, path, body in COMMANDS:
        data = b"" if body is None else json.dumps(body).encode()
        world.http(method, path, headers=bearer(phone.token), body=data)
    site.open(api=world.api(key=KEY), api_key=KEY)


def test_every_tab(site: Site, visit: Visitor) -> None:
    furnish(site)
    page = visit(site.url, viewport=WIDE, reduced_motion="reduce")
    album = Album(page)
    expect(page.get_by_role("row", name="Pixel 9")).to_be_visible()
    album.take("management")
    page.get_by_role("button", name="Pair new device").click()
    expect(page.get_by_role("img", name="QR code of the invite")).to_be_visible()
    album.take("pairing")
    page.get_by_role("button", name="Done").click()

    album.open("Chat", ".ideas")
    album.take("chat-empty")
    message = page.get_by_label("Message", exact=True)
    for words, seen in WORDS:
        message.fill(words)
        page.keyboard.press("Enter")
        expect(page.locator(seen).first).to_be_visible()
        expect(page.get_by_role("button", name="Send")).to_be_visible()
    expect(page.locator(".chat-title")).to_have_count(1)
    album.take("chat")
    album.open("Activity", "tr.command")
    page.locator("tr.command").filter(has_text="Was not allowed").locator(".unfold").click()
    album.take("activity")
    album.open("Media", "tbody tr")
    album.take("media")

    page.set_viewport_size(NARROW)  # type: ignore[arg-type]  # a dict of that shape
    for tab, selector in TABS:
        album.open(tab, selector)
        album.take(f"narrow-{tab.lower()}", "light")  # it has no colours of its own


def test_empty_and_broken(site: Site, visit: Visitor) -> None:
    visit.tolerated = ("Failed to load resource",)
    site.world.start_relay()
    site.open()
    page = visit(site.url)
    album = Album(page)
    for tab in ("Management", "Activity", "Media"):
        album.open(tab, ".empty")
        album.take(f"empty-{tab.lower()}", "light")
    site.world.relay.stop()
    for tab in ("Management", "Activity", "Media"):
        album.open(tab, ".problem")
        album.take(f"broken-{tab.lower()}", "light")
