"""No task of the page takes 200 ms of CPU time to draw 25 of 500 devices, or 200 chats."""

from __future__ import annotations

import time

from playwright.sync_api import Browser, expect

from tests.browser.conftest import PageOpener, Site
from tests.browser.test_chat import longest_task
from tests.browser.test_chat_acts import sessions
from tests.browser.test_layout import Scripted, start

DAY = 86_400
DRAWN = 200  # ms
VIEWS = (("Management", "tbody tr", 25), ("Chat", ".chat-title", 200))


def test_views_with_many_rows(site: Site, visit: PageOpener, browser: Browser) -> None:
    now = time.time()
    grants = {"chat": now + DAY, "bridge": None, "terminal": now + 9 * DAY}
    devices = [{"token_prefix": f"{n:08x}", "device_name": f"Tablet {n}", "grants": grants} for n in range(500)]
    page = start(
        site,
        visit,
        "#settings",
        Scripted(sessions={"sessions": devices}, chats={"sessions": sessions(200)}),
    )
    for traced in (False, True):  # the first time loads and compiles the code
        for tab, selector, count in VIEWS:
            page.get_by_role("link", name="Settings").click()
            expect(page.get_by_role("heading", name="Voice")).to_be_visible()
            if traced:
                browser.start_tracing(page=page, categories=["toplevel", "__metadata"])
            page.get_by_role("link", name=tab, exact=True).click()
            expect(page.locator(selector)).to_have_count(count)
            if traced:
                assert longest_task(browser.stop_tracing()) < DRAWN, tab
