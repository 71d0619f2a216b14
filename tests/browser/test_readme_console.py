"""Test of a new user's walk: a fresh clone, a terminal of 80 x 24, and the console lines of `PAGES`."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from shlex import quote
from shutil import which

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import PageOpener, Site
from tests.servers.program_process import ROOT
from tests.support.console_walk import FRESH, UP, Walk
from tests.support.servers.model_server import ModelAnswer, ScriptedModel, calls, plain

PAGES = (  # in the order of the walk
    "README.md",
    "docs/tutorials/first-phone.md",
    "docs/howto/pair-devices.md",
    "docs/howto/desktop-client.md",
    "docs/tutorials/first-chat.md",
    "docs/howto/openai-clients.md",
)
TEXT = "\n".join((Path(__file__).parents[2] / page).read_text() for page in PAGES)
HELLO = "Hello from the model."
MAIL = "com.example.mail"
NOT_HERE = {
    "svc service install": "it needs systemd; tests/servers/test_howto_console.py",
    "OPENAI_BASE_URL=": "that package is not ours; tests/loops/test_openai.py",
}
DOWN = "svc down"


@pytest.fixture
def model(site: Site) -> ScriptedModel:
    return ScriptedModel(pages={"/v1/models": {"object": "list", "data": [{"id": "llama3.2", "object": "model"}]}})


@pytest.fixture
def walk(tmp_path: Path, site: Site, model: ScriptedModel) -> Iterator[Walk]:
    """Yield a walk through the pages, in which the scripted model's address replaces Ollama's."""
    walk = Walk(tmp_path / "walk", PAGES, [*NOT_HERE], {})
    walk.here["http://127.0.0.1:11434"] = site.world.peer(model)
    yield walk
    walk.close()


@pytest.mark.skipif(
    not (all(map(which, ("bash", "curl", "git", "make"))) and (ROOT / ".git").exists()),
    reason="a new user has bash, curl, git and make, and something to clone",
)
@pytest.mark.short
@pytest.mark.timeout(900 if FRESH else 300)
def test_a_new_user(walk: Walk, model: ScriptedModel, visit: PageOpener) -> None:
    # A phone that pairs by itself.
    screen = walk.start(walk.next(UP).typed)
    (board,) = re.findall(r"\nDashboard  (http://127\.0\.0\.1:\d+)\n", screen)
    walk.activate(walk.next(". .venv/bin/activate").typed)
    walk.device.type(walk.next("svc phone").typed)
    walk.device.until(f"Its screen: {board}/#phone")
    walk.device.until("online")

    # The servers with a model.
    walk.run("echo 'SVC_MODEL_BASE_URL=")
    walk.run("echo 'SVC_MODEL=")
    assert walk.run(DOWN) == "Stopped: relay, api, dashboard, phone.\n"
    assert walk.device.end()[0] == 0
    assert walk.servers.end()[0] == 0
    assert "\nModel      llama3.2\n" in walk.start(walk.next(UP).typed)
    assert "\nModel      llama3.2\n" in walk.run("svc status")

    # A QR, the log, a backup, and other clients.
    walk.device.type(walk.next("svc pair --only").typed)
    walk.device.until("svc-relay://pair")
    walk.device.until("It is for the Hermes-Relay app for Android")
    walk.device.interrupt()
    walk.shell.type(walk.next("svc logs -f").typed)
    walk.shell.until("INFO svc ready")
    assert walk.shell.interrupt() == 130
    assert "svc-backup-" in walk.run("svc backup")
    model.answers += [plain(HELLO)]
    assert HELLO in walk.run("svc-relay chat")
    assert "claude" in walk.run("svc mcp install claude")

    # A phone by a code.
    walk.here["Q7M2ZK"] = json.loads(walk.run("curl -X POST"))["code"]
    phone = walk.next("python -m clients.phone").typed
    walk.device.type(phone)
    walk.here["<token>"] = walk.device.until(r"session ([0-9a-f]{64})")[1]
    assert "rootBounds" in walk.run("curl -H")
    assert walk.device.interrupt() == 0

    # A desktop.
    made = walk.next("svc pair")
    walk.device.type(made.typed)
    walk.here["20OXFL"] = walk.device.until(r"Code      (\w{6})")[1]
    walk.device.until("svc-relay://pair")
    walk.device.until("It is for the Hermes-Relay app for Android")
    (grants,) = re.findall(r"^  Grants    .*", walk.run("svc-relay pair"), re.MULTILINE)
    assert grants in TEXT  # granted by the code of the block before
    walk.device.until("My desk is paired")
    assert walk.device.end()[0] == 0
    assert walk.run("svc-relay shell") == "Linux\nstatus 3\n"
    assert walk.run("svc-relay doctor").count("✓") == 4

    # The model: listed, chosen, and by curl as well.
    assert "llama3.2" in walk.run("svc model --url")
    walk.run("svc model llama3.2")
    model.answers[:], tested = [plain(HELLO)] * 2, len(model.seen)
    assert HELLO in walk.run("svc-relay chat")
    for typed in (".", "key=", "id="):
        walk.run(typed)
    assert f'"content":"{HELLO}"' in walk.run("curl -N")
    assert len(model.seen) == tested + 2

    # A phone by the QR that the dashboard draws, and a chat that moves it.
    page = visit(f"{board}/")
    with page.expect_request("**/api/qr") as drawn:
        page.get_by_role("button", name="Pair new device").click()
    text = quote(str(drawn.value.post_data))
    walk.device.type(re.sub(r"--remote \S+ --code \w+", lambda _: f"--allow-plain --pair-qr {text}", phone))
    walk.device.until("paired: session ")
    page.clock.fast_forward(10_000)  # Management refreshes every 10 s
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text("Reference phone is paired")).to_be_visible()
    dialog.get_by_role("button", name="Done").click()
    page.get_by_role("link", name="Chat").click()

    def said(request: dict[str, object]) -> ModelAnswer:
        assert MAIL in str(request["messages"])
        return plain("Your mail is open.")

    model.answers += [calls(("phone_open_app", {"package": MAIL})), said]
    expect(page.get_by_role("button", name="Send")).to_be_visible()
    page.get_by_label("Message", exact=True).fill("Open my mail")
    page.keyboard.press("Enter")
    expect(page.locator(".tool")).to_have_attribute("data-state", "done")
    expect(page.locator(".prose").last).to_have_text("Your mail is open.")
    page.get_by_role("link", name="Activity").click()
    expect(page.locator("tr.command").filter(has_text="/open_app")).to_have_count(1)
    assert walk.device.interrupt() == 0
    assert walk.left == []
    assert walk.shell.run(DOWN) == "Stopped: relay, api, dashboard.\n"
    assert walk.servers.end()[0] == 0
