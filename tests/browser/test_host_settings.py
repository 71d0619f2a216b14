"""Tests of the host's settings in the page: changes at the real servers, values that are fixed, and markup in texts."""

import re
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, expect

from runtimes.files.env_file import read_env_file
from svc_proto.api.host_settings import HOST_SETTINGS
from tests.browser.conftest import PageOpener, Site
from tests.browser.hostile_server import EVIL
from tests.browser.test_layout import Scripted, start
from tests.servers.program_process import LOCAL, call, ports_of, running

OLD = "sk-of-before-5d8e1f"
PUBLIC = "https://home.example/relay"


def listed(value: str | None = "", *, is_set: bool = False, fixed: bool = False) -> dict[str, Any]:
    rows = [
        {"name": name, "variable": setting.variable, "value": value, "is_set": is_set, "in_environment": fixed}
        for name, setting in HOST_SETTINGS.items()
    ]
    return {"settings": rows}


def block(page: Page) -> Any:
    return page.locator("section.block", has=page.get_by_role("heading", name="This host"))


def test_settings_are_written_by_the_servers(tmp_path: Path, visit: PageOpener) -> None:
    home = tmp_path / "svc"
    home.mkdir(mode=0o700)
    (home / ".env").write_text(f"API_SERVER_KEY={OLD}\n")
    with running(tmp_path, "servers", *LOCAL, "--no-qr") as servers:
        ports = ports_of(servers)
        page = visit(f"http://127.0.0.1:{ports['dashboard']}/#settings")
        part = block(page)
        expect(part.get_by_text("No token: only programs of this host read them.")).to_be_visible()

        part.get_by_label("Public address").fill(PUBLIC)
        part.get_by_label("Names that the app expects").select_option("Hermes-Relay app for Android")
        part.get_by_role("button", name="Save").click()
        expect(part.get_by_role("button", name="Copy svc down && svc up")).to_be_visible()
        written = read_env_file(home / ".env")
        assert (written["SVC_PUBLIC_URL"], written["SVC_BRAND"]) == (PUBLIC, "hermes")

        part.get_by_role("button", name="New token").click()
        expect(part.get_by_text("A token is set.")).to_be_visible()
        token = part.locator("code", has_text=re.compile(r"^[\w-]{32}$")).inner_text()
        assert read_env_file(home / ".env")["SVC_METRICS_TOKEN"] == token
        part.get_by_role("button", name="Remove the token").click()
        expect(part.get_by_text("No token: only programs of this host read them.")).to_be_visible()
        expect(page.get_by_text(token)).to_have_count(0)

        part.get_by_role("button", name="New API key").click()
        page.get_by_role("alertdialog").get_by_role("button", name="Cancel").click()
        assert read_env_file(home / ".env")["API_SERVER_KEY"] == OLD
        part.get_by_role("button", name="New API key").click()
        page.get_by_role("alertdialog").get_by_role("button", name="Make a new key").click()
        expect(part.get_by_text("There is a new API key; the old one is refused.")).to_be_visible()
        new = read_env_file(home / ".env")["API_SERVER_KEY"]
        assert new != OLD
        assert call(ports["api"], "GET", "/api/sessions", token=OLD).status == 401
        assert call(ports["api"], "GET", "/api/sessions", token=new).status == 200

        page.get_by_role("link", name="Audit").click()
        expect(page.get_by_text("SVC_BRAND, SVC_PUBLIC_URL")).to_be_visible()
        page.get_by_role("link", name="Chat").click()  # the dashboard goes on with the new key
        page.get_by_role("textbox", name="Message").fill("/help")
        page.keyboard.press("Enter")
        expect(page.locator(".log")).to_contain_text("/count")
        page.close()  # its next request would fail
        assert servers.stop() == 0


def test_settings_of_the_environment_and_refusals(site: Site, visit: PageOpener) -> None:
    script = Scripted(host=listed("hermes", fixed=True))
    page = start(site, visit, "#settings", script)
    part = block(page)
    for control in (part.get_by_label("Public address"), part.get_by_role("button", name="New token")):
        expect(control).to_be_disabled()
    script.answers["host"] = listed(EVIL, is_set=True)
    page.reload()
    expect(part.get_by_text("A token is set.")).to_be_visible()
    page.route("**/api/agent/host", lambda route: route.fulfill(status=409, json={"detail": EVIL}))
    visit.tolerated = ("Failed to load resource",)
    part.get_by_role("button", name="Remove the token").click()
    expect(part.get_by_role("alert")).to_have_text(EVIL)
    assert page.locator("#panel img, #panel script, #panel b").count() == 0
