"""The chat: words as they come, tools that move the phone, a question, a stop, and what is there afterwards."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from clients.phone.handset import SimulatedHandset
from tests.browser.conftest import Site, Visitor

KEY = "sk-browser-0d3"


def start(site: Site, visit: Visitor) -> Page:
    api = site.world.api(key=KEY)
    site.open(api=api, api_key=KEY)
    return visit(f"{site.url}#chat")


def say(page: Page, words: str) -> None:
    expect(page.get_by_role("button", name="Send")).to_be_visible()  # one turn after another
    page.get_by_label("Message", exact=True).fill(words)
    page.keyboard.press("Enter")


def test_a_tool_call_that_moves_the_phone(site: Site, visit: Visitor) -> None:
    site.world.start_relay()
    handset = SimulatedHandset(name="Pixel")
    site.world.phone(handset=handset)
    page = start(site, visit)
    say(page, "/phone open_app com.example.mail")
    card = page.locator(".tool")
    expect(card).to_have_attribute("data-state", "done")
    expect(card).to_contain_text("phone_open_app")
    expect(page.locator(".prose")).to_contain_text("answered:")
    assert handset.foreground == "com.example.mail"
    card.locator("summary").click()
    expect(card.locator("pre").last).to_contain_text('"ok":true')
    say(page, "/screenshot")
    picture = page.locator(".media-card")
    expect(picture).to_contain_text("image/png")
    expect(picture.locator(".ttl")).to_have_text(re.compile(r"\d+:\d\d:\d\d"))
    say(page, "/phone open_app com.chase.sig.android")
    expect(card.last).to_have_attribute("data-state", "failed")

    page.reload()  # what is stored shows the same
    page.get_by_role("button", name="/phone open_app com.example.mail", exact=False).first.click()
    expect(page.locator(".said.user")).to_have_count(3)
    expect(card).to_have_count(3)
    page.get_by_role("link", name="Activity").click()
    expect(page.locator("tr.command")).to_have_count(3)


def test_words_come_one_by_one_and_can_be_stopped(site: Site, visit: Visitor) -> None:
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


def test_a_call_that_asks(site: Site, visit: Visitor) -> None:
    page = start(site, visit)
    say(page, "/approve")
    page.get_by_role("button", name="Allow once").click()
    expect(page.locator(".tool")).to_have_attribute("data-state", "done")
    say(page, "/approve")
    page.get_by_role("button", name="Deny").click()
    expect(page.locator(".tool").last).to_have_attribute("data-state", "failed")


def test_chats_are_kept_and_deleted(site: Site, visit: Visitor) -> None:
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
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Delete").last.click()
    expect(chats).to_have_count(1)
    expect(page.get_by_text("Talk to the agent")).to_be_visible()


def test_without_an_api_server(site: Site, visit: Visitor) -> None:
    visit.tolerated = ("Failed to load resource",)
    site.open()
    page = visit(f"{site.url}#chat")
    expect(page.get_by_role("alert")).to_contain_text("without an API server")
