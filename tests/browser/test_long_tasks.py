"""Tests of the page's longest tasks in a trace of Chromium: many devices, many chats, a long answer."""

import json
import time

from playwright.sync_api import Browser, expect

from tests.browser.conftest import PageOpener, Site, read_script
from tests.browser.test_chat import SECTION
from tests.browser.test_chat import start as start_chat
from tests.browser.test_chat_acts import sessions
from tests.browser.test_layout import Scripted, start

DAY = 86_400
DRAWN = 200  # ms
VIEWS = (("Management", "tbody tr", 25), ("Chat", ".chat-title", 200))
STREAMED = 100  # ms
STREAM = read_script("stream_answer.js")


def longest_task(trace: bytes) -> float:
    """Return the CPU time of the longest task of a renderer's main thread, in ms; other programs do not change it."""
    events = json.loads(trace)["traceEvents"]
    named = (each for each in events if each["name"] == "thread_name")
    main = {(each["pid"], each["tid"]) for each in named if each["args"]["name"] == "CrRendererMain"}
    tasks = (each for each in events if "tdur" in each and (each["pid"], each["tid"]) in main)
    return float(max(each["tdur"] for each in tasks)) / 1000


def test_views_with_many_rows(site: Site, visit: PageOpener, browser: Browser) -> None:
    now = time.time()
    grants = {"chat": now + DAY, "bridge": None, "terminal": now + 9 * DAY}
    devices = [{"token_prefix": f"{n:08x}", "device_name": f"Tablet {n}", "grants": grants} for n in range(500)]
    page = start(site, visit, "#settings", Scripted(sessions={"sessions": devices}, chats={"sessions": sessions(200)}))
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


def test_a_long_answer_streams_without_long_tasks(site: Site, visit: PageOpener, browser: Browser) -> None:
    page = start_chat(site, visit)
    expect(page.get_by_text("Talk to the agent")).to_be_visible()
    page.evaluate(STREAM, [SECTION, 2_000])  # the engine compiles the code
    for section in (SECTION, "- an item with some words\n" * 5):  # many blocks, and one
        browser.start_tracing(page=page, categories=["toplevel", "__metadata"])
        assert page.evaluate(STREAM, [section, 20_000]) > 8_000
        assert longest_task(browser.stop_tracing()) < STREAMED
