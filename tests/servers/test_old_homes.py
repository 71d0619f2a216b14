"""Tests that the present version opens service homes of older versions, which real servers and clients made.

The archives in `tests/servers/homes` are never rewritten. They stand for the homes of users. Each has a paired phone,
a paired desktop and the agent's own session, a chat with a tool call, and settings. Its credentials are made up.
"""

import io
import json
import tarfile
from pathlib import Path

import pytest
from attrs import frozen

from tests.clients.commands.command_process import CommandHome
from tests.runtimes.store.old_databases import NEWEST
from tests.servers.program_process import LOCAL, call, ports_of, running, sign_in

KEPT = Path(__file__).parent / "homes"
KEY = "sk-made-up-key-of-an-old-home"  # API_SERVER_KEY of each
pytestmark = pytest.mark.full


@frozen(kw_only=True)
class OldHome:
    """An archived home, with its schema version, the phone's session token and API key, and the id of a chat."""

    name: str
    schema: int
    token: str
    key: str
    chat: str


HOMES = (
    OldHome(
        name="2026-11-21",
        schema=3,
        token="da0cf8ae-2c1f-4010-b4c8-9a366536184d",
        key=KEY,
        chat="efaabd5f-f01e-4ed7-ac4d-7e67d8766c77",
    ),
    OldHome(
        name="2026-11-28",
        schema=9,
        token="c4032c87206a9f8b58b3aa2add884aa2fe44db8edc72216d3d9037aa6376dc2d",
        key="sk-IT_sbMnbz_oeaMsXKxcdXg",
        chat="1f938965-c3cd-4015-ba31-74ff7b610d93",
    ),
)


def check_servers(home: CommandHome, old: OldHome) -> None:
    """Start the servers on a home; check that its phone, its desktop, its chat and its keys work."""
    desktop = next(iter(json.loads((home.home / "svc/remote-sessions.json").read_text())["sessions"].values()))
    with running(home.home, "servers", *LOCAL, "--no-qr") as servers:
        ports = ports_of(servers)
        relay, api = ports["relay"], ports["api"]
        listed = call(relay, "GET", "/sessions", token=old.token).body["sessions"]
        assert {each["device_name"] for each in listed} == {"Pixel 8", "Desk", "Agent on this host"}
        assert sign_in(relay, session_token=desktop["token"])["session_token"]
        for key in (KEY, old.key):
            messages = call(api, "GET", f"/api/sessions/{old.chat}/messages", token=key).body["messages"]
            assert messages[0]["content"] == "Früher gab es Tee"
        hits = call(api, "GET", "/api/sessions/search?q=fruher", token=old.key).body
        assert old.chat in json.dumps(hits)
        phone = ("--remote", f"ws://127.0.0.1:{relay}", "--token", old.token, "--master", "on")
        with running(home.home / "phone", "clients.phone", *phone) as client:
            client.line("^online: session ")
            assert call(relay, "GET", "/ping", token=old.token).status == 200
            turn = {"message": "/phone current_app"}
            answer = call(api, "POST", f"/api/sessions/{old.chat}/chat", turn, token=old.key)
            assert "package" in json.dumps(answer.body)
        assert servers.stop() == 0


@pytest.mark.parametrize("old", HOMES, ids=lambda old: str(old.name))
def test_an_old_home_is_opened_backed_up_and_restored(old: OldHome, tmp_path: Path) -> None:
    home = CommandHome(tmp_path / "host")
    with tarfile.open(fileobj=io.BytesIO((KEPT / f"{old.name}.tar.gz").read_bytes())) as packed:
        packed.extractall(home.home / "svc", filter="data")
    told = home.run("svc", "db", "upgrade", "--dry-run", "--json").json
    assert (told["from"], told["to"]) == (old.schema, NEWEST)
    check_servers(home, old)
    target = tmp_path / "backup.tar.gz"
    assert home.run("svc", "backup", str(target)).code == 0
    other = CommandHome(tmp_path / "other")
    assert other.run("svc", "restore", str(target)).code == 0
    check_servers(other, old)


def test_each_archive_is_opened() -> None:
    assert {path.name.removesuffix(".tar.gz") for path in KEPT.iterdir()} == {old.name for old in HOMES}
