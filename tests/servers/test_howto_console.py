"""Walk through the console lines of `PAGES`, how-tos and a tutorial, with stand-ins for the programs of `STAND_INS`.

Lines that begin with one of `NOT_HERE` are left out. A stand-in writes its command line to a file and succeeds.
"""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.test_readme_console import PAGES as WALKED_BY_A_NEW_USER
from tests.clients.commands.test_mcp_pages import PAGES as MCP_PAGES
from tests.runtimes.store.postgresql_server import needs_postgresql, server
from tests.servers.program_process import ROOT, call, websocket
from tests.support.console_walk import Walk, lines_of
from tests.support.ports import free_port
from tests.voice.recordings import needs_engines, spoken, understood

PAGES = tuple(
    f"docs/{name}.md"
    for name in (
        "tutorials/embed-a-core",
        "howto/service",
        "howto/messages",
        "howto/openapi",
        "howto/tunnels",
        "howto/container",
        "howto/voice",
        "howto/backup",
        "howto/postgresql",
    )
)
NOT_HERE = ("svc-relay voice talk",)  # it needs a microphone: tests/clients/commands/test_voice.py
STAND_INS = ("systemctl", "sudo", "tailscale", "podman", "pip")
KEY = "sk-howto-0123456789"
DATABASE = "postgresql://svc@db.lan/svc"


class HowtoWalk(Walk):
    """A walk through the console lines of `PAGES`, except those of `NOT_HERE`, with stand-ins on the path."""

    def __init__(self, folder: Path) -> None:
        self.calls = folder / "calls"
        self.nas = folder / "nas"
        self.nas.mkdir()
        programs = folder / "programs"
        programs.mkdir()
        for name in STAND_INS:
            (programs / name).write_text(f'#!/bin/sh\necho "{name} $@" >> {self.calls}\n')
            (programs / name).chmod(0o755)
        database = server()
        path = f"{programs}:{database.programs}:{os.environ['PATH']}"
        env = {
            "PATH": path,
            "XDG_CONFIG_HOME": f"{folder}/config",
            "PGHOST": str(database.folder),
            "PGUSER": "svc",
            "KEY": KEY,
        }
        super().__init__(folder, PAGES, NOT_HERE, env)
        with (self.home / ".svc/.env").open("a") as settings:
            settings.write(f"API_SERVER_KEY={KEY}\n")
        self.here["8080"] = str(free_port())
        self.here["https://api.example"] = f"http://127.0.0.1:{self.ports['API_SERVER_PORT']}"
        self.here["/mnt/nas"] = str(self.nas)
        self.here[DATABASE] = f"'{database.url('svc')}'"

    def run_on_stand_in(self, beginning: str) -> str:
        """Run the next line and return the command line that its stand-in received."""
        self.run(beginning)
        *_, last = self.calls.read_text().splitlines()
        return last


@pytest.fixture
def walk(tmp_path: Path) -> Iterator[HowtoWalk]:
    walk = HowtoWalk(tmp_path)
    yield walk
    walk.close()


@needs_postgresql
@needs_engines
@pytest.mark.timeout(300)
def test_the_how_tos(walk: HowtoWalk) -> None:
    walk.activate()

    # A core of one's own.
    assert walk.run_on_stand_in("pip install .") == "pip install ."
    assert walk.run_on_stand_in("pip install '.[serve]'") == "pip install .[serve]"
    walk.device.type(walk.next("python -m examples.own_service").typed)
    walk.device.until("8080|http")
    walk.run("curl -d")
    assert "hello" in walk.run("curl http")
    walk.device.interrupt()

    # As a service. Root's line is printed, not installed.
    assert "svc.service" in walk.run("svc service install")
    assert walk.calls.read_text().splitlines()[-1] == "systemctl --user enable --now svc.service"
    (_, _, words) = walk.run_on_stand_in("sudo").partition(" ")
    assert "\nUser=daemon\n" in walk.shell.run(f"{words.replace('--user svc', '--user daemon')} --print")
    assert "Type=notify" in walk.run("svc service install --print")
    assert "svc.service" in walk.run("svc service remove")

    # Messages: one without a phone, and one that a phone answers.
    walk.start()
    relay = walk.ports["RELAY_PORT"]
    assert "waits in the queue (1)" in walk.run("svc message")
    with websocket(relay) as phone:
        code = call(relay, "POST", "/pairing").body["code"]
        phone.sign_in(pairing_code=code, device_name="Phone", device_id="p", client_surface="android")
        phone.send_envelope("proactive", "proactive.subscribe", {})
        walk.shell.type(walk.next("svc message").typed)
        while "disk" not in (asked := phone.receive_message()["payload"]).get("text", ""):
            pass
        phone.send_envelope("proactive", "proactive.reply", {"text": "Yes, delete", "chat_id": asked["chat_id"]})
        assert "Yes, delete" in walk.shell.end()[1]

    # Documents of the API, here and elsewhere, and tunnels.
    walk.run("curl -s http://127.0.0.1")
    document = json.loads((walk.clone / "api.json").read_text())
    walk.run("curl -s -H")
    assert json.loads((walk.clone / "api.json").read_text()) == document
    for port in (relay, walk.ports["API_SERVER_PORT"]):
        words = walk.run_on_stand_in("tailscale serve")
        assert words == f"tailscale serve --bg --https={port} http://127.0.0.1:{port}"

    # A container: its line for the command inside is run here.
    assert (walk.clone / "Containerfile").exists()
    assert walk.run_on_stand_in("podman build").startswith("podman run -d --name svc --network host -v svc:/data")
    (_, _, words) = walk.run_on_stand_in("podman exec").partition("svc ")
    walk.device.type(words)
    walk.device.until("svc-relay://pair")
    walk.device.interrupt()

    # Voice, with a recording under the name of the page.
    made = json.loads(walk.shell.run(f"curl -sX POST http://127.0.0.1:{relay}/pairing"))
    walk.shell.run(f"svc-relay pair {made['code']} --remote ws://127.0.0.1:{relay} --name Desk")
    walk.run("svc-relay voice config")
    walk.run("svc-relay voice say")
    (walk.clone / "memo.m4a").write_bytes(spoken())
    assert understood(walk.run("svc-relay voice transcribe").lower())

    # A backup, by hand and for a timer, restored on an empty host.
    (name,) = re.findall(r"svc-backup-[\d-]+\.tar\.gz", walk.run("svc backup  "))
    walk.here["svc-backup-2026-11-22.tar.gz"] = name
    old = walk.nas / "svc-2026-01-01.tar.gz"
    old.write_bytes(b"")
    os.utime(old, (0, 0))
    walk.run("svc backup ")
    assert [file.name.startswith("svc-2") for file in walk.nas.iterdir()] == [True]
    assert not old.exists()
    restored = walk.home / "empty"
    walk.shell.run(f"export SVC_HOME={restored}")
    walk.run("svc restore")
    assert (restored / "svc.db").exists()
    walk.shell.run("unset SVC_HOME")

    # PostgreSQL. The servers run in this terminal at the end.
    assert walk.run_on_stand_in("pip") == "pip install svc-relay[postgres]"
    server().execute("DROP DATABASE IF EXISTS svc WITH (FORCE)")  # of other tests with this server
    walk.run("createdb svc")
    walk.run("svc down")
    assert walk.servers.end()[0] == 0
    walk.run("svc db copy")
    walk.shell.type(walk.next("echo ").typed)
    walk.shell.until("Ctrl-C stops")
    assert server().execute("SELECT count(*) FROM paired_sessions WHERE record LIKE '%Desk%'", "svc") == [(1,)]
    assert walk.shell.interrupt() == 0
    assert walk.left == []


def test_each_page_with_console_lines_is_walked() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs/tutorials").glob("*.md"), *(ROOT / "docs/howto").rglob("*.md")]
    found = {str(page.relative_to(ROOT)) for page in pages if lines_of(page.read_text())}
    assert found <= {*PAGES, *WALKED_BY_A_NEW_USER, *(f"docs/howto/mcp/{name}.md" for name in MCP_PAGES)}
