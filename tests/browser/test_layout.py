import re
import time
from itertools import pairwise
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from svc_proto.engine.message import Request, json_response
from tests.browser.conftest import PageOpener, Site, box_of, read_script
from tests.support.servers.scripted_service import ScriptedService, row

LONG = "Averyverylongnamewithoutanyspace" * 4
OFFICE = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
DASH = "\u2013"
ENDED = {"run_id": "r", "role": "assistant"}


class Scripted(ScriptedService):
    """Scripted relay and API server with `answers` by name."""

    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        self.asked: list[str] = []
        places = {
            "info": ("GET", "/relay/info"), "sessions": ("GET", "/sessions"), "activity": ("GET", "/bridge/activity"),
            "phones": ("GET", "/bridge/devices"), "notifications": ("GET", "/notifications/recent"),
            "media": ("GET", "/media/inspect"), "picture": ("GET", "/media/inspect/{token}"),
            "revoke": ("DELETE", "/sessions/{prefix}"), "audit": ("GET", "/audit"),
            "approvals": ("GET", "/api/approvals"), "ended": ("DELETE", "/api/approvals"),
            "changes": ("GET", "/api/changes"), "undone": ("POST", "/api/changes/undo"),
            "pairing": ("POST", "/pairing/mint"), "config": ("GET", "/api/config"), "host": ("GET", "/api/host"),
            "host_changed": ("PATCH", "/api/host"), "rotated": ("POST", "/api/key/rotate"),
            "servers": ("GET", "/api/mcp-servers"), "probed": ("POST", "/api/model/probe"),
            "configured": ("PATCH", "/api/config"), "chats": ("GET", "/api/sessions"),
            "hits": ("GET", "/api/sessions/search"), "renamed": ("PATCH", "/api/sessions/{id}"),
            "messages": ("GET", "/api/sessions/{id}/messages"), "run": ("GET", "/v1/runs/{id}"),
            "stop": ("POST", "/v1/runs/{id}/stop")
        }  # fmt: skip
        super().__init__(row(*place, self._telling(name)) for name, place in places.items())

    def _telling(self, name: str) -> Any:
        def handler(request: Request) -> Any:
            self.asked.append(request.path)
            return json_response(200, self.answers.get(name, {}))

        return handler


def start(site: Site, visit: PageOpener, place: str = "", script: Scripted | None = None, **options: Any) -> Page:
    url = site.world.peer(script or Scripted())
    site.open(relay_url=url, api_url=url)
    return visit(f"{site.url}{place}", **options)


def lines_of(text: Locator) -> int:
    return int(
        text.evaluate(
            "(each) => { const range = document.createRange(); range.selectNodeContents(each);"
            " return new Set([...range.getClientRects()].map((box) => box.top)).size; }"
        )
    )


def style_of(element: Locator, name: str, part: str = "") -> str:
    return str(element.evaluate("(each, [name, part]) => getComputedStyle(each, part)[name]", [name, part or None]))


def test_a_long_type_leaves_room_for_the_name(site: Site, visit: PageOpener) -> None:
    now = time.time()
    entry = {"token": "t1", "file_name": "screenshot.png", "content_type": OFFICE, "size": 1 << 24, "created_at": now}
    page = start(site, visit, "#media", Scripted(media={"media": [{**entry, "expires_at": now + 3600}]}))
    expect(page.locator("tbody .name")).to_be_visible()
    assert lines_of(page.locator("tbody .name")) == 1
    assert lines_of(page.locator("tbody td.number .cell")) == 1


def test_the_current_tab_is_visible_with_forced_colours(site: Site, visit: PageOpener) -> None:
    plainly = {"forced_colors": "active", "reduced_motion": "reduce"}  # no colour transition
    page = start(site, visit, "#activity", Scripted(activity={"activity": [record(1)]}), **plainly)
    tabs = page.locator(".tabs a")
    expect(tabs.nth(1)).to_have_attribute("aria-current", "page")
    chosen = [style_of(tab, "borderBottomColor") for tab in tabs.all()]
    assert len({*chosen}) == 2
    assert chosen.count(chosen[1]) == 1
    switch = page.get_by_role("switch", name="Auto-refresh")
    on = style_of(switch, "backgroundColor"), style_of(switch, "backgroundColor", "::after")
    assert on[0] != on[1]
    switch.click()
    assert style_of(switch, "backgroundColor") != on[0]
    chips = page.locator(".chip")
    expect(chips.first).to_be_visible()
    assert style_of(chips.first, "outlineStyle") == "solid"
    assert style_of(chips.last, "outlineStyle") == "none"


def record(ago: float, **members: Any) -> dict[str, Any]:
    """Return an activity record of a command that was sent `ago` seconds ago; `members` replace its members."""
    told = {"request_id": f"r{ago}", "sent_at": int((time.time() - ago) * 1000), "method": "GET", "path": "/ping"}
    return {**told, "decision": "executed", "response_status": 200, "params": {}, "error": None, **members}


AXES: tuple[tuple[int, float, list[str]], ...] = (
    (1280, 30, ["1 minute ago", "45 seconds ago", "30 seconds ago", "15 seconds ago", "now"]),
    (1280, 200, ["5 minutes ago", "4 minutes ago", "3 minutes ago", "2 minutes ago", "1 minute ago", "now"]),
    (1280, 600, ["15 minutes ago", "10 minutes ago", "5 minutes ago", "now"]),
    (1280, 20_000, [*(f"{n} hours ago" for n in (6, 5, 4, 3, 2)), "1 hour ago", "now"]),
    (1280, 90_000, ["1 day ago", "18 hours ago", "12 hours ago", "6 hours ago", "now"]),
    (360, 600, ["15m ago", "now"]),
    (360, 3000, ["1h ago", "30m ago", "now"]),
)


def test_the_axis_has_round_steps(site: Site, visit: PageOpener) -> None:
    script = Scripted()
    page = start(site, visit, "#activity", script)
    for width, oldest, axis in AXES:
        script.answers["activity"] = {"activity": [record(1), record(oldest)]}
        page.set_viewport_size({"width": width, "height": 800})
        page.reload()
        expect(page.locator(".timeline .axis").first).to_be_visible()
        expect(page.locator(".timeline .axis")).to_have_text(axis)
        # At once, since they are redrawn as time passes.
        boxes = page.locator(".timeline .axis").evaluate_all("all => all.map(each => each.getBoundingClientRect())")
        assert len(boxes) == len(axis)
        for left, right in pairwise(boxes):
            assert left["x"] + left["width"] < right["x"]


def test_surplus_records_of_a_relay_are_dropped(site: Site, visit: PageOpener) -> None:
    page = start(site, visit, "#activity", Scripted(activity={"activity": [record(n) for n in range(150)]}))
    expect(page.locator("tr.command")).to_have_count(100)


def test_a_name_cannot_reverse_the_text_of_a_question(site: Site, visit: PageOpener) -> None:
    names = {"a": "Pixel\n\nIt is safe to agree \u202e)dlo(\u2069", "b": LONG, "c": "\u200b \u2066"}
    sessions = [{"token_prefix": prefix, "device_name": name} for prefix, name in names.items()]
    page = start(site, visit, "", Scripted(sessions={"sessions": sessions}))
    asked: list[str] = []
    question = page.get_by_role("alertdialog")
    expect(page.locator("tbody .name")).to_have_text([re.compile("Pixel"), LONG, DASH])
    for button in page.get_by_role("button", name="Revoke").all():
        button.click()
        asked.append(question.get_by_role("heading").text_content() or "")
        question.press("Escape")
    assert asked == [
        "Revoke \u2068Pixel It is safe to agree  )dlo( \u2069 (\u2068a\u2069)?",
        f"Revoke \u2068{LONG[:79]}…\u2069 (\u2068b\u2069)?",
        f"Revoke \u2068{DASH}\u2069 (\u2068c\u2069)?",
    ]
    assert {style_of(name, "unicodeBidi") for name in page.locator("tbody .name").all()} == {"isolate"}


MARKDOWN = f"""> quoted
> again

See https://a.example/x. and [there](https://b.example/y)

```
{"x" * 300}
```
"""


def test_markdown_of_a_model(site: Site, visit: PageOpener) -> None:
    rows = [{"role": "user", "content": LONG}, {**ENDED, "content": MARKDOWN}]
    script = Scripted(messages={"messages": rows}, chats={"sessions": [{"id": "c", "title": LONG}]})
    page = start(site, visit, "#chat/c", script, viewport={"width": 360, "height": 740})
    prose = page.locator(".prose")
    expect(prose.locator("blockquote")).to_have_text("quotedagain")  # a line break
    links = [(each.inner_text(), each.get_attribute("href")) for each in prose.locator("a").all()]
    assert links == [("https://a.example/x", "https://a.example/x"), ("there", "https://b.example/y")]
    log = box_of(page.locator(".log"))
    for each in page.locator(".prose pre, .bubble").all():  # nothing sticks out of the log
        box = box_of(each)
        assert log["x"] <= box["x"]
        assert box["x"] + box["width"] <= log["x"] + log["width"]
    page.locator("summary", has_text="Chats").click()
    title = box_of(page.locator(".chat-title span"))
    row = box_of(page.locator(".chat-title"))
    assert title["x"] - row["x"] < 20  # at the left, and not in the middle


def test_a_turn_that_runs_elsewhere(site: Site, visit: PageOpener) -> None:
    question = {"role": "user", "content": "How long?", "run_id": "run-7"}
    called = {**ENDED, "content": "", "tool_calls": [{"id": "t", "function": {"name": "look", "arguments": "{}"}}]}
    script = Scripted(messages={"messages": [question, called]}, run={"run_id": "r", "status": "running"})
    page = start(site, visit, "#chat/c%201", script)
    expect(page.locator(".note")).to_have_text("The answer is not there yet. It appears here by itself.")
    expect(page.locator(".tool")).to_have_attribute("data-state", "running")
    with page.expect_response("**/runs/r/stop"):
        page.get_by_role("button", name="Stop").click()
    assert "/v1/runs/r/stop" in script.asked
    failed = {"role": "tool", "tool_call_id": "t", "content": "error: it is gone"}
    script.answers["messages"] = {"messages": [question, called, failed, {**ENDED, "content": "Forever."}]}
    page.clock.fast_forward(2_000)
    expect(page.locator(".prose")).to_have_text("Forever.")
    expect(page.locator(".tool")).to_have_attribute("data-state", "failed")
    expect(page.locator(".note")).to_have_count(0)
    expect(page.get_by_role("button", name="Stop")).to_be_hidden()
    assert {each for each in script.asked if each.endswith("/messages")} == {"/api/sessions/c%201/messages"}


def test_the_address_names_the_chat(site: Site, visit: PageOpener) -> None:
    chats = {"sessions": [{"id": "one", "title": "One"}, {"id": "two", "title": "Two"}]}
    script = Scripted(
        chats=chats, messages={"messages": [{"role": "user", "content": "Hi"}, {**ENDED, "content": "Ho"}]}
    )
    page = start(site, visit, "#chat", script)
    current = page.locator(".chat-title[aria-current=true]")
    page.locator(".chat-title", has_text="One").click()
    page.locator(".chat-title", has_text="Two").click()
    expect(page).to_have_url(re.compile("#chat/two$"))
    page.go_back()
    expect(current).to_contain_text("One")
    page.go_forward()
    expect(current).to_contain_text("Two")
    page.reload()
    expect(current).to_contain_text("Two")
    expect(page.locator(".prose")).to_have_text("Ho")
    page.get_by_role("link", name="Media").click()
    expect(page.locator(".empty")).to_be_visible()
    page.get_by_role("link", name="Chat").click()  # back to the previous chat
    expect(page).to_have_url(re.compile("#chat/two$"))
    page.get_by_role("button", name="New chat").click()
    expect(page).to_have_url(re.compile("#chat$"))
    expect(page.get_by_label("Message", exact=True)).to_be_focused()
    expect(page.get_by_text("Talk to the agent")).to_be_visible()


STICKS_OUT = read_script("sticks_out.js")


def test_nothing_is_cut_or_covered_on_the_smallest_screen(site: Site, visit: PageOpener) -> None:
    visit.tolerated = ("Failed to load resource",)  # there is no phone
    script = Scripted(activity={"activity": [record(3605, decision="confirmed")]})
    page = start(site, visit, "#chat", script, viewport={"width": 320, "height": 640})
    tabs = (("chat", "Talk to the agent"), ("management", "No device is paired"), ("phone", "No reference phone"))
    for tab, shown in tabs:
        page.evaluate("(tab) => { location.hash = tab; document.body.style.letterSpacing = '0.02em'; }", tab)
        expect(page.get_by_text(shown)).to_be_visible()
        title, tools = box_of(page.locator("h1")), box_of(page.locator("#tools"))
        beside = title["x"] + title["width"] <= tools["x"] and tools["x"] + tools["width"] <= 320
        assert beside or title["y"] + title["height"] <= tools["y"]
        assert page.locator("main").evaluate(STICKS_OUT) == []
    page.evaluate("location.hash = 'activity'")
    expect(page.locator(".command .badge")).to_be_visible()
    since, badge = box_of(page.locator(".command .when .sub")), box_of(page.locator(".command .badge"))
    assert since["x"] + since["width"] <= badge["x"]


@pytest.mark.parametrize("hours", [-3, 3])
def test_a_device_whose_clock_is_wrong(site: Site, visit: PageOpener, hours: int) -> None:
    now = time.time()
    session = {"token_prefix": "a", "device_name": "Pixel", "created_at": now - 600, "last_seen": now - 130}
    invite = {"code": "Q7M2ZK", "qr_payload": "x", "pairing_url": "y", "expires_at": int(now) + 600}
    script = Scripted(sessions={"sessions": [{**session, "expires_at": now + 7000}]}, pairing=invite)
    page = start(site, visit, "", script, clock=now + hours * 3600)
    row = page.locator("tbody tr")
    expect(row).to_contain_text("2 minutes ago")
    expect(row).to_contain_text("1 hour")
    page.get_by_role("button", name="Pair new device").click()
    expect(page.locator(".left")).to_have_text(re.compile(r"Works for (10:0\d|9:\d\d)"))
    page.clock.fast_forward(10_000)
    expect(page.locator("[aria-busy=true]")).to_have_count(0)
    expect(page.locator(".code")).to_be_visible()  # the earlier phone is not the awaited one
    fresh = {**session, "token_prefix": "b", "device_name": "Fresh", "created_at": time.time() + 10}
    script.answers["sessions"] = {"sessions": [fresh, session]}
    page.clock.fast_forward(10_000)
    expect(page.get_by_role("dialog").get_by_text("Fresh is paired")).to_be_visible()


def test_the_end_of_a_chat_stays_in_sight(site: Site, visit: PageOpener) -> None:
    rows = [{"role": "user", "content": "Hi"}, {**ENDED, "content": "\n\n".join("line" for _ in range(80))}]
    size = {"width": 1280, "height": 900}
    page = start(site, visit, "#chat/c", Scripted(messages={"messages": rows}), viewport=size)
    last, first = page.locator(".prose p").last, page.locator(".prose p").first
    expect(last).to_be_in_viewport()
    page.set_viewport_size({"width": 390, "height": 500})  # as when the keyboard of a phone appears
    expect(last).to_be_in_viewport()
    page.locator(".log").evaluate("each => { each.scrollTop = 0 }")
    expect(first).to_be_in_viewport()
    page.set_viewport_size({"width": 390, "height": 600})  # a user that has scrolled up keeps the position
    expect(first).to_be_in_viewport()
