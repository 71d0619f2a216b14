"""Tests of the page in each language: selected by the browser or the settings, complete, within its width."""

import json
import time
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from servers.dashboard_program import page_files
from tests.browser.conftest import PageOpener, Site, read_script
from tests.browser.test_layout import Scripted, record, start
from tests.browser.test_pictures import faults

FILES = page_files()
LOCALES = ("de-AT", "es-MX", "fr-FR", "zh-CN")
WIDTHS = (320, 1600)  # px; German words are long, and Chinese has no blanks
TABS = ("management", "activity", "audit", "media", "load", "phone", "chat", "settings")
NAMES = {"chat", "terminal", "Relay"}  # grants and the product, the same in all languages
TEXTS = read_script("texts.js")


def furnished() -> Scripted:
    now = time.time()
    grants = dict.fromkeys(("chat", "bridge", "terminal"), now + 86_400 * 28)
    session = {"token_prefix": "1c2d3e4f", "device_name": "Pixel 8", "grants": grants, "expires_at": now + 9e5}
    ends = ("executed", "confirmed", "blocked", "timeout", "error", "pending")
    mail = {"path": "/open_app", "params": {"package": "com.example.mail"}, "device_name": "Pixel 8"}
    file = {"token": "t1", "file_name": "a.png", "content_type": "image/png", "size": 9, "created_at": now}
    phone = {
        "device": {"name": "Pixel 8", "device_id": "p8", "battery_percent": 64},
        "bridge": {"master_enabled": True},
    }
    return Scripted(
        info={"health": "ok", "version": "1.0.0", "uptime_seconds": 90_060, "session_count": 1},
        sessions={"sessions": [session]},
        phones={"devices": [phone]},
        activity={"activity": [record(50 * n, decision=end, **mail) for n, end in enumerate(ends)]},
        media={"media": [{**file, "expires_at": now + 3600}]},
        audit={"events": [{"at": now, "event": "paired", "principal": "Desk", "address": "192.0.2.1", "about": {}}]},
        approvals={"approvals": [{"pattern": "phone_call", "principal": "Desk", "at": now, "session_id": None}]},
        config={"model": "llama3.2"},
        chats={"sessions": [{"id": "c1", "title": None, "preview": "Mail", "updated_at": now - 9e5}]},
    )


def english_in(page: Page, language: str) -> set[str]:
    """Return the texts of the page that are still English although `language` has a translation of them."""
    messages: dict[str, str] = json.loads(FILES[f"messages/{language}.json"])
    english = messages.keys() - messages.values() - NAMES
    return english & {*page.evaluate(TEXTS)}


@pytest.mark.parametrize("locale", LOCALES)
def test_all_tabs_in_the_language_of_the_browser(locale: str, site: Site, visit: PageOpener) -> None:
    visit.tolerated = ("Failed to load resource",)  # there is no reference phone
    script = furnished()
    page = start(site, visit, "", script, locale=locale, reduced_motion="reduce")
    language = locale[:2]
    expect(page.locator("html")).to_have_attribute("lang", language)
    messages: dict[str, str] = json.loads(FILES[f"messages/{language}.json"])
    assert [each for each in visit.asked if "/messages/" in each] == [f"{site.url}page/messages/{language}.json"]
    for place, tab in enumerate(TABS):
        page.goto(f"{site.url}#{tab}")
        expect(page).to_have_title(f"{messages[tab.capitalize()]} · Relay")
        expect(page.locator("#panel > .tab")).not_to_be_empty()
        expect(page.locator(".waiting, .tab[aria-busy=true]")).to_have_count(0)
        assert english_in(page, language) == set(), tab
        width = WIDTHS[place % 2]
        page.set_viewport_size({"width": width, "height": 844})
        assert page.evaluate("document.documentElement.scrollWidth") <= width, tab
        page.emulate_media(color_scheme=("light", "dark")[place // 2 % 2])
        assert faults(page) == [], (tab, width)


@pytest.mark.firefox
def test_the_language_is_chosen_and_remembered(site: Site, visit: PageOpener) -> None:
    page = start(site, visit, "#settings", Scripted(), locale="it-IT")
    expect(page.locator("html")).to_have_attribute("lang", "en")  # Italian has no messages
    assert not any("/messages/" in each for each in visit.asked)
    page.get_by_role("combobox", name="Language").select_option("Deutsch")
    expect(page.get_by_role("combobox", name="Sprache")).to_have_value("de")
    page.goto(f"{site.url}#media")
    page.reload()
    expect(page.get_by_role("heading", name="Dateien für Telefone")).to_be_visible()
    page.goto(f"{site.url}allow")  # a page of the server
    expect(page.get_by_role("heading", name="Einen Agenten zulassen")).to_be_visible()
    expect(page.locator("html")).to_have_attribute("lang", "de")
    page.goto(f"{site.url}#media")
    page.route("**/messages/*", lambda route: route.abort())
    visit.tolerated = ("Failed to load resource",)
    page.reload()
    expect(page.locator("html")).to_have_attribute("lang", "en")  # without its messages
    expect(page.get_by_role("heading", name="Files handed to phones")).to_be_visible()
    page.unroute("**/messages/*")
    page.goto(f"{site.url}#settings")
    page.reload()
    page.get_by_role("combobox", name="Sprache").select_option("")
    expect(page.get_by_role("combobox", name="Language")).to_have_value("")
    assert [each["name"] for each in page.context.cookies()] == []


def test_a_setting_of_an_earlier_version_moves_to_the_cookie(site: Site, visit: PageOpener) -> None:
    page = start(site, visit, "#media", Scripted(), locale="it-IT")
    page.evaluate("localStorage.setItem('svc-relay-language', 'de')")
    page.reload()
    expect(page.get_by_role("heading", name="Dateien für Telefone")).to_be_visible()
    assert page.evaluate("localStorage.getItem('svc-relay-language')") is None
    assert [(each["name"], each["value"]) for each in page.context.cookies()] == [("svc-relay-language", "de")]


def test_durations_follow_the_language(site: Site, visit: PageOpener) -> None:
    page = start(site, visit, "#media", Scripted(), locale="fr-FR")
    spoken: list[Any] = page.evaluate(
        "import('/page/app.js').then(({ ago, expiry, now, past, span }) =>"
        " [ago(now() - 7200), expiry(now() + 86460), past(3 * 86400, true), span(1)])"
    )
    assert [each.replace("\u00a0", " ") for each in spoken] == ["il y a 2 heures", "1 jour", "il y a 3j", "1 seconde"]
