"""Test of a scenario with the real programs: pair a phone, drive it, read its activity, revoke it."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import PageOpener
from tests.servers.program_process import LOCAL, call, ports_of, running

pytestmark = pytest.mark.firefox
NAME = "Pixel 9"


def test_pair_drive_look_and_revoke(tmp_path: Path, visit: PageOpener) -> None:
    with running(tmp_path, "servers", *LOCAL, "--no-qr") as servers:
        ports = ports_of(servers)
        page = visit(f"http://127.0.0.1:{ports['dashboard']}/")
        expect(page.get_by_role("heading", name="No device is paired")).to_be_visible()

        page.get_by_role("button", name="Pair new device").click()
        dialog = page.get_by_role("dialog")
        expect(dialog.get_by_role("img", name="QR code of the invite")).to_be_visible()
        expect(dialog.locator(".left")).to_have_text(re.compile(r"Works for (10:00|9:5\d)"))
        expect(dialog.locator(".endpoints")).to_contain_text("Local network")
        code = dialog.locator(".code").inner_text()
        dialog.get_by_role("button", name="New code").click()
        expect(dialog.locator(".code")).not_to_have_text(code)
        code = dialog.locator(".code").inner_text()
        assert re.fullmatch("[A-Z0-9]{6}", code)
        assert dialog.locator("input[readonly]").input_value().startswith("svc-relay://pair?payload=")

        remote = ("--remote", f"ws://127.0.0.1:{ports['relay']}", "--code", code, "--name", NAME, "--print-token")
        with running(tmp_path, "clients.phone", *remote, "--master", "on") as phone:
            token = phone.line(r"([0-9a-f]{64})")[1]
            page.clock.fast_forward(10_000)  # Management refreshes every 10 s
            expect(dialog.get_by_text(f"{NAME} is paired")).to_be_visible()
            dialog.get_by_role("button", name="Done").click()
            device = page.get_by_role("row", name=NAME)
            expect(device).to_contain_text(token[:8])
            expect(device).to_contain_text("Android")
            expect(device).to_contain_text("Online")
            expect(device).to_contain_text("bridge")
            expect(device).to_contain_text("7 days")  # the time to live that a phone requests over plain ws

            assert call(ports["relay"], "GET", "/ping", token=token).status == 200
            mail = {"package": "com.example.mail"}
            assert call(ports["relay"], "POST", "/open_app", mail, token=token).status == 200
            bank = {"package": "com.chase.sig.android"}
            assert call(ports["relay"], "POST", "/open_app", bank, token=token).status == 403
            assert call(ports["relay"], "POST", "/tap_text", {"text": "no such text"}, token=token).status >= 400

            page.get_by_role("link", name="Activity").click()
            rows = page.locator("tr.command")
            expect(rows).to_have_count(4)
            decisions = [row.locator(".decision").inner_text() for row in rows.all()]
            assert decisions == ["Error", "Blocked", "Executed", "Executed"]  # newest first
            picture = page.get_by_role("img", name="Commands since")
            expect(picture).to_have_attribute("aria-label", re.compile("2 executed, 1 blocked, 1 error"))
            page.get_by_role("button", name="Blocked").click()
            expect(rows).to_have_count(1)
            rows.click()
            expect(page.locator("tr.details:visible")).to_contain_text('"package": "com.chase.sig.android"')

            page.get_by_role("link", name="Management").click()
            page.get_by_role("button", name=f"Revoke {NAME}").click()
            question = page.get_by_role("alertdialog", name=NAME)
            expect(question).to_contain_text(token[:8])
            question.get_by_role("button", name="Revoke").click()
            expect(page.get_by_role("heading", name="No device is paired")).to_be_visible()
            assert phone.wait() == 1  # its socket was closed, and its token is refused
        assert call(ports["relay"], "GET", "/ping", token=token).status == 401
        assert servers.stop() == 0
