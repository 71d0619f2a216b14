"""Tests of each tab for overflow at all widths, and for accessibility faults at some widths and in both themes.

Pictures for the documents are taken where `SVC_PICTURES` names a folder: docs/images, from the root of the project.
"""

import json
import os
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from playwright.sync_api import FilePayload, Page, expect

from clients.phone.emulator.png import draw
from svc_proto.phone.safety.settings import ConfirmationPolicy
from tests.browser.conftest import PageOpener, Site
from tests.loops.environment import TRUSTING, bearer
from tests.loops.phone_screen import PhoneScreen

Theme = Literal["light", "dark"]
WIDE = {"width": 1280, "height": 860}
THEMES: tuple[Theme, ...] = ("light", "dark")
LOOKED_AT = (320, 768, 1024, 1600)  # px, checked by axe
WIDTHS = (500, *LOOKED_AT)  # the breakpoints of the style sheets are between them
PHONE = 640  # CSS pixels: the widest window with the bar of a phone
NARROW = 390
COLOURS = ("color-contrast",)  # the rules of axe that a theme can break
PLACES = ("target-size", "scrollable-region-focusable")  # the rules that a width can break
KEY = "sk-pictures-7a"
AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8")
WORDS = (("/phone open_app com.example.maps", ".tool"), ("/screenshot", ".media-card .ttl"), ("/think", ".thought"))
TABS = (
    ("Management", "tbody tr"), ("Activity", "tr.command"), ("Audit", "tbody tr"), ("Media", "tbody tr"),
    ("Phone", ".glass"), ("Chat", ".log"), ("Settings", "form")
)  # fmt: skip
FILES: list[FilePayload] = [
    {"name": "shot.png", "mimeType": "image/png", "buffer": draw((), screen_on=False)},
    {"name": "notes.txt", "mimeType": "text/plain", "buffer": b"Remember the milk."},
]
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


def faults(page: Page, *rules: str, but: tuple[str, ...] = ()) -> list[str]:
    """Return the accessibility faults of any impact that axe finds by `rules`, or by all rules except `but`."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE)
    options = {
        "resultTypes": ["violations"],
        "preload": False,  # of style sheets of other hosts: there are none
        "rules": {rule: {"enabled": False} for rule in but},
        **({"runOnly": rules} if rules else {}),
    }
    found = page.evaluate("(options) => axe.run(options)", options)["violations"]
    return [f"{each['id']}: {each['help']}: {node['target']}" for each in found for node in each["nodes"]]


class Album:
    """Checks of a page in both themes with axe, and its pictures, if `SVC_PICTURES` requests them."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self._folder = os.environ.get("SVC_PICTURES")

    def check(self, name: str) -> None:
        """Check that the page does not overflow, and has no axe faults: all rules in light, colours alone in dark."""
        self.fits(name)
        for theme in THEMES:
            self.page.emulate_media(color_scheme=theme)
            chosen = () if theme == "light" else COLOURS  # the rest is the same in both
            assert faults(self.page, *chosen) == [], (name, theme)

    def check_everywhere(self, name: str) -> None:
        """Check the overflow at all widths, and accessibility at some, since hidden elements may lack a name.

        Every coloured element is visible at the last width at least, so colours are checked there.
        """
        before = self.page.viewport_size
        for width in WIDTHS:
            self.page.set_viewport_size({"width": width, "height": 844})
            self.fits(f"{name} at {width}")
            if width == LOOKED_AT[0]:
                assert faults(self.page, but=COLOURS) == [], (name, width)
            elif width == LOOKED_AT[-1]:
                self.check(f"{name} at {width}")
            elif width in LOOKED_AT:
                assert faults(self.page, *PLACES) == [], (name, width)
        assert before is not None
        self.page.set_viewport_size(before)
        expect(self.page.locator("#more")).to_have_count(int(before["width"] <= PHONE))  # the tabs are in place again

    def fits(self, name: str) -> None:
        overflow = self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert overflow <= 0, f"{name} is wider than the screen"

    def shoot(self, name: str, *themes: Theme) -> None:
        for theme in themes or THEMES:
            if self._folder:
                self.page.emulate_media(color_scheme=theme)
                self.page.evaluate("scrollTo(0, 0)")
                self.page.screenshot(path=Path(self._folder) / f"{name}-{theme}.png", animations="disabled")

    def open(self, tab: str, selector: str) -> None:
        link = self.page.get_by_role("link", name=tab, exact=True)
        if link.count() == 0:  # hidden on a phone
            self.page.get_by_role("button", name="More", exact=True).click()
        link.first.click()
        expect(self.page.locator(selector).first).to_be_visible()


def furnish(site: Site) -> PhoneScreen:
    """Start all servers, pair a desktop and a phone with a screen, send some commands, and return the phone."""
    world = site.world
    world.start_relay(media_ttl_seconds=900)
    device = world.pair("Workbench", ttl_seconds=86_400)
    phone = PhoneScreen(world, name="Pixel 9", safety=TRUSTING)
    for method, path, body in COMMANDS:
        data = b"" if body is None else json.dumps(body).encode()
        world.http(method, path, headers=bearer(device.token), body=data)
    site.open(api=world.api(key=KEY), api_key=KEY)
    return phone


def test_every_tab(site: Site, visit: PageOpener) -> None:
    phone = furnish(site)
    page = visit(site.url, viewport=WIDE, reduced_motion="reduce")
    album = Album(page)
    expect(page.get_by_role("row", name="Pixel 9")).to_be_visible()
    album.shoot("management")
    page.get_by_role("button", name="Pair new device").click()
    expect(page.get_by_role("img", name="QR code of the invite")).to_be_visible()
    album.check_everywhere("pairing")
    album.shoot("pairing")
    page.get_by_role("button", name="Done").click()
    page.get_by_role("button", name="Revoke").first.click()
    expect(page.get_by_role("alertdialog")).to_be_visible()
    album.check_everywhere("revoke")
    album.shoot("revoke")
    page.keyboard.press("Escape")

    album.open("Chat", ".ideas")
    album.check("chat-empty")
    message = page.get_by_label("Message", exact=True)
    for words, seen in WORDS:
        message.fill(words)
        page.keyboard.press("Enter")
        expect(page.locator(seen).first).to_be_visible()
        expect(page.get_by_role("button", name="Send")).to_be_visible()
    expect(page.locator(".chat-title")).to_have_count(1)
    album.shoot("chat")
    page.get_by_label("Files to attach").set_input_files(FILES)
    expect(page.get_by_role("list", name="Attached").locator("li")).to_have_count(2)
    album.check_everywhere("attachments")
    for file in FILES:
        page.get_by_role("button", name=f"Leave out {file['name']}").click()
    message.fill("/approve")
    page.keyboard.press("Enter")
    expect(page.locator(".ask")).to_be_visible()
    album.check_everywhere("approval")
    album.shoot("approval")
    page.get_by_role("button", name="Deny").click()
    expect(page.get_by_role("button", name="Send")).to_be_visible()
    album.open("Activity", "tr.command")
    page.locator("tr.command").filter(has_text="Was not allowed").locator(".unfold").click()
    album.check_everywhere("activity-details")
    album.shoot("activity")
    album.open("Media", "tbody tr")
    album.shoot("media")
    album.open("Phone", ".glass")
    phone.service.phone._executor.answers = ConfirmationPolicy.ASK
    with ThreadPoolExecutor() as agent:
        sms = json.dumps({"to": "+15550100", "body": "I am ten minutes late."}).encode()
        asked = agent.submit(site.world.http, "POST", "/send_sms", headers=bearer(phone.token), body=sms)
        expect(page.get_by_text("Send this message?")).to_be_visible()
        album.check_everywhere("phone-asks")
        album.shoot("phone")
        page.get_by_role("button", name="Deny").click()
        assert asked.result().status == 403

    page.set_viewport_size({"width": NARROW, "height": 844})
    for tab in ("Activity", "Phone", "Chat"):
        album.open(tab, dict(TABS)[tab])
        album.shoot(f"narrow-{tab.lower()}", "light")  # the theme changes nothing here
    page.get_by_role("button", name="More", exact=True).click()
    album.check("more")
    page.keyboard.press("Escape")
    for tab, selector in TABS:
        album.open(tab, selector)
        album.check_everywhere(tab)


def test_empty_and_broken(site: Site, visit: PageOpener) -> None:
    visit.tolerated = ("Failed to load resource",)
    site.world.start_relay()
    site.open()
    page = visit(site.url, reduced_motion="reduce")  # no colour transition
    album = Album(page)
    for tab in ("Management", "Activity", "Media", "Phone"):
        album.open(tab, ".empty")
        album.check(f"empty-{tab.lower()}")
    site.world.relay.stop()
    for tab in ("Management", "Activity", "Media"):
        album.open(tab, ".problem")
        album.check(f"broken-{tab.lower()}")
