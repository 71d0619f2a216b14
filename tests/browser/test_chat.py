import re

import pytest
from playwright.sync_api import FilePayload, Page, Route, expect

from clients.phone.emulator import EmulatedPhone
from clients.phone.emulator.png import draw
from tests.browser.conftest import PageOpener, Site, body_of, read_script

KEY = "sk-browser-0d3"


def start(site: Site, visit: PageOpener) -> Page:
    api = site.world.api(key=KEY)
    site.open(api=api, api_key=KEY)
    return visit(f"{site.url}#chat")


def say(page: Page, words: str) -> None:
    expect(page.get_by_role("button", name="Send")).to_be_visible()  # one turn after another
    page.get_by_label("Message", exact=True).fill(words)
    page.keyboard.press("Enter")


@pytest.mark.firefox
def test_a_tool_call_that_moves_the_phone(site: Site, visit: PageOpener) -> None:
    relay = site.world.start_relay()
    backend = EmulatedPhone(name="Pixel")
    site.world.phone(backend=backend)
    page = start(site, visit)
    say(page, "/phone open_app com.example.mail")
    card = page.locator(".tool")
    expect(card).to_have_attribute("data-state", "done")
    expect(card).to_contain_text("phone_open_app")
    expect(page.locator(".prose")).to_contain_text("answered:")
    assert backend.foreground == "com.example.mail"
    card.locator("summary").click()
    expect(card.locator("pre").last).to_contain_text("opened com.example.mail; changed: true")
    say(page, "/screenshot")
    picture = page.locator(".media-card")
    expect(picture).to_contain_text("image/png")
    expect(picture.locator(".ttl")).to_have_text(re.compile(r"\d+:\d\d:\d\d"))
    shot = page.get_by_role("img", name=re.compile(r"^screenshot-\d+\.png$"))
    expect(shot).to_be_visible()
    assert shot.evaluate("(each) => each.decode().then(() => each.naturalWidth)") == 108  # a tenth of the screen
    say(page, "/phone open_app com.chase.sig.android")
    expect(card.last).to_have_attribute("data-state", "failed")

    page.reload()  # the stored chat shows the same
    page.get_by_role("button", name="/phone open_app com.example.mail", exact=False).first.click()
    expect(page.locator(".said.user")).to_have_count(3)
    expect(card).to_have_count(3)
    page.get_by_role("link", name="Activity").click()
    for path, count in (("/open_app", 2), ("/screenshot", 1)):  # beside the looks before and after
        expect(page.locator("tr.command").filter(has_text=path)).to_have_count(count)

    relay.stop()  # its media tokens end with it, but the chat keeps the picture
    relay.restart()
    page.get_by_role("link", name="Chat", exact=True).click()
    page.reload()
    page.get_by_role("button", name="/phone open_app com.example.mail", exact=False).first.click()
    shot = page.get_by_role("img", name="A picture of this chat").last
    assert shot.evaluate("(each) => each.decode().then(() => each.naturalWidth)") == 108
    expect(picture.last).to_contain_text("Stored with this chat")


@pytest.mark.firefox
def test_an_answer_is_streamed_and_can_be_stopped(site: Site, visit: PageOpener) -> None:
    page = start(site, visit)
    say(page, "/count 10000")
    expect(page.locator(".prose")).to_contain_text("1 2 3 4 5")
    stop = page.get_by_role("button", name="Stop")
    stop.click()
    expect(page.get_by_text("Stopped.")).to_be_visible()
    expect(stop).to_be_hidden()
    assert "10000" not in page.locator(".prose").inner_text()
    say(page, "/think")
    expect(page.locator(".thought")).to_contain_text("First I read the question.")
    expect(page.get_by_text("Thought of.")).to_be_visible()


def test_a_tool_call_with_approval(site: Site, visit: PageOpener) -> None:
    page = start(site, visit)
    say(page, "/approve")
    expect(page.locator(".ask")).to_contain_text("A demonstration: it does nothing.demo_ask {}")
    expect(page.locator(".ask")).to_contain_text(re.compile(r"No answer within (1:00|0:[0-5]\d) means no\."))
    with page.expect_request("**/approval") as sent:
        page.get_by_role("button", name="Allow once").click()  # at once: the answer names its question
    expect(page.locator(".tool")).to_have_attribute("data-state", "done")
    assert list(body_of(sent.value)) == ["choice", "call_id"]
    expect(page.locator(".ask")).to_be_hidden()
    say(page, "/approve")
    page.get_by_role("button", name="Deny").click()
    expect(page.locator(".tool").last).to_have_attribute("data-state", "failed")
    say(page, "/approve")
    expect(page.get_by_role("group", name="Question of the agent")).to_contain_text("it covers all calls of: demo_ask")
    page.get_by_role("button", name="Allow in this chat").click()
    expect(page.locator(".tool").last).to_have_attribute("data-state", "done")
    say(page, "/approve")
    expect(page.locator(".tool")).to_have_count(4)
    expect(page.locator(".tool").last).to_have_attribute("data-state", "done")  # without a question


def test_chats_are_kept_and_deleted(site: Site, visit: PageOpener) -> None:
    page = start(site, visit)
    say(page, "/echo first")
    expect(page.locator(".prose")).to_have_text("first")
    page.get_by_role("button", name="New chat").click()
    expect(page.get_by_text("Talk to the agent")).to_be_visible()
    say(page, "/echo second")
    expect(page.locator(".prose")).to_have_text("second")
    chats = page.locator(".chat-title")
    expect(chats).to_have_count(2)
    chats.last.click()
    expect(page.locator(".prose")).to_have_text("first")
    page.get_by_role("button", name="Delete").last.click()
    question = page.get_by_role("alertdialog", name="Delete this chat?")
    question.get_by_role("button", name="Cancel").click()
    expect(chats).to_have_count(2)
    page.get_by_role("button", name="Delete").last.click()
    question.get_by_role("button", name="Delete").click()
    expect(chats).to_have_count(1)
    expect(page.get_by_text("Talk to the agent")).to_be_visible()


@pytest.mark.firefox
def test_pictures_and_files_are_sent_along(site: Site, visit: PageOpener) -> None:
    page = start(site, visit)
    expect(page.get_by_text("Model: built-in agent")).to_be_visible()
    picture = draw((), screen_on=False)
    files: list[FilePayload] = [
        {"name": "shot.png", "mimeType": "image/png", "buffer": picture},
        {"name": "notes.txt", "mimeType": "text/plain", "buffer": b"remember the milk"},
        {"name": "odd.bin", "mimeType": "application/octet-stream", "buffer": b"\xff\xfe\x00"},
        {"name": "huge.txt", "mimeType": "text/plain", "buffer": b"x" * 200_001},
    ]
    attached = page.get_by_role("list", name="Attached")
    problem = page.get_by_role("alert")
    chosen = page.get_by_label("Files to attach")
    chosen.set_input_files(files[2:3])
    expect(problem).to_contain_text("odd.bin is neither a picture")
    chosen.set_input_files(files[3:])
    expect(problem).to_contain_text("huge.txt is too large")
    chosen.set_input_files([*files[:2], files[1]])
    expect(attached.locator("li")).to_have_count(3)
    attached.get_by_role("button", name="Leave out notes.txt").last.click()
    expect(attached.locator("li")).to_have_count(2)
    with page.expect_request("**/chat/stream") as sent:
        say(page, "What is this?")
    assert [part["type"] for part in body_of(sent.value)["message"]] == ["text", "image_url", "text"]
    bubble = page.locator(".bubble")
    for again in (False, True):
        if again:
            page.reload()  # the stored chat shows the same
        expect(bubble.get_by_role("img", name="Attached picture")).to_have_attribute("width", "108")
        expect(bubble).to_contain_text("remember the milk")
        expect(page.locator(".prose")).not_to_have_text("")
    expect(attached).to_be_hidden()


def test_chats_are_renamed_and_found(site: Site, visit: PageOpener) -> None:
    page = start(site, visit)
    for words in ("/echo pancakes", "/echo waffles"):
        page.get_by_role("button", name="New chat").click()
        say(page, words)
        expect(page.locator(".prose")).to_have_text(words.removeprefix("/echo "))
        expect(page.get_by_role("button", name="Rename this chat")).to_be_visible()
    chats = page.locator(".chat-title")
    page.get_by_role("button", name="Rename this chat").click()
    page.get_by_label("Title").fill("Breakfast")
    page.keyboard.press("Enter")
    expect(page.locator(".talk-head h3")).to_have_text("Breakfast")
    expect(chats.filter(has_text="Breakfast")).to_have_count(1)
    page.get_by_role("button", name="Rename this chat").click()
    page.keyboard.press("Escape")
    expect(page.locator(".talk-head h3")).to_have_text("Breakfast")
    search = page.get_by_label("Search chats")
    search.fill("break")  # in a title
    expect(chats).to_have_count(1)
    search.fill("waffles")  # in a message
    expect(chats).to_have_text(re.compile("Breakfast"))
    search.fill("porridge")
    expect(page.get_by_text("Nothing found")).to_be_visible()
    search.fill("")
    expect(chats).to_have_count(2)


@pytest.mark.firefox
def test_a_reload_in_the_middle(site: Site, visit: PageOpener) -> None:
    page = start(site, visit)
    say(page, "/approve")
    expect(page.locator(".tool")).to_have_attribute("data-state", "waiting")
    page.reload()
    expect(page.locator(".ask")).to_contain_text("A demonstration: it does nothing.demo_ask {}")  # the same words
    page.get_by_role("button", name="Allow once").click()
    expect(page.locator(".prose")).to_contain_text("answered:")
    expect(page.locator(".tool")).to_have_attribute("data-state", "done")
    expect(page.get_by_role("button", name="Stop")).to_be_hidden()

    say(page, "/wait 10")
    expect(page.locator(".tool").last).to_have_attribute("data-state", "running")
    page.get_by_role("button", name="New chat").click()  # another chat may be opened in the page as well
    expect(page.get_by_text("Talk to the agent")).to_be_visible()
    expect(page.get_by_role("button", name="Stop")).to_be_hidden()
    page.locator(".chat-title").click()
    expect(page.get_by_text("The answer is not there yet")).to_be_visible()
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_text("Stopped.")).to_be_visible()
    expect(page.get_by_role("button", name="Stop")).to_be_hidden()


def test_a_stop_before_the_beginning(site: Site, visit: PageOpener) -> None:
    page = start(site, visit)
    held: list[Route] = []
    page.route("**/chat/stream", lambda route: held.append(route))
    with page.expect_request("**/chat/stream"):
        say(page, "/count 10000")
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_role("button", name="Stop")).to_be_disabled()
    held[0].continue_()
    expect(page.get_by_text("Stopped.")).to_be_visible()


@pytest.mark.firefox
def test_a_file_is_requested_once(site: Site, visit: PageOpener, tmp_path_factory: pytest.TempPathFactory) -> None:
    visit.tolerated = ("Failed to load resource",)  # neither the relay nor the chat has the picture
    site.world.start_relay()
    page = start(site, visit)
    say(page, "/echo MEDIA:svc-relay://none-of-ours\n" + "word " * 60)
    expect(page.locator(".prose p")).to_contain_text("word")
    page.locator(".media-card").evaluate("each => { each.dataset.marked = 'yes' }")
    expect(page.locator(".prose p")).to_have_text("word " * 60)
    expect(page.locator(".media-card")).to_have_attribute("data-marked", "yes")
    expect(page.locator(".media-card")).to_contain_text("Expired")
    assert sum(url.endswith("/media") for url in visit.asked) == 1
    assert sum(url.endswith("/pictures/none-of-ours") for url in visit.asked) == 1
    shot = tmp_path_factory.mktemp("pictures") / "a shot.png"  # outside the service home, whose files phones cannot get
    shot.write_bytes(draw((), screen_on=False))
    say(page, f"/echo MEDIA:{shot}")
    page.get_by_role("button", name="Show").click()
    picture = page.get_by_role("img", name=str(shot))
    expect(picture).to_be_visible()
    assert picture.evaluate("(each) => each.decode().then(() => each.naturalWidth)") == 108


@pytest.mark.firefox
def test_an_answer_does_not_take_the_focus(site: Site, visit: PageOpener) -> None:
    page = start(site, visit)
    say(page, "/echo first")
    expect(page.get_by_label("Message", exact=True)).to_be_focused()
    say(page, "/count 20")
    switch = page.get_by_role("switch", name="Auto-refresh")
    switch.focus()
    expect(page.get_by_role("button", name="Send")).to_be_visible()
    expect(switch).to_be_focused()


def test_a_deleted_chat(site: Site, visit: PageOpener) -> None:
    visit.tolerated = ("Failed to load resource",)
    api = site.world.api(key=KEY)
    site.open(api=api, api_key=KEY)
    page = visit(f"{site.url}#chat/nothing-of-this-name")
    expect(page.get_by_role("alert")).to_be_visible()
    say(page, "/echo anew")
    expect(page.locator(".prose")).to_have_text("anew")
    expect(page).not_to_have_url(re.compile("nothing-of-this-name"))


def test_without_an_api_server(site: Site, visit: PageOpener) -> None:
    visit.tolerated = ("Failed to load resource",)
    site.open()
    page = visit(f"{site.url}#chat")
    expect(page.get_by_role("alert")).to_contain_text("without an API server")


def test_an_api_server_that_starts_later(site: Site, visit: PageOpener) -> None:
    visit.tolerated = ("Failed to load resource",)
    api = site.world.api(key=KEY)
    site.open(api=api, api_key=KEY)
    api.server.stop()
    page = visit(f"{site.url}#chat")
    expect(page.get_by_role("alert")).to_contain_text("API server unreachable at 127.0.0.1:")
    page.clock.pause_at(page.evaluate("Date.now() / 1000 + 1"))  # else the page might find the server before the press
    api.server.restart()
    page.get_by_role("button", name="Retry").click()
    expect(page.get_by_role("alert")).to_be_hidden()
    say(page, "/echo here")
    expect(page.locator(".prose")).to_have_text("here")


def test_a_note_is_shown_and_undone(site: Site, visit: PageOpener) -> None:
    page = start(site, visit)
    say(page, "/memory add Likes <b>tea</b>")
    expect(page.locator(".note")).to_contain_text("Noted: Likes <b>tea</b>")
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(".note")).to_contain_text("(undone)")
    expect(page.get_by_role("button", name="Undo")).to_have_count(0)
    say(page, "/memory")
    expect(page.locator(".prose").last).to_contain_text("memory (0% - 0/2,200 chars)")


SECTION = read_script("section.txt")


WHEEL_BEFORE_SCROLL_EVENT = read_script("wheel_before_scroll_event.js")


@pytest.mark.firefox
def test_a_wheel_is_not_lost_to_the_scroll_before_it(site: Site, visit: PageOpener) -> None:
    page = start(site, visit)
    say(page, "/echo " + SECTION * 5 + "The end.")
    expect(page.locator(".prose")).to_contain_text("The end.")
    expect(page.get_by_role("button", name="Regenerate")).to_be_in_viewport()
    assert page.evaluate(WHEEL_BEFORE_SCROLL_EVENT) >= 200
    expect(page.get_by_role("button", name="Jump to the end")).to_be_visible()


END_IN_SIGHT = read_script("end_in_sight.js")


@pytest.mark.firefox
def test_the_reader_scrolls_while_text_streams(site: Site, visit: PageOpener) -> None:
    page = start(site, visit)
    say(page, "/echo " + SECTION * 15 + "The end.")
    prose, log = page.locator(".prose"), page.locator(".log")
    expect(prose.locator("table").nth(5)).to_be_attached()
    log.evaluate(END_IN_SIGHT)
    log.hover()
    page.mouse.wheel(0, -300)
    jump = page.get_by_role("button", name="Jump to the end")
    expect(jump).to_be_visible()
    page.mouse.wheel(0, -3000)
    expect(page.locator(".bubble")).to_be_in_viewport()
    expect(prose).to_contain_text("The end.")
    expect(page.locator(".bubble")).to_be_in_viewport()
    jump.click()
    expect(prose.get_by_text("The end.")).to_be_in_viewport()
    expect(jump).to_be_hidden()
