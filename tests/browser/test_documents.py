"""Tests of the pages of the OpenAPI documents of the API server and the dashboard in a browser."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import PageOpener, Site

pytestmark = pytest.mark.firefox


def test_the_page_of_the_api(site: Site, visit: PageOpener) -> None:
    api = site.world.api(key="sk-documents-0123456789")
    document = api.request("GET", "/openapi.json").json
    count = sum(len(item) for item in document["paths"].values())
    page = visit(f"http://127.0.0.1:{api.server.port}/docs")
    page.locator("#post_v1_runs summary").wait_for()
    shown = page.locator("section details")
    assert shown.count() == count + len(document["components"]["schemas"])
    assert page.title() == "svc-relay API"
    page.get_by_label("Search routes and shapes").fill("skills toggle PUT")
    found = page.locator("section details:visible")
    assert [found.nth(place).get_attribute("id") for place in range(found.count())] == ["put_api_skills_toggle"]
    page.get_by_label("Search routes and shapes").fill("")
    page.locator("#get_health summary").click()
    page.locator("#get_health").get_by_role("link", name="Health").click()
    expect(page.locator("#Health")).to_have_attribute("open", "")
    assert [url.rpartition("/")[2] for url in visit.asked] == ["docs", "openapi.json"]


def test_the_page_of_the_dashboard(site: Site, visit: PageOpener) -> None:
    site.open()
    page = visit(f"{site.url}docs#get_api_phone_screen")
    page.locator("#get_api_phone_screen").get_by_text("PhoneScreen").wait_for()
