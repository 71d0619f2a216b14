"""A walk through the page in Firefox: each tab wide and narrow, a turn of the chat, and no error on the console."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.browser.conftest import Site
from tests.browser.firefox import FIREFOX, FirefoxPage, open_firefox
from tests.browser.test_full_scenario import LOCAL, ports_of
from tests.browser.test_languages import TABS, furnished
from tests.servers.program_process import running

pytestmark = pytest.mark.needs("Firefox", FIREFOX is None)
SETTLED = (
    "document.querySelector('#panel > .tab')?.childElementCount"
    " && !document.querySelector('.waiting, [aria-busy=true]')"
)
WIDTHS = (320, 1280)
ESCAPE, ENTER = "\ue00c", "\ue007"  # keys of WebDriver


def click(page: FirefoxPage, selector: str, words: str = "") -> None:
    """Wait for a visible button or link, by its text or label, and click it."""
    found = (
        f"[...document.querySelectorAll({json.dumps(selector)})].find((each) => each.checkVisibility()"
        " && !each.disabled"
        f" && `${{each.textContent}} ${{each.ariaLabel}}`.includes({json.dumps(words)}))"
    )
    page.wait_until(found)
    page.evaluate(f"{found}.click(), null")


def choose(page: FirefoxPage, selector: str, value: str) -> None:
    """Choose a value of a list, as a user does."""
    place = f"document.querySelector({json.dumps(selector)})"
    page.wait_until(place)
    page.evaluate(f"{place}.value = {json.dumps(value)}, {place}.dispatchEvent(new Event('change')), null")


def say(page: FirefoxPage, words: str, *, seen: str) -> None:
    """Send a message, and wait until the answer contains `seen`."""
    page.evaluate("document.querySelector('.composer textarea').focus()")
    page.type(words + ENTER)
    page.wait_until(f"[...document.querySelectorAll('.prose')].at(-1)?.innerText.includes({json.dumps(seen)})")


def test_each_tab(site: Site, tmp_path: Path) -> None:
    url = site.world.peer(furnished())
    site.open(relay_url=url, api_url=url)
    profile = tmp_path / "profile"
    profile.mkdir()
    with open_firefox(profile) as page:
        page.open(site.url)
        for tab in TABS:
            page.evaluate(f"location.hash = {json.dumps(tab)}, null")
            page.wait_until(f"document.title.toLowerCase().startsWith({json.dumps(tab)})")
            page.wait_until(SETTLED)
            for width in WIDTHS:
                page.resize(width, 800)
                assert page.evaluate("document.documentElement.scrollWidth") <= width, (tab, width)
        known = ("no reference phone", "404", "502")  # there is no reference phone
        assert [line for line in page.console if not any(each in line for each in known)] == []


def test_a_turn_of_the_chat(tmp_path: Path) -> None:
    profile = tmp_path / "profile"
    profile.mkdir()
    with running(tmp_path, "servers", *LOCAL) as servers, open_firefox(profile) as page:
        page.open(f"http://127.0.0.1:{ports_of(servers)['dashboard']}/#chat")
        page.wait_until("document.querySelector('textarea')")
        page.evaluate("document.querySelector('textarea').focus()")
        page.type("/count 3\ue007")
        page.wait_until("document.querySelector('.log')?.innerText.includes('3')")
        page.wait_until("document.querySelector('.log')?.innerText.includes('1')")
        assert page.console == []
        assert servers.stop() == 0


def test_messages_are_edited_repeated_and_stopped(tmp_path: Path) -> None:
    profile = tmp_path / "profile"
    profile.mkdir()
    with running(tmp_path, "servers", *LOCAL) as servers, open_firefox(profile) as page:
        page.open(f"http://127.0.0.1:{ports_of(servers)['dashboard']}/#chat")
        page.wait_until("document.querySelector('.composer textarea')")
        say(page, "/echo *one* and $x^2$ and `code`", seen="one")
        page.wait_until("document.querySelector('.prose em') && document.querySelector('.prose code')")
        page.wait_until("document.querySelector('.prose .katex')")
        page.evaluate("document.querySelector('.prose').className = 'prose old', null")
        click(page, ".again", "Regenerate")
        page.wait_until("document.querySelector('.prose:not(.old)') && document.querySelector('.again')")
        click(page, ".user button", "Edit this message")
        page.wait_until("document.querySelector('.edit textarea')")
        page.evaluate("document.querySelector('.edit textarea').value = '/echo two', null")
        page.evaluate("document.querySelector('.edit textarea').focus()")
        page.type(ENTER)
        page.wait_until("document.querySelector('.prose')?.innerText.trim() === 'two'")
        say(page, "/count 10000", seen="1 2 3")
        page.type(ESCAPE)
        page.wait_until("document.querySelector('.log').innerText.includes('Stopped.')")
        page.evaluate("location.reload(), null")
        page.wait_until("document.querySelectorAll('.chat-title').length === 1")
        assert page.console == []
        assert servers.stop() == 0


def test_devices_and_settings(site: Site, tmp_path: Path) -> None:
    script = furnished()
    url = site.world.peer(script)
    site.open(relay_url=url, api_url=url)
    profile = tmp_path / "profile"
    profile.mkdir()
    with open_firefox(profile) as page:
        page.open(f"{site.url}#management")
        click(page, "tbody button", "Change Pixel 8")
        page.wait_until("document.querySelector('dialog[open] input')")
        click(page, "dialog button", "Cancel")
        click(page, "tbody button", "Revoke Pixel 8")
        click(page, "[role=alertdialog] button.main", "Revoke")
        page.wait_until("!document.querySelector('dialog[open]')")
        site.world.eventually(lambda: "/sessions/1c2d3e4f" in script.asked)
        page.evaluate("location.hash = 'settings', null")
        choose(page, "select:has(option[value=dark])", "dark")
        page.wait_until("document.documentElement.dataset.theme === 'dark'")
        choose(page, "select:has(option[value=zh])", "de")
        page.wait_until("document.documentElement.lang === 'de' && document.title.startsWith('Einstellungen')")
        page.open(f"{site.url}allow")
        page.wait_until("document.querySelector('h1').textContent === 'Einen Agenten zulassen'")
        assert [line for line in page.console if "404" not in line and "502" not in line] == []
