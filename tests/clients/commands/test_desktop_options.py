import json
import os
import random
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from clients.commands.session_file import DAMAGED_NAME, LOCK_NAME, SessionFile
from runtimes.failures import HostError
from svc_proto.cli.session_store import FILE_NAME, UpdateSession, parse_sessions
from svc_proto.machines.pairing_payload import parse_invite
from tests.clients.commands.command_process import CommandHome, code_for, finish, paired
from tests.servers.program_process import ROOT, running_relay


def stored(linked: CommandHome) -> dict[str, object]:
    found: dict[str, object] = json.loads((linked.home / "svc" / FILE_NAME).read_text())["sessions"]
    return found


# --- pair ---------------------------------------------------------------------------------------------------------


def test_by_code(linked: CommandHome, runtime: str) -> None:
    linked.runtime = runtime
    done = linked.run("svc-relay", "pair", "q7m-2zk", "--remote", linked.url, "--name", "My desk", "--json")
    assert "pairing code is invalid" in done.problem
    code_for(linked)
    done = linked.run("svc-relay", "pair", "q7m-2zk", "--remote", linked.url, "--name", "My desk", "--json")
    assert done.json["ok"] is True
    (record,) = linked.run("svc-relay", "devices", "--json").json
    assert (record["device_name"], record["client_surface"], record["is_current"]) == ("My desk", "desktop", True)
    assert record["token_prefix"] == done.json["token_prefix"]


def test_the_file_is_ours_alone(linked: CommandHome) -> None:
    token = paired(linked)
    file = linked.home / "svc" / FILE_NAME
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700
    record = json.loads(file.read_text())["sessions"][linked.url]
    assert record["token"] == token
    assert record["ttl_expires_at"] - record["paired_at"] == pytest.approx(604_800, abs=2)  # over plain ws
    shown = linked.run("svc-relay", "status")
    assert token not in shown.out
    assert "  Token     (redacted)\n" in shown.out
    assert token in linked.run("svc-relay", "status", "--reveal-tokens").out


CODE = "Pairing code: "
SIX = "a pairing code has six characters of A-Z and 0-9"


def at_prompts(linked: CommandHome, *dialogue: str, remote: str | None = None) -> int | None:
    """Run `svc-relay pair` on a terminal: expect the texts, type those behind `> `; return the exit status."""
    terminal = linked.spawn("svc-relay", "pair", *(() if remote == "" else ("--remote", remote or linked.url)))
    for text in dialogue:
        if text.startswith("> "):
            terminal.sendline(text[2:])
        else:
            terminal.expect_exact(text)
    return finish(terminal)[0]


def test_pairing_by_prompt_accepts_bracketed_paste(linked: CommandHome) -> None:
    code_for(linked)
    tries = (CODE, "> 12345", SIX, CODE, "> AAAAAA", "the pairing code is invalid", CODE)
    assert at_prompts(linked, *tries, "> \x1b[200~q7m-2zk\x1b[201~", "Paired with ") == 0
    assert list(stored(linked)) == [linked.url]


def test_an_invite_at_the_prompt(linked: CommandHome) -> None:
    shown = f"Paired with {linked.url}"
    assert at_prompts(linked, CODE, f"> {invite(linked)}", shown, remote="ws://127.0.0.1:9") == 0


def test_three_tries(linked: CommandHome) -> None:
    assert at_prompts(linked, *(CODE, "> nope") * 3, f"error: {SIX}") == 2


def test_the_prompt_includes_the_address(linked: CommandHome) -> None:
    code = code_for(linked)
    assert at_prompts(linked, "Relay address", f"> {linked.url} ", CODE, f"> {code}", "Paired with ", remote="") == 0


def invite(linked: CommandHome) -> str:
    """Return the pairing URL of a new invite for the public URL `http://127.0.0.1:8642`."""
    public = ("--public-url", "http://127.0.0.1:8642", "--mode", "public")
    url: str = linked.run("svc", "pair", "--json", *public).json["pairing_url"]
    return url


@pytest.mark.parametrize("form", ["url", "json", "variable", "argument", "stdin"])
def test_by_qr(linked: CommandHome, form: str) -> None:
    url = invite(linked)
    arguments = {
        "url": ["--pair-qr", url],
        "json": ["--pair-qr", json.dumps(parse_invite(url)), "--remote", "ws://127.0.0.1:9", "WRONGG"],
        "variable": [],
        "argument": [url],
        "stdin": ["--pair-qr", "-"],
    }[form]
    variables = {"SVC_RELAY_PAIR_QR": url, "SVC_RELAY_CODE": "WRONGG", "SVC_RELAY_URL": "ws://127.0.0.1:9"}
    env = variables if form == "variable" else {}
    done = linked.run("svc-relay", "pair", *arguments, "--json", env=env, text=url)
    assert done.code == 0, done.err
    assert (done.json["url"], done.json["endpoint_role"]) == (linked.url, "public")


def test_an_option_beats_a_variable(linked: CommandHome) -> None:
    code_for(linked)
    env = {"SVC_RELAY_PAIR_QR": "nonsense", "SVC_RELAY_URL": "ws://127.0.0.1:9"}
    assert linked.run("svc-relay", "pair", "--code", "Q7M2ZK", "--remote", linked.url, env=env).code == 0


# --- the session file ---------------------------------------------------------------------------------------------


def test_many_writers_lose_nothing(tmp_path: Path) -> None:
    writers = [
        threading.Thread(target=lambda n=n: SessionFile(tmp_path).change(UpdateSession(f"ws://h:{n}", {"token": "t"})))
        for n in range(12)
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert len(parse_sessions(SessionFile(tmp_path).read())) == 12


KILLED = """
import sys
from pathlib import Path
from clients.commands.session_file import SessionFile
from svc_proto.cli.session_store import UpdateSession
file = SessionFile(Path(sys.argv[1]))
print("ready", flush=True)
for n in range(1_000_000):
    file.change(UpdateSession("ws://h:1", {"token": str(n), "server_version": "x" * 100_000}))
"""


def test_killed_while_writing(tmp_path: Path, full: bool) -> None:
    """A writer of the session file is killed at random moments: the file is complete each time, and can be changed."""
    chance = random.Random(20)
    for _ in range(20 if full else 6):
        with subprocess.Popen(
            [sys.executable, "-c", KILLED, str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE, text=True
        ) as writer:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "ready\n"
            while not (tmp_path / FILE_NAME).exists():
                pass
            with suppress(subprocess.TimeoutExpired):
                writer.wait(chance.uniform(0.0, 0.03))
            os.kill(writer.pid, signal.SIGKILL)
        (found,) = parse_sessions((tmp_path / FILE_NAME).read_text()).values()
        assert found.server_version == "x" * 100_000
    SessionFile(tmp_path).change(UpdateSession("ws://h:2", {"token": "t"}))
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([FILE_NAME, LOCK_NAME])
    assert len(parse_sessions(SessionFile(tmp_path).read())) == 2


def test_a_lock_that_is_never_released(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import fcntl

    monkeypatch.setattr("clients.commands.session_file.LOCK_TIMEOUT", 0.05)
    with open(tmp_path / LOCK_NAME, "w") as holder:
        fcntl.flock(holder, fcntl.LOCK_EX)
        with pytest.raises(HostError, match="another program has locked the session file"):
            SessionFile(tmp_path).change(UpdateSession("ws://h", {"token": "t"}))


def test_a_damaged_file_is_kept_aside(linked: CommandHome) -> None:
    folder = linked.home / "svc"
    folder.mkdir(exist_ok=True)
    (folder / FILE_NAME).write_text('{"sessions": {')
    assert linked.run("svc-relay", "status", "--json").json == {}
    paired(linked)
    assert (folder / DAMAGED_NAME).read_text() == '{"sessions": {'


def test_a_full_disk(linked: CommandHome) -> None:
    code_for(linked)
    done = linked.run_full("svc-relay", "pair", "Q7M2ZK", "--remote", linked.url, room=100)
    assert done.code == 1
    assert done.problem.startswith("paired, but the session cannot be stored: file too large; make room, revoke ")
    assert not (linked.home / "svc" / FILE_NAME).exists()


def test_a_home_that_cannot_be_read(lonely: CommandHome) -> None:
    (lonely.home / "svc").mkdir()
    (lonely.home / "svc" / FILE_NAME).mkdir()
    done = lonely.run("svc-relay", "status")
    assert (done.code, done.problem) == (1, f"{lonely.home}/svc/{FILE_NAME} cannot be read: is a directory")


# --- devices ------------------------------------------------------------------------------------------------------


def test_devices(linked: CommandHome) -> None:
    token = paired(linked)
    shown = linked.run("svc-relay", "devices").out.splitlines()
    assert shown[0].split() == ["PREFIX", "DEVICE", "DETAILS", "LAST", "SEEN", "EXPIRES", "TRANSPORT", "GRANTS"]
    assert shown[1].startswith(f"{token[:8]}  ")
    assert "(this one)" in shown[1]
    _, narrow = finish(linked.spawn("svc-relay", "devices", size=(24, 60)))
    assert max(map(len, narrow.splitlines())) <= 60
    assert narrow.splitlines()[0] == token[:8]
    done = linked.run("svc-relay", "devices", "extend", token[:8], "--ttl", "90d")
    assert done.out == f"Extended {token[:8]}: expires in 90d.\n"
    status = linked.run("svc-relay", "status", "--json").json[linked.url]
    assert status["ttlExpiresAt"] - status["pairedAt"] == pytest.approx(90 * 86_400, abs=30)
    env = {"SVC_RELAY_URL": linked.url, "SVC_RELAY_TOKEN": token}
    named = linked.run("svc-relay", "devices", env=env)
    assert (named.code, token in named.out + named.err) == (0, False)
    assert linked.run("svc-relay", "devices", "--json", "extend", token[:8]).json["token_prefix"] == token[:8]
    done = linked.run("svc-relay", "devices", "extend", "zzzzzzzz")
    assert (done.code, done.problem) == (1, "no session has a token that begins with 'zzzzzzzz': see svc-relay devices")
    done = linked.run("svc-relay", "devices", "revoke", token[:8])
    assert done.out == f"Revoked {token[:8]}: its device has to pair again. It was this desktop's own.\n"
    assert linked.run("svc-relay", "status", "--json").json == {}
    assert "does not know this session any more: pair again" in linked.run("svc-relay", "devices", env=env).problem


def tls(files: tuple[Path, Path]) -> dict[str, str]:
    """Return variables by which a relay uses this certificate, and clients trust it."""
    return {"RELAY_SSL_CERT": str(files[0]), "RELAY_SSL_KEY": str(files[1]), "SSL_CERT_FILE": str(files[0])}


# --- pins ---------------------------------------------------------------------------------------------------------


def test_a_changed_certificate(tmp_path: Path, certificate: tuple[Path, Path], other: tuple[Path, Path]) -> None:
    linked = CommandHome(tmp_path, more=tls(certificate))
    with running_relay(tmp_path, env=tls(certificate)) as (_, linked.port):
        url = f"wss://127.0.0.1:{linked.port}"
        linked.run("svc-pair", "--register-code", "Q7M2ZK")
        assert "Pin" in linked.run("svc-relay", "pair", "Q7M2ZK", "--remote", url).out
        pin = linked.run("svc-relay", "status", "--json").json[url]["certPinSha256"]
        assert pin.startswith("sha256/")
        # The pin alone is enough from now on: the issuer of the certificate does not matter.
        assert linked.run("svc-relay", "devices", env={"SSL_CERT_FILE": "/dev/null"}).code == 0
    linked.more = tls(other)
    with running_relay(tmp_path, env=tls(other), port=linked.port):
        linked.run("svc-pair", "--register-code", "AAAAA1")
        for arguments in (["devices"], ["pair", "AAAAA1", "--remote", url]):
            done = linked.run("svc-relay", *arguments)
            assert done.code == 1
            assert "shows another certificate than when you paired" in done.problem
            assert "svc-relay pair --pair-qr" in done.problem
        assert linked.run("svc-relay", "status", "--json").json[url]["certPinSha256"] == pin
        assert linked.run("svc-relay", "pair", "AAAAA1", "--remote", url, "--new-certificate").code == 0
        assert linked.run("svc-relay", "status", "--json").json[url]["certPinSha256"] != pin
        assert linked.run("svc-relay", "devices").code == 0


def test_an_untrusted_certificate(tmp_path: Path, certificate: tuple[Path, Path]) -> None:
    env = {"RELAY_SSL_CERT": str(certificate[0]), "RELAY_SSL_KEY": str(certificate[1])}
    with running_relay(tmp_path, env=env) as (_, port):
        done = CommandHome(tmp_path, port).run("svc-relay", "pair", "Q7M2ZK", "--remote", f"wss://127.0.0.1:{port}")
    assert done.code == 1
    assert "cannot be trusted: TLS: CERTIFICATE_VERIFY_FAILED; for a certificate of your own, set SSL_CERT_FILE" in (
        done.problem
    )
