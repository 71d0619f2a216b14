"""Tests of `svc backup` and `svc restore`: another host, omitted files, and settings that leave the home."""

import json
import os
import sqlite3
from pathlib import Path

from tests.clients.commands.command_process import CommandHome
from tests.servers.program_process import LOCAL, call, ports_of, running, websocket


def test_another_host_has_the_same_phones_chats_and_keys(lonely: CommandHome, tmp_path: Path) -> None:
    options = (*LOCAL, "--no-dashboard", "--no-qr")
    target = tmp_path / "b.tar.gz"
    with running(lonely.home, "servers", *options) as servers:
        ports = ports_of(servers, 2)
        code = call(ports["relay"], "POST", "/pairing", {}).body["code"]
        with websocket(ports["relay"]) as phone:
            phone.sign_in(pairing_code=code, device_name="Pixel 8")
        assert call(ports["api"], "POST", "/api/sessions", {"title": "Tea"}).status < 300
        done = lonely.run("svc", "backup", str(target), "--json")
        assert (done.code, done.err) == (0, "")
        assert done.json["left_out"] == []
        assert done.json["bytes"] > 0
        assert lonely.run("svc", "backup", str(target)).problem == f"{target} is there already"
        refused = lonely.run("svc", "restore", str(target), "--replace").problem
        assert refused.startswith(f"the relay of {lonely.home / 'svc'} runs (process ")
    (tmp_path / "other").mkdir()
    other = CommandHome(tmp_path / "other")
    restored = other.run("svc", "restore", str(target))
    assert (restored.code, restored.err) == (0, "")
    assert restored.out.startswith(f"{other.home / 'svc'}: {done.json['files']} files, ")
    event = json.loads(other.run("svc", "audit", "--json", "-n", "1").out)[0]
    assert (event["event"], event["principal"], event["about"]) == ("backup restored", "operator", {"file": "b.tar.gz"})
    with running(other.home, "servers", *options) as servers:
        ports = ports_of(servers, 2)
        listed = call(ports["relay"], "GET", "/sessions").body["sessions"]
        assert [each["device_name"] for each in listed] == ["Pixel 8"]
        titles = [each["title"] for each in call(ports["api"], "GET", "/api/sessions").body["sessions"]]
        assert titles == ["Tea"]
    again = other.run("svc", "restore", str(target)).problem
    assert again == f"{other.home / 'svc'} holds something already; --replace keeps that beside it"
    kept = other.run("svc", "restore", str(target), "--replace", "--json").json["kept"]
    assert Path(kept, "svc.db").exists()


def test_notes_about_omitted_files(lonely: CommandHome) -> None:
    home = lonely.home / "svc"
    home.mkdir()
    (home / "config.yaml").symlink_to("/etc/hostname")
    (home / ".env").write_text("SVC_DATABASE_URL=postgresql://u:secret@db/x\n")
    done = lonely.run("svc", "backup", str(lonely.home / "b"))
    assert done.out.splitlines()[1:] == [
        f"Not in it: {home / 'config.yaml'}",
        "Not in it: the database postgresql: (use its own tools)",
    ]
    assert "secret" not in done.out
    (home / ".env").write_text("SVC_DATABASE_URL=svc.db")
    assert lonely.run("svc", "backup", str(lonely.home / "c")).problem.startswith("SVC_DATABASE_URL must be ")
    (home / ".env").write_bytes(b"\xff")
    assert lonely.run("svc", "backup", str(lonely.home / "c")).problem.endswith(".env: not UTF-8")
    elsewhere = {"RELAY_SESSIONS_FILE": str(lonely.home / "s.db")}
    os.unlink(home / ".env")
    assert lonely.run("svc", "backup", str(lonely.home / "c"), env=elsewhere).code == 0
    assert lonely.run("svc", "backup", str(lonely.home / "d"), env={"RELAY_SESSIONS_FILE": ""}).code == 0


def test_a_backup_whose_settings_leave_the_home_is_refused(lonely: CommandHome) -> None:
    home, outside = lonely.home / "svc", lonely.home / "elsewhere" / "start"
    home.mkdir(mode=0o700)
    outside.parent.mkdir()
    sqlite3.connect(home / "svc.db").close()
    (home / ".env").write_text(f"SVC_DATABASE_URL=sqlite:///{outside}\n")
    backup = lonely.home / "b.tar.gz"
    assert lonely.run("svc", "backup", str(backup)).code in (0, 1)
    if not backup.exists():
        sqlite3.connect(outside).close()
        assert lonely.run("svc", "backup", str(backup)).code == 0
    outside.unlink(missing_ok=True)
    refused = lonely.run("svc", "restore", str(backup), "--replace")
    assert "--outside allows that" in refused.problem
    assert not outside.exists()
    assert lonely.run("svc", "restore", str(backup), "--replace", "--outside").code == 0
