"""A walk through the page in Firefox: each tab wide and narrow, a turn of the chat, and no error on the console."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.browser.conftest import Site
from tests.browser.firefox import FIREFOX, open_firefox
from tests.browser.test_full_scenario import LOCAL, ports_of
from tests.browser.test_languages import TABS, furnished
from tests.servers.program_process import running

pytestmark = pytest.mark.needs("Firefox", FIREFOX is None)
SETTLED = (
    "document.querySelector('#panel > .tab')?.childElementCount"
    " && !document.querySelector('.waiting, [aria-busy=true]')"
)
WIDTHS = (320, 1280)


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
