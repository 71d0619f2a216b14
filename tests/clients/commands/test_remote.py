import json
import os
import subprocess
from pathlib import Path

from tests.clients.commands.command_process import CommandHome, finish, module
from tests.servers.program_process import ROOT, TIMEOUT, call, running
from tests.support.background_program import running_service
from tests.support.servers.api_server import Event, ScriptedApi, hello

# --- chat ---------------------------------------------------------------------------------------------------------


TOOLS: list[Event] = [
    ("tool.started", {"tool_name": "screen", "args": {"all": True}}),
    ("tool.completed", {"tool_name": "screen", "result_preview": "3 nodes"}),
]


def test_a_chat_over_tls_with_the_api_of_this_host(lonely: CommandHome, certificate: tuple[Path, Path]) -> None:
    env = {"API_SERVER_SSL_CERT": str(certificate[0]), "API_SERVER_SSL_KEY": str(certificate[1])}
    with running(lonely.home, "servers.api", "--port", "0", env=env) as api:
        port = api.line(r"^api: https://127\.0\.0\.1:(\d+) ")[1]
        done = lonely.run("svc-relay", "chat", "/help", env={**env, "API_SERVER_PORT": port})
        assert (done.code, "/phone" in done.out) == (0, True), done.err
        strange = lonely.run("svc-relay", "chat", "/help", "--api-url", f"https://127.0.0.1:{port}", env=env)
        assert strange.code == 1
        assert "CERTIFICATE_VERIFY_FAILED" in strange.problem
    missing = lonely.run("svc-relay", "chat", "/help", env={"API_SERVER_SSL_CERT": f"{lonely.home}/none.pem"})
    assert missing.code == 2
    assert missing.problem.startswith("API_SERVER_SSL_CERT: cannot use")
    invite = lonely.run("svc", "pair", "--no-relay", "--json", "--host", "api.example", env=env).json
    assert invite["api"]["url"] == "https://api.example:8642"


def test_a_chat(lonely: CommandHome) -> None:
    api = ScriptedApi("k3y")
    api.turns = [[*hello("Hi \u00e9\n")[:3], *TOOLS, *hello("Hi \u00e9\n")[3:]]]
    with running_service(api) as url:
        done = lonely.run("svc-relay", "chat", "hello", "--api-url", url, env={"API_SERVER_KEY": "k3y"})
    assert (done.code, done.out) == (0, "Hi \u00e9\n")
    assert done.err == '→ screen: {"all":true}\n← screen: 3 nodes\n[session s-1]\n'
    assert api.seen[-1][2] == {"message": "hello"}


def test_a_message_from_standard_input(lonely: CommandHome) -> None:
    api = ScriptedApi()
    with running_service(api) as url:
        first = lonely.run("svc-relay", "chat", env={"SVC_API_URL": url}, text="from a pipe\n")
        second = lonely.run("svc-relay", "chat", "-", "--session", "s-1", "--api-url", url, text="and on")
    assert (first.out, first.err) == ("Hello\n", "[session s-1]\n")
    assert (second.out, second.err) == ("Hello\n", "")
    assert [body["message"] for _, path, body in api.seen if path.endswith("stream")] == ["from a pipe\n", "and on"]


def test_json_lines(lonely: CommandHome) -> None:
    with running_service(ScriptedApi()) as url:
        done = lonely.run("svc-relay", "chat", "x", "--json", "--api-url", url)
    events = [json.loads(line) for line in done.out.splitlines()]
    assert all(list(event) == ["event", "data"] for event in events)
    assert events[-1] == {"event": "done", "data": {"state": "final"}}
    assert done.err == ""


def test_a_closed_pipe_is_no_error(lonely: CommandHome) -> None:
    api = ScriptedApi()
    api.turns = [hello("x" * 50_000)]
    with running_service(api) as url:
        words = " ".join([*module("svc-relay"), "chat", "x", "--json", "--api-url", url, "| head -1"])
        done = subprocess.run(
            ["sh", "-c", words], cwd=ROOT, env=lonely.env, capture_output=True, text=True, timeout=TIMEOUT, check=False
        )
        full = lonely.run_full("svc-relay", "chat", "x", "--json", "--api-url", url)
    assert (done.stdout.count("\n"), done.stderr) == (1, "")
    assert (full.code, full.problem) == (1, "the output cannot be written: file too large")


def test_no_color_disables_colour(lonely: CommandHome) -> None:
    api = ScriptedApi()
    with running_service(api) as url:
        for env, coloured in (({}, True), ({"NO_COLOR": "1"}, False)):
            api.turns = [[*TOOLS, *hello()]]
            shown = lonely.spawn("svc-relay", "chat", "x", "--api-url", url, env=env).read()
            assert ("\x1b[2m" in shown) is coloured
            assert "Hello" in shown


# --- the rest -----------------------------------------------------------------------------------------------------


def test_a_phone(home: CommandHome) -> None:
    call(home.port, "POST", "/pairing/register", {"code": "AAAAA1"})
    assert home.run("svc-relay", "bridge", "GET", "/ping").err == "error: no phone is connected (status 503)\n"
    with running(
        home.home, "clients.phone", "--remote", home.url, "--code", "AAAAA1", "--allow", "--master", "on"
    ) as phone:
        phone.line("paired")
        assert home.run("svc-relay", "bridge", "GET", "/ping").json["pong"] is True
        done = home.run("svc-relay", "bridge", "post", "/tap_text", "text=Mail")
        assert (done.code, done.json["ok"]) == (0, True)
        done = home.run("svc-relay", "bridge", "GET", "/nope")
        assert (done.code, isinstance(done.json, dict)) == (1, True)
        assert done.err.endswith("(status 404)\n")
        marker = home.run("svc-relay", "bridge", "GET", "/screenshot").json["media"]
    done = home.run("svc-relay", "media", "get", marker, "-o", str(home.home), "--json")
    assert done.json["content_type"] == "image/png"
    assert Path(done.json["file"]).read_bytes().startswith(b"\x89PNG")


def test_notifications(home: CommandHome) -> None:
    assert home.run("svc-relay", "notifications").out.startswith("No notifications: ")
    assert home.run("svc-relay", "notifications", "--json").json == []


def test_a_file(home: CommandHome) -> None:
    data = os.urandom(5_000_000)
    (home.home / "big.bin").write_bytes(data)
    there, here = str(home.home / "big.bin"), home.home / "copy.bin"
    assert home.run("svc-relay", "media", "get", there, "-o", str(here)).out == (
        f"{here}: 5000000 bytes, application/octet-stream\n"
    )
    assert here.read_bytes() == data
    done = home.run("svc-relay", "media", "get", there, "-o", str(here))
    assert (done.code, done.problem) == (1, f"{here} is there already: --force replaces it, -o names another")
    assert home.run("svc-relay", "media", "get", there, "-o", str(here), "--force").code == 0
    (home.home / "empty").touch()
    assert home.run("svc-relay", "media", "get", str(home.home / "empty"), "-o", str(home.home / "e")).code == 0
    assert (home.home / "e").read_bytes() == b""
    (home.home / "text").write_text("hello")
    assert home.run("svc-relay", "media", "get", str(home.home / "text"), "-o", "-").out == "hello"
    done = home.run("svc-relay", "media", "get", there, "-o", "/nowhere/x")
    assert (done.code, done.problem) == (1, "/nowhere/x cannot be written: no such file or directory")
    os.mkfifo(home.home / "pipe")
    with open(home.home / "piped", "wb") as out, subprocess.Popen(["cat", home.home / "pipe"], stdout=out) as reader:
        assert home.run("svc-relay", "media", "get", there, "-o", str(home.home / "pipe"), "--force").code == 0
        assert reader.wait(TIMEOUT) == 0
    assert (home.home / "piped").read_bytes() == data
    assert (home.home / "pipe").is_fifo()
    done = home.run("svc-relay", "media", "get", there, "-o", str(home.home / "pipe" / "x"))
    assert done.code == 1
    done = home.run("svc-relay", "media", "get", "/etc/passwd", "-o", str(home.home / "p"))
    assert done.code == 1
    assert "(status 403)" in done.problem
    assert not list(home.home.glob(".*.part"))


def test_doctor(home: CommandHome) -> None:
    done = home.run("svc-relay", "doctor")
    assert done.code == 0
    assert done.out.splitlines()[-1] == f"✓ {home.url}: the relay knows this session"
    assert home.run("svc-relay", "doctor", "--json").json["ok"] is True
    (record,) = call(home.port, "GET", "/sessions").body["sessions"]
    call(home.port, "DELETE", f"/sessions/{record['token_prefix']}")
    done = home.run("svc-relay", "doctor", "--remote", home.url)
    assert done.code == 1
    assert "✗" in done.out
    assert "pair again: svc-relay pair" in done.out


def test_completion(lonely: CommandHome) -> None:
    env = {"_SVC_RELAY_COMPLETE": "bash_complete", "COMP_WORDS": "svc-relay dev", "COMP_CWORD": "1"}
    assert lonely.run("svc-relay", env=env).out == "plain,devices\n"


def test_a_question_at_a_terminal(lonely: CommandHome) -> None:
    with running(lonely.home, "servers.api", "--port", "0") as api:
        port = api.line(r"^api: http://127\.0\.0\.1:(\d+) ")[1]
        terminal = lonely.spawn("svc-relay", "chat", "/approve", "--api-url", f"http://127.0.0.1:{port}")
        terminal.expect_exact("A demonstration: it does nothing. demo_ask {}".replace(". ", ".\r\n"))
        terminal.expect_exact("May it? [once/session/always/deny] ")
        terminal.sendline("y")
        terminal.expect_exact("you allowed it")
        assert finish(terminal)[0] == 0
        piped = lonely.run("svc-relay", "chat", "/approve", "--api-url", f"http://127.0.0.1:{port}", text="y")
        assert "cannot be requested here" in piped.out  # without a terminal there is no question
