import re
import subprocess
from pathlib import Path

import pexpect
import pytest

from tests.clients.commands.command_process import CommandHome, finish, module
from tests.servers.program_process import ROOT, call, sign_in, websocket


def test_a_code_that_works(linked: CommandHome, runtime: str) -> None:
    linked.runtime = runtime
    done = linked.run("svc-pair", "--ttl", "7d", "--grants", "bridge=1h", "--no-qr", "--show")
    assert (done.code, done.err) == (0, "")
    titles = ["API server", "Relay", "Routes, best first", "Invite URL (holds credentials)"]
    assert [line for line in done.out.splitlines() if line in titles] == titles
    assert "\nNote: the relay listens on this host alone, so " in done.out  # and not on a phone's
    code = re.search(r"Code +([A-Z0-9]{6})$", done.out, re.MULTILINE)
    assert code is not None
    session = sign_in(linked.port, pairing_code=code[1])
    (record,) = call(linked.port, "GET", "/sessions").body["sessions"]
    assert record["expires_at"] - record["created_at"] == pytest.approx(604_800, abs=1)
    assert session["grants"]["bridge"] - record["created_at"] == pytest.approx(3600, abs=1)


def test_credentials_are_shown_only_at_a_terminal(linked: CommandHome) -> None:
    done = linked.run("svc", "pair", "--no-qr", env={"API_SERVER_KEY": "abcdefghijklmnop"})
    assert (done.code, done.err) == (0, "")
    assert "\n  Code      not shown\n" in done.out
    assert "abcdefghijklmnop" not in done.out
    assert "payload=" not in done.out
    assert "--show shows it" in done.out


def test_an_unknown_role_gives_a_warning(linked: CommandHome) -> None:
    done = linked.run("svc", "pair", "--no-qr", "--prefer", "zork")
    assert (done.code, done.err) == (0, "warning: --prefer 'zork' changes nothing: the routes are lan\n")
    assert "Routes, best first\n  lan " in done.out
    done = linked.run("svc", "pair", "--json", "--mode", "lan", "--prefer", "zork")
    assert done.json["notes"][1:] == [done.err.removeprefix("warning: ").strip()]


def test_a_terminal_shows_a_qr_and_a_file(linked: CommandHome) -> None:
    terminal = linked.spawn("svc", "pair", env={"TMPDIR": str(linked.home)}, size=(60, 100))
    terminal.expect_exact("Invite URL (holds credentials)")
    terminal.expect(r"PNG   (\S+\.png)\r\n")
    assert isinstance(terminal.match, re.Match)
    file = Path(terminal.match[1])
    terminal.expect_exact("It is for the Hermes-Relay app for Android, or another app")
    terminal.expect_exact("Warning: the QR holds credentials")
    terminal.expect_exact("Waiting for the phone. Ctrl-C ends the wait")
    terminal.expect("(?:[ \u2580\u2584\u2588]+\r\n){25}")  # the whole QR: what is interrupted is the wait
    assert file.parent == linked.home
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.read_bytes().startswith(b"\x89PNG")
    terminal.sendintr()
    assert finish(terminal)[0] == 130
    assert not file.exists()


def test_a_usual_terminal_has_a_qr_and_a_larger_one_another(linked: CommandHome) -> None:
    public = ("--public-url", "https://my-own-name.duckdns.org/", "--mode", "public")
    env = {"TMPDIR": str(linked.home), "API_SERVER_KEY": "sk-0123456789abcdefghijkl"}
    terminal = linked.spawn("svc", "pair", *public, env=env, size=(24, 80))
    terminal.expect_exact("\u2580" * 47)  # the border below
    drawn = f"{terminal.before}".rpartition("\r\n\r\n")[2].split("\r\n")
    assert [len(line) for line in drawn] == [47] * 23 + [0]  # 24 lines
    terminal.expect_exact(pexpect.TIMEOUT, timeout=0.3)
    assert terminal.before == ""  # nothing scrolls
    terminal.setwinsize(70, 120)
    terminal.expect("\u2588{60,}\r\n")
    terminal.sendintr()
    assert finish(terminal)[0] == 130


def test_a_long_name_has_a_qr_of_smaller_characters(linked: CommandHome) -> None:
    public = ("--public-url", "https://relay.the-home-of-my-family.duckdns.org/", "--mode", "public")
    env = {"TMPDIR": str(linked.home), "API_SERVER_KEY": "sk-" + "0123456789abcdef" * 2}
    terminal = linked.spawn("svc", "pair", *public, env=env, size=(24, 80))
    terminal.expect(r"If the QR below looks broken, enlarge the terminal to \d+ x 2\d\.\r\n")
    terminal.expect("\u2588{20,}")  # the border below
    terminal.expect_exact(pexpect.TIMEOUT, timeout=0.3)
    terminal.sendintr()
    assert finish(terminal)[0] == 130


def test_a_qr_that_does_not_fit_is_not_drawn(linked: CommandHome) -> None:
    told = {"TMPDIR": str(linked.home)}
    terminal = linked.spawn("svc", "pair", "--no-wait", "--brand", "hermes", env=told, size=(12, 60))
    status, shown = finish(terminal)
    assert status == 0
    assert "\u2588" not in shown
    needed = r"The QR needs a terminal of \d+ x \d+, this one is 60 x 12: enlarge it\. Scan it from the PNG or the"
    assert re.search(needed, " ".join(shown.split()))  # wrapped between words
    assert "It is for the Hermes-Relay app for Android.\r\n" in shown
    assert "hermes-relay://pair" in shown


def test_pair_exits_when_a_phone_has_paired(linked: CommandHome) -> None:
    call(linked.port, "POST", "/pairing/register", {"code": "AAAAA1"})
    sign_in(linked.port, pairing_code="AAAAA1", device_name="Another one, a moment before")
    terminal = linked.spawn("svc", "pair", env={"TMPDIR": str(linked.home)}, size=(60, 100))
    terminal.expect(r"Code      ([A-Z0-9]{6})\r\n")
    assert isinstance(terminal.match, re.Match)
    code = terminal.match[1]
    terminal.expect_exact("Waiting for the phone")
    assert len([*linked.home.glob("svc-pair-*.png")]) == 1
    with websocket(linked.port) as phone:
        phone.sign_in(pairing_code=code, device_name="Pixel 8")
        terminal.expect_exact("Pixel 8 is paired.")
        assert finish(terminal)[0] == 0
    assert not [*linked.home.glob("svc-pair-*.png")]  # its credentials were used


def test_no_qr_on_a_terminal(linked: CommandHome) -> None:
    terminal = linked.spawn("svc", "pair", "--no-qr", "--no-wait", env={"TMPDIR": str(linked.home)})
    shown = terminal.read()
    assert "\u2588" not in shown
    assert not list(linked.home.glob("*.png"))


def test_the_configuration_file(lonely: CommandHome) -> None:
    (lonely.home / "svc").mkdir()
    (lonely.home / "svc" / "config.yaml").write_text("platforms: {api_server: {extra: {key: from-yaml, port: 99}}}")
    found = lonely.run("svc", "pair", "--no-relay", "--json", "--host", "api.example").json
    assert found["api"] == {"url": "http://api.example:99", "key": "from-yaml", "own_key": False}


def test_a_mesh(lonely: CommandHome) -> None:
    program = lonely.home / "tailscale"
    program.write_text('#!/bin/sh\necho \'{"Self": {"TailscaleIPs": ["100.64.0.7"], "DNSName": "box.ts.net."}}\'\n')
    program.chmod(0o755)
    env = {"PATH": f"{lonely.home}:/usr/bin:/bin"}
    found = lonely.run("svc", "pair", "--mode", "mesh", "--no-relay", "--json", env=env).json
    assert found["routes"] == [{"role": "mesh", "api_url": "http://100.64.0.7:8642", "relay_url": "ws://100.64.0.7:9"}]


def test_a_code_of_the_phone(linked: CommandHome) -> None:
    done = linked.run("svc-pair", "--register-code", " q7m2zk ", "--ttl", "never", "--transport-hint", "wss")
    assert done.out.startswith(f"Registered Q7M2ZK at http://127.0.0.1:{linked.port}: it works once, for 10 minutes.\n")
    answer = sign_in(linked.port, pairing_code="Q7M2ZK")
    assert (answer["expires_at"], answer["transport_hint"]) == (None, "wss")
    assert linked.run("svc-pair", "--register-code", "AAAAAA", "--json").json["ok"] is True


def test_revoking_a_phone_that_has_the_main_key(linked: CommandHome) -> None:
    key = {"API_SERVER_KEY": "sk-abcdefghijklmnop"}
    for words in (["svc", "pair", "--revoke"], ["svc-relay", "devices", "revoke"]):
        made = linked.run("svc", "pair", "--json", env=key).json["relay"]["code"]
        token = sign_in(linked.port, pairing_code=made)["session_token"]
        more = ("--remote", linked.url, "--token", token) if words[0] == "svc-relay" else ()
        shown = linked.run(*words, token[:8], *more).out
        assert shown.startswith(f"Revoked {token[:8]}: its device has to pair again.")
        assert shown.endswith("Make a new key with: svc key rotate\n")


def test_a_new_key(linked: CommandHome, runtime: str) -> None:
    linked.runtime = runtime
    file = linked.home / "svc" / ".env"
    file.write_text("# mine\nAPI_SERVER_KEY=sk-old-old-old-old\n")
    file.chmod(0o644)
    done = linked.run("svc", "key", "rotate")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"New API key in {file}: sk-")
    key = linked.run("svc", "pair", "--json").json["api"]["key"]
    assert key.startswith("sk-")
    assert file.read_text() == f"# mine\nAPI_SERVER_KEY={key}\n"
    assert file.stat().st_mode & 0o777 == 0o600
    assert key not in done.out
    told = {"ok": True, "file": str(file), "also": None, "in_environment": False, "restart": False, "why": None}
    assert linked.run("svc", "key", "rotate", "--json").json == told
    assert key not in file.read_text()


def test_the_switch(linked: CommandHome) -> None:
    assert linked.run("svc", "relay", "insecure-api-key").out == "API keys over plain HTTP from other hosts: refused\n"
    assert "until the relay restarts" in linked.run("svc-relay", "insecure-api-key", "enable").out
    assert linked.run("svc", "relay", "insecure-api-key", "status", "--json").json["allow_insecure_api_bearer"] is True
    done = linked.run("svc", "relay", "insecure-api-key", "off", "--json")
    assert list(done.json) == sorted(done.json)
    assert done.json["allow_insecure_api_bearer"] is False


def test_bad_settings(lonely: CommandHome) -> None:
    done = lonely.run("svc", "pair", env={"RELAY_PORT": "many"})
    assert (done.code, done.problem) == (2, "RELAY_PORT must be a whole number from 0 to 65535, not 'many'")


def test_pair_imports_no_server_and_no_database(linked: CommandHome) -> None:
    words = [module("svc")[0], "-X", "importtime", "-m", "clients.commands.pair"]
    shown = subprocess.run(words, cwd=ROOT, env=linked.env, capture_output=True, text=True, check=True).stderr
    for heavy in ("servers", "sqlalchemy", "svc_proto.relay", "svc_proto.api", "yaml", "rich"):
        assert not re.search(rf"\| +{heavy}\b", shown), heavy


def test_a_code_without_options_has_the_defaults_of_the_host(linked: CommandHome) -> None:
    env = {"SVC_PAIR_SCOPE": "phone", "SVC_PAIR_TTL": "86400"}
    made = linked.run("svc", "pair", "--json", env=env).json["relay"]
    assert (made["ttl_seconds"], {"terminal", "tui"} & {*made["grants"]}) == (86_400, set())
    chosen = linked.run("svc", "pair", "--json", "--ttl", "2h", "--only", "chat,terminal", env=env).json["relay"]
    assert (chosen["ttl_seconds"], "terminal" in chosen["grants"]) == (7200, True)
