"""Test of the signed-in clients in the page: another client's sign-in is ended, and then that of this browser."""

import re

from playwright.sync_api import expect

from tests.browser.conftest import PageOpener, Site

PASSWORD = "correct horse"


def test_another_client_is_signed_out_and_then_this_browser(site: Site, visit: PageOpener) -> None:
    site.world.start_relay()
    site.open(password=PASSWORD)
    pages = []
    for _ in range(2):
        page = visit(site.url)
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Sign in").click()
        pages.append(page)
    table = pages[1].get_by_role("table", name="Signed-in clients")
    expect(table.get_by_text("127.0.0.1", exact=True)).to_have_count(2)
    expect(table.get_by_text("This browser")).to_have_count(1)
    # The other page may refresh, or load a tab's style, before the test looks: both are refused with 401.
    visit.tolerated = ("Failed to load resource", "Refused to apply style")
    table.get_by_role("button", name="End: Chrome").click()
    pages[1].get_by_role("alertdialog").get_by_role("button", name="End").click()
    expect(table.get_by_text("127.0.0.1", exact=True)).to_have_count(1)
    pages[0].get_by_role("link", name="Audit").click()
    expect(pages[0]).to_have_url(re.compile(r"/login\?next=%2F%23audit$"))
    pages[0].get_by_label("Password").fill(PASSWORD)
    pages[0].get_by_role("button", name="Sign in").click()
    expect(pages[0]).to_have_url(re.compile("/#audit$"))  # where it was
    table.get_by_role("button", name="Sign out").click()
    expect(pages[1]).to_have_url(re.compile("/login$"))
    pages[1].goto(site.url)
    expect(pages[1].get_by_label("Password")).to_be_visible()
