"""Test of consent for a remote agent: its waiting page in one window, the dashboard's in another, without scripts."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import PageOpener, Site

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.firefox

BACK = "http://127.0.0.1:4000/back"
NAME = "<b>Claude</b>"
QUERY = {
    "response_type": "code",
    "redirect_uri": BACK,
    "code_challenge": "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
    "code_challenge_method": "S256",
    "state": "x",
}


def test_the_owner_consents_to_a_remote_agent(site: Site, visit: PageOpener, browser: Browser) -> None:
    site.world.start_relay()
    site.open()
    wish = json.dumps({"client_name": NAME, "redirect_uris": [BACK]}).encode()
    client = site.world.http("POST", "/oauth/register", body=wish).json["client_id"]
    there = browser.new_context(java_script_enabled=False)
    waiting = there.new_page()
    relay = f"http://127.0.0.1:{site.world.relay.port}"
    waiting.goto(f"{relay}/oauth/authorize?{urlencode({**QUERY, 'client_id': client})}")
    expect(waiting.get_by_text(NAME)).to_be_visible()
    word = waiting.locator(".word").inner_text()

    page = visit(site.url, java_script_enabled=False)
    page.goto(f"{site.url}allow")
    page.get_by_label("The word that the agent").fill(word.lower())
    page.get_by_role("button", name="Look").click()
    expect(page.locator("strong")).to_have_text(NAME)
    page.get_by_label("Only look").check()
    with waiting.expect_request(re.compile(f"^{BACK}")) as led:  # an address without a listener
        page.get_by_role("button", name="Allow").click()
        expect(page.get_by_role("status")).to_contain_text("listed among the devices")
    assert re.fullmatch(rf"{BACK}\?code=[\w-]{{43}}&state=x&iss=http%3A%2F%2F127\.0\.0\.1%3A\d+", led.value.url)
    there.close()
