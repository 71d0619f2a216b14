import wave
from base64 import b64encode
from io import BytesIO

import pytest
from playwright.sync_api import Route, expect

from tests.browser.conftest import PageOpener, Site, body_of
from tests.browser.hostile_server import EVIL
from tests.browser.test_layout import Scripted, start

OURS = "http://127.0.0.1:11434/v1"


def test_a_model_is_listed_tested_and_stored(site: Site, visit: PageOpener) -> None:
    script = Scripted(
        config={"model": None},
        probed={"base_url": OURS, "models": ["small", EVIL], "problem": None},
        configured={"ok": True, "model": "small", "base_url": OURS},
    )
    page = start(site, visit, "#settings", script)
    expect(page.get_by_text("No model is connected")).to_be_visible()
    page.get_by_role("button", name="Test").click()
    expect(page.get_by_role("alert")).to_have_text("Choose a model first.")
    page.get_by_label("Address of an OpenAI-compatible server").fill(OURS)
    page.get_by_role("button", name="List the models").click()
    expect(page.get_by_text("2 models")).to_be_visible()
    assert page.locator("#panel img, #panel script, #panel b").count() == 0
    page.get_by_role("button", name="small").click()
    script.answers["probed"] |= {"model": "small", "context": 8192, "tools": False, "seconds": 0.25}
    page.get_by_role("button", name="Test").click()
    expect(page.get_by_text("It calls no tools, so it cannot use the phone.")).to_be_visible()
    expect(page.get_by_text("after 0.3 s")).to_be_visible()
    script.answers["probed"]["problem"] = EVIL
    page.get_by_role("button", name="Test").click()
    expect(page.get_by_role("alert")).to_have_text(EVIL)
    script.answers["config"] = {"model": "small"}
    with page.expect_request(lambda request: request.method == "PATCH") as sent:
        page.get_by_role("button", name="Save").first.click()
    assert body_of(sent.value) == {"base_url": OURS, "model": "small"}
    expect(page.get_by_text("The agent uses")).to_contain_text("small")
    script.answers["configured"] = {"ok": True, "model": "other"}
    page.get_by_role("button", name="Save").first.click()
    expect(page.get_by_role("alert")).to_contain_text("the environment of the server sets")


def silence(seconds: float) -> str:
    """Return a WAV file of silence with this length, as a data URL."""
    file = BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(8000)
        sound.writeframes(bytes(int(16_000 * seconds)))
    return f"data:audio/wav;base64,{b64encode(file.getvalue()).decode()}"


@pytest.mark.firefox
def test_the_voice_is_heard(site: Site, visit: PageOpener) -> None:
    visit.tolerated = ("Failed to load resource",)
    page = start(site, visit, "#settings", Scripted())
    page.route("**/api/audio/speak", lambda route: route.fulfill(json={"ok": True, "data_url": silence(0.5)}))
    page.get_by_role("button", name="Listen").click()
    expect(page.get_by_text("0.5 s of sound")).to_be_visible()
    page.route("**/api/audio/speak", lambda route: route.fulfill(status=501, json={"detail": EVIL}))
    page.get_by_role("button", name="Listen").click()
    expect(page.get_by_text(EVIL)).to_be_visible()
    assert page.locator("#panel img, #panel script, #panel b").count() == 0


def test_a_new_code_starts_with_the_settings(site: Site, visit: PageOpener) -> None:
    script = Scripted(pairing={"code": "ABCDEF", "qr_payload": "q", "pairing_url": "u", "expires_at": 4e9})
    stored = {"pair_scope": "", "pair_ttl": ""}

    def host(route: Route) -> None:
        if route.request.method == "PATCH":
            stored.update(body_of(route.request))
        rows = [{"name": name, "variable": name, "value": value, "is_set": True} for name, value in stored.items()]
        route.fulfill(json={"settings": rows})

    page = start(site, visit, "#settings", script)
    page.route("**/api/agent/host", host)
    page.reload()
    expect(page.get_by_label("Paired for")).to_be_enabled()
    expect(page.get_by_label("Paired for")).to_have_value("")  # the host has stored none
    page.get_by_label("May do").select_option("Chat alone")
    page.get_by_label("Paired for").select_option("A day")
    expect(page.get_by_label("Paired for")).to_be_enabled()
    assert stored == {"pair_scope": "chat", "pair_ttl": "86400"}
    expect(page.get_by_role("button", name="Copy svc model --ask-key")).to_be_visible()
    page.get_by_role("link", name="Management").click()
    with page.expect_request("**/pairing") as sent:
        page.get_by_role("button", name="Pair new device").click()
    wish = body_of(sent.value)
    assert (wish["ttl_seconds"], wish["mode"]) == (86_400, "auto")
    assert wish["grants"] == dict.fromkeys(wish["grants"], False)
    assert {"bridge", "terminal"} <= {*wish["grants"]}
    with page.expect_request("**/pairing") as sent:
        page.get_by_role("dialog").get_by_label("May do").select_option("Everything")
    assert body_of(sent.value)["grants"] == {}  # not absent, which means the default of the host
