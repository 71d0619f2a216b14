import json
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import FilePayload, Page, expect

from clients.phone.emulator.png import draw
from tests.browser.conftest import PageOpener, Site, read_script
from tests.browser.test_chat import KEY, say, start
from tests.browser.test_layout import Scripted
from tests.browser.test_layout import start as start_scripted


@pytest.mark.firefox
def test_messages_are_edited_and_answers_repeated(site: Site, visit: PageOpener) -> None:
    page = start(site, visit)
    said, prose = page.locator(".said.user"), page.locator(".prose")
    for words in ("/echo one", "/echo two", "/echo three"):
        say(page, words)
        expect(prose.last).to_have_text(words.removeprefix("/echo "))
    with page.expect_response("**/chat/stream"):
        page.get_by_role("button", name="Regenerate").click()
    expect(page.get_by_role("button", name="Regenerate")).to_have_count(1)
    expect(said).to_have_count(3)
    expect(prose.last).to_have_text("three")
    said.nth(1).get_by_role("button", name="Edit this message").click()
    page.get_by_label("Changed message").fill("/echo *changed*")
    page.keyboard.press("Enter")
    expect(prose).to_have_text(["one", "changed"])
    said.first.get_by_role("button", name="Edit this message").click()
    page.keyboard.press("Escape")
    expect(said.first.get_by_role("button", name="Edit this message")).to_be_focused()
    page.reload()  # the stored chat is the same
    expect(prose).to_have_text(["one", "changed"])
    with page.expect_response("**/chat/stream"):  # which follows the removal of the old answer
        page.get_by_role("button", name="Regenerate").dblclick()
    expect(said).to_have_count(2)
    expect(prose).to_have_text(["one", "changed"])
    page.evaluate("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    copies = page.get_by_role("button", name="Copy this answer")
    expect(copies).to_have_count(2)
    copies.last.click()
    assert page.evaluate("window.copied") == "*changed*"

    say(page, "/count 10000")
    expect(prose.last).to_contain_text("1 2 3")
    page.keyboard.press("Escape")
    expect(page.get_by_text("Stopped.")).to_be_visible()


def test_a_turn_that_fails_and_drafts_that_last(site: Site, visit: PageOpener) -> None:
    visit.tolerated = ("Failed to load resource",)
    api = site.world.api(key=KEY, durable=True)
    site.open(api=api, api_key=KEY)
    page = visit(f"{site.url}#chat")
    say(page, "/echo *one*")
    expect(page.locator(".prose em")).to_have_text("one")
    expect(page.locator(".chat-title")).to_have_count(1)
    api.server.stop()
    say(page, "/echo two")
    expect(page.locator(".note.failed")).to_be_visible()
    again = page.get_by_role("button", name="Try again")
    expect(again).to_be_visible()
    page.reload()
    box = page.get_by_label("Message", exact=True)
    expect(box).to_have_value("/echo two")  # it was not sent
    expect(page.get_by_role("alert")).to_be_visible()
    api.server.restart()
    expect(page.get_by_role("alert")).to_be_hidden()  # by itself
    expect(page.locator(".prose em")).to_have_text("one")
    box.press("Enter")
    expect(page.locator(".prose").last).to_have_text("two")
    box.fill("for later")
    page.get_by_role("button", name="New chat").click()
    expect(box).to_have_value("")
    page.locator(".chat-title").click()
    expect(box).to_have_value("for later")
    page.reload()
    expect(box).to_have_value("for later")
    expect(page.locator(".prose").last).to_have_text("two")

    api.server.stop()
    say(page, "/echo three")
    expect(again).to_be_visible()
    api.server.restart()
    again.click()
    expect(page.locator(".prose").last).to_have_text("three")
    expect(page.locator(".said.user")).to_have_count(3)
    expect(box).to_have_value("")


@pytest.mark.firefox
def test_chats_are_pinned_archived_and_exported(site: Site, visit: PageOpener) -> None:
    page = start(site, visit)
    say(page, "/echo pancakes *with* sugar")
    expect(page.locator(".prose em")).to_have_text("with")
    today = page.get_by_role("region", name="Today").locator(".chat-title")
    expect(today).to_have_count(1)
    page.get_by_role("button", name="Pin this chat").click()
    expect(page.get_by_role("region", name="Pinned").locator(".chat-title")).to_have_count(1)
    expect(page.get_by_role("button", name="Pin this chat")).to_have_attribute("aria-pressed", "true")
    search = page.get_by_label("Search chats")
    search.fill("sugar")
    expect(page.locator(".snippet mark").first).to_have_text("sugar")
    search.fill("")
    for kind, suffix in (("Markdown", "md"), ("JSON", "json")):
        page.get_by_label("Export this chat").click()
        with page.expect_download() as saved:
            page.get_by_role("button", name=kind).click()
        assert saved.value.suggested_filename.endswith(f".{suffix}")
        text = Path(saved.value.path()).read_text()
        assert "pancakes *with* sugar" in text
        assert suffix == "md" or [row["role"] for row in json.loads(text)["messages"]] == ["user", "assistant"]
    page.get_by_role("button", name="Archive this chat").click()
    expect(page.locator(".chat-title")).to_have_count(0)
    page.get_by_role("button", name="Archived", exact=True).click()
    expect(page.locator(".chat-title")).to_have_count(1)
    page.locator(".chat-title").click()
    page.get_by_role("button", name="Archive this chat").click()
    expect(page.get_by_text("No chat is archived")).to_be_visible()
    page.get_by_role("button", name="Archived", exact=True).click()
    expect(page.get_by_role("region", name="Pinned").locator(".chat-title")).to_have_count(1)


DROP = read_script("drop_and_paste.js")


@pytest.mark.firefox
def test_pictures_by_drop_paste_and_camera(site: Site, visit: PageOpener) -> None:
    page = start(site, visit)
    picture = draw((), screen_on=False)
    page.locator(".talk").evaluate(DROP, [list(picture), "dropped.png"])
    camera: FilePayload = {"name": "camera.png", "mimeType": "image/png", "buffer": picture}
    page.get_by_label("Picture of the camera").set_input_files([camera])
    attached = page.get_by_role("list", name="Attached")
    expect(attached.locator("li")).to_have_count(3)
    expect(attached.get_by_role("img", name="Preview").last).to_have_attribute("width", "108")
    assert page.get_by_label("Picture of the camera").get_attribute("capture") == "environment"
    page.get_by_role("button", name="Send").click()
    expect(page.locator(".bubble").get_by_role("img", name="Attached picture")).to_have_count(3)


def sessions(count: int) -> list[dict[str, Any]]:
    return [{"id": f"c{n}", "title": f"Chat {n}", "updated_at": 1_700_000_000 - n * 7200} for n in range(count)]


def test_folders_by_date_and_many_chats(site: Site, visit: PageOpener) -> None:
    script = Scripted(chats={"sessions": sessions(500)})
    noon = 1_700_000_000
    page: Page = start_scripted(site, visit, "#chat", script, clock=noon)
    page.clock.set_fixed_time(noon)
    expect(page.locator(".chat-title")).to_have_count(500)
    names = page.locator(".sessions section").evaluate_all("all => all.map((each) => each.ariaLabel)")
    assert names[-1] == "Older"
    assert set(names) <= {"Today", "Yesterday", "Last 7 days", "Last 30 days", "Older"}
    page.get_by_label("Search chats").fill("chat 499")
    expect(page.locator(".chat-title")).to_have_text(re.compile("Chat 499"))
