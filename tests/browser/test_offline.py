"""Tests of the service worker: the page while its dashboard is stopped, and an old version in the cache."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import PageOpener, Site
from tests.browser.test_layout import Scripted, start

# The policy of the page forbids the evaluation of text in each frame, as by `wait_for_function`.
CONTROLLED = """
() => navigator.serviceWorker.controller !== null
  || new Promise((done) => { navigator.serviceWorker.oncontrollerchange = () => done(true); })
"""
AHEAD = 4000  # ms until the page has begun to load the modules of the other tabs
KEPT = "caches.open('svc-relay-page').then((cache) => cache.keys()).then((all) => all.map((each) => each.url))"


@pytest.mark.firefox
def test_the_page_opens_without_the_dashboard(site: Site, visit: PageOpener) -> None:
    visit.tolerated = ("Failed to load resource", "NetworkError")  # Firefox reports each request without an answer
    page = start(site, visit, "#media", Scripted(), service_workers="allow")
    expect(page.get_by_text("No file is waiting")).to_be_visible()
    page.evaluate("import('/page/offline.js').then(({ keepPage }) => keepPage())")
    page.evaluate("navigator.serviceWorker.ready")
    page.evaluate(CONTROLLED)
    page.reload()  # now all requests pass the worker
    expect(page.get_by_text("No file is waiting")).to_be_visible()
    page.goto(f"{site.url}#activity")
    expect(page.get_by_text("No command yet")).to_be_visible()
    kept = {each.partition("#")[0] for each in page.evaluate(KEPT)}
    assert site.url in kept
    assert f"{site.url}page/media.js" in kept
    assert {each.removeprefix(site.url).partition("/")[0] for each in kept} == {"", "page"}  # no answer of a server
    site.board.server.stop()
    page.goto(f"{site.url}#media")
    page.reload()
    expect(page.get_by_role("alert")).to_contain_text("The dashboard does not answer. Is it still running?")
    expect(page.get_by_role("link", name="Management")).to_be_visible()
    with page.expect_event("requestfailed", lambda request: request.url.endswith("/page/chat.js")):
        page.clock.fast_forward(AHEAD)  # the modules of the other tabs are loaded, of which some were never kept


@pytest.mark.firefox
def test_a_new_version_is_used_at_once(site: Site, visit: PageOpener) -> None:
    page = start(site, visit, "#settings", Scripted(), service_workers="allow")
    page.evaluate("import('/page/offline.js').then(({ keepPage }) => keepPage())")
    page.evaluate(CONTROLLED)
    stale = "caches.open('svc-relay-page').then((cache) => cache.put('/', new Response('an old version')))"
    page.evaluate(stale)
    page.reload()
    expect(page.get_by_role("heading", name="Relay")).to_be_visible()
    assert page.evaluate("caches.match('/').then((each) => each.text())") != "an old version"
