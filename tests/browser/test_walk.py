"""A new user's walk: a fresh clone, `make up` on a terminal of 80 x 24, then README line by line, as it stands there.

The phone is the reference phone, paired by the text of the QR that the dashboard draws; the model is one with a script,
and what it does with the phone is seen in the browser. What README shows after a line has to be shown, by the first
word of each line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from shlex import quote
from shutil import which

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Site, Visitor
from tests.browser.walk import FRESH, PROMPT, Line, Terminal, environment, fresh_clone, lines_of
from tests.peers.model import Answer, ScriptedModel, calls, plain
from tests.ports import free_port
from tests.servers.support import ROOT

README = Path(__file__).parents[2] / "README.md"
HELLO = "Hello from the model."
MAIL = "com.example.mail"
NOT_HERE = {
    "make test": "it is one of these tests",
    "make demo": "tests/clients/test_demo.py",
    "svc-relay voice": "it needs a microphone, and a recording; tests/clients/commands/test_voice.py",
    "OPENAI_BASE_URL=": "that package is not ours; tests/loops/test_openai.py",
}
UP, DOWN, WITH_A_MODEL = "make up", "svc down", "SVC_MODEL_BASE_URL="
DEFAULTS = {"RELAY_PORT": 8767, "API_SERVER_PORT": 8642, "SVC_DASHBOARD_PORT": 9119}


class Walk:
    """Somebody, their clone, and what they have been shown so far."""

    def __init__(self, folder: Path, model: str) -> None:
        self.home, self.clone = folder / "home", folder / "clone"
        self.env = environment(self.home)
        fresh_clone(self.clone, self.env)
        self.ports = {name: free_port() for name in DEFAULTS}
        (self.home / ".svc").mkdir(mode=0o700)
        (self.home / ".svc/.env").write_text("".join(f"{name}={port}\n" for name, port in self.ports.items()))
        # What stands in README, and what it is here.
        self.here = {str(DEFAULTS[name]): str(port) for name, port in self.ports.items()}
        self.here |= {"ws://127.0.0.1 ": f"ws://127.0.0.1:{self.ports['RELAY_PORT']} ", "http://127.0.0.1:11434": model}
        self.terminals = list[Terminal]()
        self.servers = self.terminal()
        self.shell = self.terminal()
        self.device = self.terminal()
        self.left = [line for line in lines_of(README.read_text()) if not line.typed.startswith(tuple(NOT_HERE))]

    def terminal(self) -> Terminal:
        self.terminals.append(Terminal(self.clone, self.env))
        return self.terminals[-1]

    def activate(self) -> None:
        for terminal in self.terminals[1:]:
            terminal.run(". .venv/bin/activate; PS1='@$?@ '")

    def next(self, beginning: str) -> Line:
        """Take the next line of README, which has to be this one."""
        line = self.left.pop(0)
        assert line.typed.startswith(beginning), f"README has {line.typed!r} where the walk has {beginning!r}"
        typed = line.typed
        for there, here in self.here.items():
            typed = typed.replace(there, here)
        return Line(typed, line.shows)

    def move(self, beginning: str, place: int) -> None:
        """Take a line of README at another time than where it stands."""
        (line,) = [line for line in self.left if line.typed.startswith(beginning)]
        self.left.remove(line)
        self.left.insert(place, line)

    def run(self, beginning: str) -> str:
        """Type the next line of README in the second terminal; what it has printed when it is over."""
        line = self.next(beginning)
        return shown_in(self.shell.run(line.typed), line)

    def start(self) -> str:
        """Start the servers in the first terminal; what stands there when they have said all."""
        assert self.next(UP).typed.startswith(UP)
        self.servers.type(self.next(WITH_A_MODEL).typed)  # the same, and with a model
        self.servers.until(r"Which app is to scan the QR\?")
        self.servers.until("1 or 2")
        self.servers.type("")
        shown = self.servers.until(rf"(?s)^.*(?:Ctrl-C stops\.[^\r\n]*|{PROMPT.pattern})")[0].replace("\r\n", "\n")
        assert "Ctrl-C stops." in shown, shown  # else it is over
        screen = shown[shown.index("The QR needs a terminal of") :]
        assert sum(1 + len(row) // 80 for row in screen.splitlines()) < 24
        return screen


def shown_in(printed: str, line: Line) -> str:
    """What was printed, which has all that README shows, in this order."""
    rows = iter(printed.splitlines())
    for word in line.shows:
        assert any(row.startswith(word) for row in rows), f"{line.typed!r} does not show {word!r}:\n{printed}"
    return printed


@pytest.fixture
def model(site: Site) -> ScriptedModel:
    return ScriptedModel()


@pytest.fixture
def walk(tmp_path: Path, site: Site, model: ScriptedModel) -> Iterator[Walk]:
    """With a model at hand, for the line that names one."""
    walk = Walk(tmp_path / "walk", site.world.peer(model))
    yield walk
    for terminal in walk.terminals:
        terminal.close()


@pytest.mark.skipif(
    not (all(map(which, ("bash", "curl", "git", "make"))) and (ROOT / ".git").exists()),
    reason="a new user has bash, curl, git and make, and something to clone",
)
@pytest.mark.short
@pytest.mark.timeout(900 if FRESH else 300)
def test_a_new_user(walk: Walk, model: ScriptedModel, visit: Visitor) -> None:
    walk.move(WITH_A_MODEL, 1)
    walk.move(DOWN, len(walk.left))
    screen = walk.start()
    assert "\nModel      llama3.2\n" in screen
    (board,) = re.findall(r"\nDashboard  (http://127\.0\.0\.1:\d+)\n", screen)
    walk.activate()

    # What runs.
    assert "Devices    0 paired, 0 online" in walk.run("svc status")
    walk.shell.type(walk.next("svc logs -f").typed)
    walk.shell.until("INFO svc ready")
    assert walk.shell.interrupt() == 130

    # A phone that pairs by itself.
    walk.device.type(walk.next("svc phone").typed)
    walk.device.until(f"Its screen: {board}/#phone")
    walk.device.until("online")
    assert walk.device.interrupt() == 0

    # A phone by a code.
    walk.here["Q7M2ZK"] = json.loads(walk.run("curl -X POST"))["code"]
    phone = walk.next("python -m clients.phone").typed
    walk.device.type(phone)
    walk.here["<token>"] = walk.device.until("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}")[0]
    assert "rootBounds" in walk.run("curl -H")
    assert walk.device.interrupt() == 0

    # A desktop.
    made = walk.next("svc pair")
    walk.device.type(made.typed)
    walk.here["20OXFL"] = walk.device.until(r"Code      (\w{6})")[1]
    walk.device.until("hermes-relay://pair")
    walk.device.until("It is for the Hermes-Relay app for Android")
    (grants,) = re.findall(r"^  Grants    .*", walk.run("svc-relay pair"), re.MULTILINE)
    assert grants in README.read_text()  # what the code of the block before gives
    walk.device.until("My desk is paired")
    assert walk.device.end()[0] == 0
    assert walk.run("svc-relay shell") == "Linux\nstatus 3\n"
    assert walk.run("svc-relay doctor").count("✓") == 4
    assert "claude" in walk.run("svc mcp install claude")

    # The model, by every door.
    model.answers += [plain(HELLO)] * 2
    assert HELLO in walk.run("svc-relay chat")
    for typed in (".", "key=", "id="):
        walk.run(typed)
    assert f'"content":"{HELLO}"' in walk.run("curl -N")
    assert len(model.seen) == 2

    # A phone by the QR that the dashboard draws, and a chat that moves it.
    page = visit(f"{board}/")
    with page.expect_request("**/api/qr") as drawn:
        page.get_by_role("button", name="Pair new device").click()
    text = quote(str(drawn.value.post_data))
    walk.device.type(re.sub(r"--remote \S+ --code \w+", lambda _: f"--allow-plain --pair-qr {text}", phone))
    walk.device.until("paired: session ")
    page.clock.fast_forward(10_000)  # Management looks every 10 s
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text("Reference phone is paired")).to_be_visible()
    dialog.get_by_role("button", name="Done").click()
    page.get_by_role("link", name="Chat").click()

    def said(request: dict[str, object]) -> Answer:
        assert MAIL in str(request["messages"])
        return plain("Your mail is open.")

    model.answers += [calls(("phone_open_app", {"package": MAIL})), said]
    expect(page.get_by_role("button", name="Send")).to_be_visible()
    page.get_by_label("Message", exact=True).fill("Open my mail")
    page.keyboard.press("Enter")
    expect(page.locator(".tool")).to_have_attribute("data-state", "done")
    expect(page.locator(".prose").last).to_have_text("Your mail is open.")
    page.get_by_role("link", name="Activity").click()
    expect(page.locator("tr.command").first).to_contain_text("/open_app")
    assert walk.device.interrupt() == 0
    assert walk.run(DOWN) == "Stopped: relay, api, dashboard.\n"
    assert walk.servers.end()[0] == 0
    assert walk.left == []
