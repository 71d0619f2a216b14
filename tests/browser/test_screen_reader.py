"""Test of the page with keyboard and accessibility tree alone: pair a device, answer a question, revoke the device."""

import re
from typing import Any

from playwright.sync_api import Page

from tests.browser.conftest import PageOpener, Site, read_script

KEY = "sk-reader-4d"
STEPS = 80  # presses of a key within which an element has to be in reach
PAUSE = 100  # ms between two looks
LOOKS = 200
LISTEN = read_script("listen_to_announcer.js")


class ScreenReader:
    """A user's access to the page by keys, announcements, and the accessibility tree around the focused element."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._session = page.context.new_cdp_session(page)
        page.evaluate(LISTEN)

    def _nodes(self) -> list[dict[str, Any]]:
        nodes: list[dict[str, Any]] = self._session.send("Accessibility.getFullAXTree")["nodes"]
        return nodes

    def focus(self) -> list[str]:
        """Return role, name and description of the focused element and of those around it, if they have a name."""
        nodes = self._nodes()
        by_id = {node["nodeId"]: node for node in nodes}
        focused = [node for node in nodes if {"focused"} & {each["name"] for each in node.get("properties", ())}]
        node = focused[-1] if focused else None
        found: list[str] = []
        while node is not None:
            said = [node.get(part, {}).get("value", "") for part in ("role", "name", "description")]
            if said[1] and not node["ignored"]:
                found.append(": ".join(filter(None, map(str, said))))
            node = by_id.get(node.get("parentId", ""))
        return found

    def move_to(self, wanted: str, key: str = "Tab") -> list[str]:
        """Press a key until the focused element begins with `wanted`; return `focus()`.

        Raise AssertionError after `STEPS` attempts.
        """
        seen: list[str] = []
        for _ in range(STEPS):
            found = self.focus()
            if found and re.sub("[\u2068\u2069]", "", found[0]).startswith(wanted):
                return found
            seen += found[:1]
            self._page.keyboard.press(key)
        raise AssertionError(f"{wanted!r} is not in reach: {seen}")

    def expect_announcement(self, wanted: str) -> str:
        """Wait for an announcement that contains `wanted`, and return it. Raise AssertionError if none comes."""
        spoken: list[str] = []
        for _ in range(LOOKS):
            spoken = [re.sub("[\u2068\u2069]", "", each) for each in self._page.evaluate("window.spoken")]
            if found := [each for each in spoken if wanted in each]:
                return found[-1]
            self._page.wait_for_timeout(PAUSE)
        raise AssertionError(f"{wanted!r} was not announced: {spoken}")

    def expect_element(self, wanted: str) -> None:
        """Wait until the tree has an element whose `role: name` begins with `wanted`, else raise AssertionError."""
        for _ in range(LOOKS):
            said = [f"{node['role']['value']}: {node['name']['value']}" for node in self._nodes() if node.get("name")]
            if any(each.startswith(wanted) for each in said):
                return
            self._page.wait_for_timeout(PAUSE)
        raise AssertionError(f"{wanted!r} is not there")

    def press(self, key: str) -> None:
        self._page.keyboard.press(key)


def test_pairing_a_question_and_a_revocation(site: Site, visit: PageOpener) -> None:
    site.world.start_relay()
    site.open(api=site.world.api(key=KEY), api_key=KEY)
    page = visit(site.url)
    reader = ScreenReader(page)

    reader.expect_element("heading: No device is paired")
    assert reader.move_to("link: Skip to the content")
    assert "navigation: Dashboard" in reader.move_to("link: Management")
    reader.move_to("button: Pair new device")
    reader.press("Enter")
    code = reader.expect_announcement("Code ")
    assert re.fullmatch(r"Code( [A-Z0-9]){6}", code)
    assert any(each.startswith("dialog: Pair a device") for each in reader.focus())
    reader.expect_element(f"status: {code}")
    reader.expect_element("image: QR code of the invite")
    site.world.pair("Pixel 9")
    page.clock.fast_forward(2_000)  # the dialog looks for the new device every 2 s
    reader.expect_announcement("Pixel 9 is paired")
    reader.move_to("button: Done")
    reader.press("Enter")
    assert reader.focus()[0] == "button: Pair new device"  # where the walk has been before

    reader.move_to("link: Chat", "Shift+Tab")
    reader.press("Enter")
    reader.expect_element("textbox: Message")
    reader.move_to("textbox: Message")
    page.keyboard.type("/approve")
    reader.press("Enter")
    reader.expect_announcement("The agent asks: A demonstration: it does nothing.")
    around = reader.move_to("button: Allow once", "Shift+Tab")
    assert around[1:3] == ["group: Question of the agent", "log: Conversation"]
    reader.press("Enter")
    reader.expect_announcement("The agent has answered")
    reader.expect_element("StaticText: Agent:")
    reader.expect_element("button: Copy this answer")

    reader.move_to("link: Management", "Shift+Tab")
    reader.press("Enter")
    reader.expect_element("button: Revoke Pixel 9")
    around = reader.move_to("button: Revoke Pixel 9")
    assert "table: Paired devices" in around
    reader.press("Enter")
    question = reader.focus()
    assert question[0] == "button: Cancel"  # the safe choice
    assert re.search(r"alertdialog: Revoke .*Pixel 9.*\?: Its connection is closed at once", " ".join(question))
    reader.move_to("button: Revoke")
    reader.press("Enter")
    reader.expect_announcement("Pixel 9 is revoked")
    reader.expect_element("heading: No device is paired")
