"""Tests of terminals through the relay, with tmux and without."""

import os
import shutil
import sys
from pathlib import Path

import psutil
import pytest

from tests.loops.clients import WebSocketTestClient
from tests.loops.environment import Environment, bearer
from tests.loops.terminal_client import TerminalClient, runs

TMUX = shutil.which("tmux")
KINDS = ["plain", "tmux"] if TMUX else ["plain"]
DISCONNECTS = 100  # on one loop; fewer on the others show the same
MIB = 1024 * 1024


@pytest.fixture
def plain(hermetic: None, host: Environment) -> Environment:
    host.start_relay(terminal_tmux=False, user_shell="/bin/sh")
    return host


@pytest.fixture(params=KINDS)
def either(request: pytest.FixtureRequest, hermetic: None, host: Environment) -> Environment:
    """Return an environment with a relay: one parameter without tmux and, where tmux is installed, one with it."""
    host.start_relay(terminal_tmux=request.param == "tmux", user_shell="/bin/sh")
    return host


def terminal_client(world: Environment, name: str = "Desk") -> TerminalClient:
    return TerminalClient(world.pair(name))


# --- with tmux and without ---


def test_a_shell(either: Environment) -> None:
    client = terminal_client(either)
    attached = client.attach(cols=80, rows=24)
    assert attached["reattach"] is False
    assert runs(attached["pid"])
    assert "42-fine" in client.run("echo $((6 * 7))-fine")
    client.type("exit\r")
    ended = client.receive("detached")
    status = {} if attached["tmux_available"] else {"exit_status": 0}
    assert ended["payload"] == {"session_name": "main", "reason": "eof", **status}
    either.eventually(lambda: not runs(attached["pid"]))


def test_the_shell_gets_the_terminal_size(either: Environment) -> None:
    client = terminal_client(either)
    client.attach(cols=97, rows=31)
    assert "31 97" in client.run("stty size")
    client.send("resize", session_name="main", cols=121, rows=43)
    client.type("echo re''sized\r")
    client.until("resized")
    client.type("while [ \"$(stty size)\" != '43 121' ]; do :; done; echo se''en\r")
    client.until("seen")
    again = client.attach(cols=90, rows=20)
    assert again["reattach"] is True
    client.type("while [ \"$(stty size)\" != '20 90' ]; do :; done; echo se''en\r")
    client.until("seen")


def test_control_c_interrupts_a_command(either: Environment) -> None:
    client = terminal_client(either)
    client.attach()
    client.type("sh -c 'echo star''\"\"ted; exec sleep 1000'; echo \"r\"c=$?\r")
    client.until("started")
    client.type("\x03")
    client.type("echo aft''er\r")
    client.until("after")


def test_input_right_after_an_attach(either: Environment) -> None:
    client = terminal_client(either)
    client.screens["main"] = ""
    client.send("attach", session_name="main", shell="/bin/sh")
    for letter in "echo ear''ly\r":
        client.send("input", data=letter)
    client.until("early")
    assert client.receive("attached")["payload"]["session_name"] == "main"


def test_the_relay_stops(either: Environment) -> None:
    client = terminal_client(either)
    pid = client.attach()["pid"]
    client.run("true")
    either.relay.begin_stop()
    assert client.receive("detached")["payload"] == {"session_name": "main", "reason": "server shutdown"}
    client.ws.wait_closed()
    client.ws.wire.close()
    assert either.relay.exit_code() == 0
    assert not runs(pid)


# --- bare shells: every byte as it was written ---


def test_20000_lines_arrive_complete_and_in_order(plain: Environment) -> None:
    client = terminal_client(plain)
    client.attach()
    client.run("stty -echo")
    shown = client.run("seq 1 20000")
    assert shown[shown.index("1\r\n") :].split("\r\n")[:20_000] == [str(number) for number in range(1, 20_001)]


def test_500_kilobytes_without_a_broken_character(either: Environment) -> None:
    """A bare shell's output arrives unchanged; through tmux it has no broken character."""
    client = terminal_client(either)
    tmux = client.attach()["tmux_available"]
    client.run("stty -echo")
    text = "aé€😀" * 50_000
    script = "import sys; sys.stdout.buffer.write('aé€😀'.encode() * 50000)"
    shown = client.run(f'{sys.executable} -c "{script}"', timeout=30.0)
    assert "\ufffd" not in shown
    assert "aé€😀" in shown if tmux else text in shown


COUNT = """
import os
print("ready", flush=True)
n = 0
while n < 1 << 20:
    n += len(os.read(0, 65536))
print("all there")
"""


def test_a_megabyte_pasted(plain: Environment) -> None:
    client = terminal_client(plain)
    client.attach()
    Path(os.environ["HOME"], "count.py").write_text(COUNT)
    client.type(f"stty raw -echo; {sys.executable} ~/count.py; stty sane\r")
    client.until("ready")
    client.type("x" * MIB)
    client.until("all there", timeout=30.0)


def test_a_shell_that_does_not_read_its_input(plain: Environment) -> None:
    client = terminal_client(plain)
    client.attach()
    client.type("stty raw -echo; echo sle''eping; exec sleep 1000\r")
    client.until("sleeping")
    for _ in range(40):
        client.type("x" * 65_536)
    refused = client.receive("error")
    assert refused["payload"]["session_name"] == "main"
    client.send("kill", session_name="main")
    assert client.receive("detached")["payload"]["reason"] == "client kill"


def test_abrupt_disconnects_leave_no_process(either: Environment, full: bool) -> None:
    """After disconnects, no process of a bare shell runs; with tmux, no tmux client."""
    pids: list[int] = []
    token = either.pair().token
    disconnects = DISCONNECTS if full else DISCONNECTS // 10
    for number in range(disconnects):
        ws = either.websocket()
        ws.sign_in(session_token=token)
        client = TerminalClient(ws)
        attached = client.attach()
        pids.append(attached["pid"])
        if number % 10 == 0 and not attached["tmux_available"]:  # with a program in the foreground
            client.type("sh -c 'echo $$ is''id; exec sleep 1000'\r")
            pids.append(int(client.until(r"\d+ isid").split()[-2]))
        ws.wire.abort()
    assert len(pids) >= disconnects
    either.eventually(lambda: not any(runs(pid) for pid in pids))


def test_a_flood_does_not_delay_others(either: Environment) -> None:
    phone, noisy = either.fake_phone(), terminal_client(either, "Noisy")
    noisy.attach()
    noisy.type("yes\r")
    noisy.until("y\r*\ny\r*\n")
    before = resident()
    for _ in range(20):
        ping(either, phone)  # the client of the flood does not read
    assert resident() - before < 64 * MIB
    noisy.ws.send_envelope("system", "ping", {"ts": 1}, "p")
    noisy.receive("pong")
    noisy.type("\x03")
    noisy.type("echo aft''er\r")
    noisy.until("after", timeout=30.0)


def ping(world: Environment, phone: WebSocketTestClient) -> None:
    """Send a command through the relay to a phone, answer it as the phone, and check that the answer arrives."""
    calling = world.client().begin("GET", "/ping", headers=bearer(phone.token))
    phone.respond(phone.command()["request_id"], {"pong": True})
    assert calling.finish().status == 200
    calling.wire.close()


def resident() -> int:
    """Return the resident memory of this process, which contains the relay, in bytes."""
    return psutil.Process().memory_info().rss


if TMUX is not None:

    @pytest.fixture
    def tmux(hermetic: None, host: Environment) -> Environment:
        host.start_relay(user_shell="/bin/sh")
        return host

    def test_detach_and_re_attach_keep_the_shell(tmux: Environment) -> None:
        client = terminal_client(tmux)
        attached = client.attach()
        assert (attached["tmux_available"], attached["reattach"]) == (True, False)
        client.run("KEPT=val''ue")
        client.send("detach", session_name="main")
        assert client.receive("detached")["payload"]["reason"] == "client detach"
        again = client.attach()
        assert again["reattach"] is True
        assert "KEPT=val" in again["replay"]
        client.type('echo "it is $KEPT"\r')
        client.until("it is value")

    def test_a_session_detached_at_once_exists(tmux: Environment) -> None:
        client = terminal_client(tmux)
        for number in range(5):
            name = f"brief{number}"
            assert client.attach(name)["reattach"] is False
            client.send("detach", session_name=name)
            client.receive("detached")
        for number in range(5):
            again = client.attach(f"brief{number}")
            assert again["reattach"] is True
            client.send("kill", session_name=f"brief{number}")
            client.receive("detached")

    def test_a_session_killed_at_once_is_not_recreated(tmux: Environment) -> None:
        client = terminal_client(tmux)
        for number in range(5):
            client.attach(f"brief{number}")
            client.send("kill", session_name=f"brief{number}")
            assert client.receive("detached")["payload"]["reason"] == "client kill"
        client.attach()  # each client has started by now and found no session
        client.run("true")
        client.send("list")
        rows = client.receive("sessions")["payload"]["sessions"]
        assert [row["name"] for row in rows if row["name"].startswith("brief")] == []

    def test_a_session_outlives_its_client(tmux: Environment) -> None:
        client = terminal_client(tmux)
        pid = client.attach()["pid"]
        client.run("KEPT=value")
        client.ws.wire.abort()
        tmux.eventually(lambda: not runs(pid))
        other = terminal_client(tmux, "Other")
        assert other.attach()["reattach"] is True
        other.type('echo "it is $KEPT"\r')
        other.until("it is value")

    def test_one_session_with_two_clients(tmux: Environment) -> None:
        first, second = terminal_client(tmux, "First"), terminal_client(tmux, "Second")
        first.attach()
        second.attach()
        first.type("echo mir''ror\r")
        first.until("mirror")
        second.until("mirror")

    def test_the_list_and_kill_by_exact_name(tmux: Environment) -> None:
        client = terminal_client(tmux)
        for name in ("work", "work2"):
            client.attach(name)
            client.run("true", name)  # the session exists as soon as tmux has started
            client.send("detach", session_name=name)
            client.receive("detached")
        client.attach("work2")
        client.send("list")
        rows = {row["name"]: row for row in client.receive("sessions")["payload"]["sessions"]}
        assert (rows["work"]["live"], rows["work2"]["live"], rows["work2"]["owned_by_client"]) == (False, True, True)
        assert rows["work2"]["tmux_name"] == "svc-work2"
        client.send("kill", session_name="wor")
        assert client.receive("error")["payload"]["session_name"] == "wor"
        client.send("kill", session_name="work")
        assert client.receive("detached")["payload"] == {"session_name": "work", "reason": "client kill"}
        client.send("kill", session_name="work2")
        assert client.receive("detached")["payload"] == {"session_name": "work2", "reason": "client kill"}
        client.send("list")
        assert client.receive("sessions")["payload"]["sessions"] == []
