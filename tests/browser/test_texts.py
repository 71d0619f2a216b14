import re
import time
from typing import Any

from playwright.sync_api import expect

from svc_proto.cli.health_checks import run_health_checks
from svc_proto.cli.health_facts import HostFacts, ModelFacts
from svc_proto.cli.operator_requests import KEY_IS_KNOWN
from svc_proto.schema.device_control_routes import DEVICE_CONTROL
from tests.browser.conftest import PageOpener, Site
from tests.browser.test_layout import Scripted, record, start

DAY = 86_400
CHANNELS = ("chat", "bridge", "terminal", "tui", "voice:config", "voice:stt", "voice:tts", "voice:realtime")
AGENT = "Agent on this host"
ACTIVITIES: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("/open_app", {"package": "com.example.mail"}, "Opened Mail on Pixel 8, asked by the agent"),
    ("/open_app", {"package": "com.chase.sig.android"}, "Opened Chase on Pixel 8, asked by the agent"),
    ("/open_app", {}, "Opened an app on Pixel 8, asked by the agent"),
    ("/tap_text", {"text": "Compose"}, "Tapped “Compose” on Pixel 8, asked by the agent"),
    ("/type", {"text": "[12 characters]"}, "Typed text [12 characters] on Pixel 8, asked by the agent"),
    ("/press_key", {"key": "back"}, "Pressed “back” on Pixel 8, asked by the agent"),
    ("/send_sms", {"to": "+15550100"}, "Sent a message to +15550100 on Pixel 8, asked by the agent"),
    ("/call", {"number": 5550100}, "Called 5550100 on Pixel 8, asked by the agent"),
    ("constructor", {}, "Did constructor on Pixel 8, asked by the agent"),
)
ENDS = {
    "confirmed": "Opened Mail on Pixel 8, asked by Desk",
    "blocked": "Was not allowed to open Mail on Pixel 8, asked by Desk",
    "timeout": "Tried to open Mail on Pixel 8, asked by Desk; the phone did not answer",
    "error": "Could not open Mail on Pixel 8, asked by Desk",
    "pending": "Is about to open Mail on Pixel 8, asked by Desk",
}


def unisolated(words: str) -> str:
    return words.replace("\u2068", "").replace("\u2069", "")


def test_commands_are_sentences_with_details_on_click(site: Site, visit: PageOpener) -> None:
    known = [
        record(9, path=path, params=params, device_name="Pixel 8", asked_by=AGENT) for path, params, _ in ACTIVITIES
    ]
    mail = {
        "path": "/open_app",
        "params": {"package": "com.example.mail"},
        "device_name": "Pixel 8",
        "asked_by": "Desk",
    }
    ends = [record(9, decision=decision, **mail) for decision in ENDS]
    routes = [record(9, method=method, path=path) for method, path in DEVICE_CONTROL]
    script = Scripted(activity={"activity": [record(5, **mail)]})
    page = start(site, visit, "#activity", script)
    said = page.evaluate(
        "(records) => import('/page/sentences.js').then(({ deed }) => records.map(deed))", [*known, *ends, *routes]
    )
    said = list(map(unisolated, said))
    assert said[: len(known)] == [words for _, _, words in ACTIVITIES]
    assert said[len(known) : len(known) + len(ends)] == list(ENDS.values())
    # every command has a sentence
    assert [words for words in said[len(known) + len(ends) :] if words.startswith("Did ")] == []
    row = page.locator("tr.command")
    expect(row.locator(".deed")).to_contain_text("Opened")
    expect(page.locator("tr.details")).to_be_hidden()
    row.click()
    for words in ("GET /open_app", "com.example.mail", "Desk", "answered 200"):
        expect(page.locator("tr.details")).to_contain_text(words)
    script.answers["activity"] = {"activity": ends}
    page.reload()
    picture = page.get_by_role("img", name="Commands since")
    expect(picture).to_have_attribute("aria-label", re.compile("1 confirmed, 1 blocked, 1 timeout, 1 error"))
    page.get_by_role("button", name="Blocked").click()
    expect(row).to_have_count(1)
    expect(row.locator(".decision")).to_have_text("Blocked")


def test_phone_state_first_and_grants_in_a_line(site: Site, visit: PageOpener) -> None:
    now = time.time()
    month, week = now + 28 * DAY + 60, now + 6 * DAY + 60
    every: dict[str, float | None] = dict.fromkeys(CHANNELS, month)
    grants: dict[str, dict[str, float | None]] = {
        "All": every,
        "Most": {**every, "bridge": week},
        "Some": {"chat": None, "voice:stt": None, "voice:tts": None, "terminal": week},
        "Past": {"chat": now - 5},
        AGENT: {"bridge": None},
    }
    sessions = [{"token_prefix": name[:4], "device_name": name, "grants": held} for name, held in grants.items()]
    phone = {"device": {"name": "Pixel 8", "battery_percent": 64}, "bridge": {"master_enabled": True}, "active": True}
    script = Scripted(
        info={"health": "ok", "version": "1.0.0", "uptime_seconds": 60, "session_count": 5},
        sessions={"sessions": sessions},
        phones={"devices": [{"device": {"name": "Other"}}, phone]},
        config={"model": "llama3.2", "base_url": "http://hidden.example"},
    )
    page = start(site, visit, "", script)
    cards = page.locator(".card")
    expect(cards.nth(0)).to_contain_text("Pixel 8Online, Device Control on, battery 64 %, and 1 more")
    expect(cards.nth(1)).to_contain_text("llama3.2")
    expect(cards.nth(2)).to_contain_text("HealthyVersion 1.0.0")
    expect(page.locator(".grants summary")).to_have_text(
        [
            "Everything, 4 weeks",
            "Everything, 4 weeks; phone control 6 days",
            "Chat, voice, for good; terminal 6 days",
            "Nothing",
            "Phone control, for good",
        ]
    )
    chips = page.locator(".grants").nth(1).locator("li")
    expect(chips.first).to_be_hidden()
    page.locator(".grants summary").nth(1).click()
    expect(chips).to_have_count(len(CHANNELS))
    expect(chips.first).to_be_visible()
    expect(page.locator("button.danger")).to_have_count(4)  # the agent's own session does not belong to a lost phone
    script.answers["phones"] = {"devices": []}
    script.answers["config"] = {"model": None}
    page.reload()
    expect(cards.nth(0)).to_contain_text("None is online")
    expect(cards.nth(1)).to_contain_text("Built-in agent")


def test_a_dead_model_is_red_and_each_problem_has_its_remedy(site: Site, visit: PageOpener) -> None:
    model = ModelFacts(base_url="http://127.0.0.1:9/v1", name="llama3.2", problem="connection refused")
    host = HostFacts(now=0, version="1", home="/h", model=model, disk_free=100 * 1024 * 1024)
    checks = [each.members() for each in run_health_checks(host)]
    page = start(site, visit, "#media", Scripted(config={"model": "llama3.2"}))
    page.route("**/api/health", lambda route: route.fulfill(json={"checked_at": time.time(), "checks": checks}))
    page.get_by_role("link", name="Management").click()
    card = page.locator(".card").nth(1)
    expect(card).to_contain_text(
        "llama3.2the model's server at http://127.0.0.1:9/v1 cannot be reached: connection refused"
    )
    expect(card.locator(".hint")).to_have_class("hint bad")
    health = page.get_by_role("table", name="Health")
    expect(health.locator("tbody tr")).to_have_count(2)
    expect(health).to_contain_text("start the model's server, or run svc model")
    expect(health).to_contain_text("100 MiB are free at /h")
    expect(page.get_by_text("checked just now")).to_be_visible()


def test_a_revoked_phone_that_had_the_main_key(site: Site, visit: PageOpener) -> None:
    session = {"token_prefix": "1c2d3e4f", "device_name": "Pixel 8"}
    script = Scripted(sessions={"sessions": [session]}, revoke={"ok": True, "knows_api_key": True})
    page = start(site, visit, "", script)
    said = page.get_by_role("alertdialog")
    page.get_by_role("button", name="Revoke Pixel 8").click()
    assert unisolated(said.get_by_role("heading").inner_text()) == "Revoke Pixel 8 (1c2d3e4f)?"
    expect(said).to_contain_text("Its connection is closed at once, and it has to be paired again.")
    said.get_by_role("button", name="Revoke").click()
    expect(said).to_contain_text("is revoked")
    assert unisolated(said.get_by_role("heading").inner_text()) == "Pixel 8 is revoked"
    expect(said).to_contain_text(KEY_IS_KNOWN.partition(" Make a new key")[0])
    expect(said).to_contain_text("Phones and programs that use it need the new one")
    said.get_by_role("button", name="Cancel").click()
    assert "/api/key/rotate" not in script.asked
    page.get_by_role("button", name="Revoke Pixel 8").click()
    said.get_by_role("button", name="Revoke").click()
    said.get_by_role("button", name="Make a new key").click()
    expect(page.get_by_role("status").filter(has_text="There is a new API key")).to_be_attached()
    assert script.asked.count("/api/key/rotate") == 1
    script.answers["revoke"] = {"ok": True, "knows_api_key": False}
    page.get_by_role("button", name="Revoke Pixel 8").click()
    with page.expect_response("**/sessions/1c2d3e4f"):
        said.get_by_role("button", name="Revoke").click()
    expect(page.get_by_role("button", name="Revoke Pixel 8")).to_be_enabled()
    expect(said).to_have_count(0)  # no further action is needed
