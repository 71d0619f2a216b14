"""Test of the servers' own pages for sign-in, consent and waiting: accessible and within the width in each language."""

import json
from urllib.parse import urlencode

from playwright.sync_api import Page, expect

from svc_proto.engine.page_language import COOKIE, LANGUAGES, PageTexts
from tests.browser.conftest import PageOpener, Site
from tests.browser.test_consent import BACK, NAME, QUERY
from tests.browser.test_pictures import THEMES, faults

PASSWORD = "correct horse"
WIDTHS = (320, 1600)  # px


def check(page: Page, language: str, place: int) -> None:
    """Check language, width and accessibility of the open page; `place` selects the width and theme."""
    page.set_viewport_size({"width": WIDTHS[place % 2], "height": 844})
    page.emulate_media(color_scheme=THEMES[place // 2 % 2])
    expect(page.locator("html")).to_have_attribute("lang", language)
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
    assert faults(page) == [], (page.url, language)


def test_pages_of_the_servers_in_each_language(site: Site, visit: PageOpener) -> None:
    visit.tolerated = ("Failed to load resource",)  # 401, and 404 of the relay's pages
    site.world.start_relay()
    site.open(password=PASSWORD)
    page = visit(f"{site.url}login", reduced_motion="reduce")  # no colour transition
    wish = json.dumps({"client_name": NAME, "redirect_uris": [BACK]}).encode()
    client = site.world.http("POST", "/oauth/register", body=wish).json["client_id"]
    relay = f"http://127.0.0.1:{site.world.relay.port}"
    for place, language in enumerate(LANGUAGES):
        texts = PageTexts(language)
        page.context.clear_cookies()
        page.context.add_cookies([{"name": COOKIE.decode(), "value": language, "url": site.url}])
        page.goto(f"{site.url}login")
        check(page, language, place)
        page.get_by_label(texts.html("Password")).fill("a wrong one" if place < 2 else PASSWORD)
        page.get_by_role("button", name=texts.html("Sign in")).click()
        if place < 2:
            expect(page.get_by_role("alert")).to_have_text(texts.html("this is not the password"))
            check(page, language, place + 1)
            page.get_by_label(texts.html("Password")).fill(PASSWORD)
            page.get_by_role("button", name=texts.html("Sign in")).click()
        expect(page.locator("#tabs")).to_be_visible()

        other = page.context.new_page()
        other.goto(f"{relay}/oauth/authorize?{urlencode({**QUERY, 'client_id': client})}")
        word = other.locator(".word").inner_text()
        waiting = other.content()
        other.goto("about:blank")
        other.set_content(waiting)  # which does not reload
        check(other, language, place + 1)
        if place == 0:
            other.goto(f"{relay}/oauth/authorize")  # the page of an error
            check(other, language, place)
        other.close()
        page.goto(f"{site.url}allow")
        if place < 2:
            check(page, language, place + 2)
        page.get_by_label(texts.html("The word that the agent’s page shows")).fill(word)  # noqa: RUF001
        page.get_by_role("button", name=texts.html("Look")).click()
        expect(page.locator("strong")).to_have_text(NAME)
        check(page, language, place + 3)
        page.get_by_role("button", name=texts.html("Refuse")).click()
        expect(page.get_by_role("status")).to_have_text(texts.html("{name} was refused.", name=NAME))
