"""The first view on a slow network: few requests, all of them at once, and usable within seconds."""

from __future__ import annotations

import re
import time

import pytest

from servers.dashboard_program import page_files
from tests.browser.conftest import PageOpener, Site
from tests.browser.test_languages import furnished
from tests.browser.test_layout import start

LATENCY = 400  # ms
RATE = 50_000  # bytes a second
WITHIN = 6.0  # s: twice the target, for a busy machine
IMPORT = re.compile(r"""^import .*"\./([\w/-]+\.js)";$""", re.MULTILINE)
FILES = {name: body.decode() for name, body in page_files().items() if name.endswith((".js", ".html"))}


def imports_of(*names: str) -> set[str]:
    """Return the given modules of the page with all modules that they import statically."""
    found, waiting = set[str](), [*names]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += IMPORT.findall(FILES[name])
    return found


def test_the_page_names_all_modules_of_the_first_view() -> None:
    named = re.findall(r'(?:modulepreload" fetchpriority="low" href|module" src)="page/([\w.]+)"', FILES["index.html"])
    assert sorted(named) == sorted(imports_of("app.js", "management.js"))


@pytest.mark.parametrize("locale", ["en-US", "de-DE"])
def test_the_first_view_is_usable_on_a_slow_network(locale: str, site: Site, visit: PageOpener) -> None:
    page = start(site, visit, "#settings", furnished(), locale=locale)
    session = page.context.new_cdp_session(page)
    session.send("Network.enable")
    session.send("Network.setCacheDisabled", {"cacheDisabled": True})
    slow = {"offline": False, "latency": LATENCY, "downloadThroughput": RATE, "uploadThroughput": RATE}
    session.send("Network.emulateNetworkConditions", slow)
    received: list[float] = []
    session.on("Network.loadingFinished", lambda event: received.append(event["encodedDataLength"]))
    page.goto("about:blank")
    begin = time.monotonic()
    page.goto(site.url, wait_until="commit")
    page.locator("tbody tr .name").first.wait_for()  # `expect` polls with pauses of up to a second
    passed = time.monotonic() - begin
    assert len(received) < 27
    assert sum(received) < 60_000
    assert passed < WITHIN, f"{passed:.2f} s"
