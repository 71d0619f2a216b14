"""Tests of `svc status`, `top`, `logs`, `down` and `drain`, for servers of this home on any port."""

import os
import re
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from clients.commands.quick_probe import SECRET_FIELD, SECRET_FILE, probe, probe_json
from clients.commands.svc import main
from runtimes.service_home.server_registry import HomeClaim, lock_home
from svc_proto.cli.cluster_nodes import ServiceNode, ServiceNodes
from svc_proto.schema.json_object import JsonObject
from svc_proto.service_clients.local_secret import HEADER, LOCAL_SECRET
from tests.clients.commands.command_process import CommandHome, CommandRun, finish
from tests.servers.program_process import LOCAL, call, ports_of, running, websocket

STOP = "clients.commands.stop_servers"


def test_status_logs_and_down(lonely: CommandHome) -> None:
    idle = lonely.run("svc", "status")
    assert (idle.code, idle.out) == (1, f"Nothing runs on {lonely.home}/svc: svc up\n")
    assert lonely.run("svc", "top").problem == f"nothing runs on {lonely.home}/svc: svc up"
    assert lonely.run("svc", "down").out == f"Nothing runs on {lonely.home}/svc.\n"
    assert lonely.run("svc", "logs").problem.startswith(f"there are no logs in {lonely.home}/svc/log: ")
    env = {"SVC_MODEL": "jarvis", "SVC_MODEL_BASE_URL": "http://127.0.0.1:9/v1", "RELAY_LOCAL_TRUST": "secret",
           "SVC_DASHBOARD_PASSWORD": "correct horse"}  # fmt: skip
    with running(lonely.home, "servers", *LOCAL, "--no-qr", env=env) as servers:
        port = ports_of(servers)["relay"]
        secret = {SECRET_FIELD: (lonely.home / "svc" / SECRET_FILE).read_text()}
        code = call(port, "POST", "/pairing", {}, headers=secret).body["code"]
        with websocket(port) as phone:
            phone.sign_in(pairing_code=code, device_name="My\x1b[2J phone")
            found = lonely.run("svc", "status")
            assert (found.code, found.err) == (0, "")
            lines = found.out.splitlines()
            assert " ".join(line.split()[0] for line in lines) == "Relay API Dashboard Model Devices online ✗ start"
            assert lines[0].startswith(f"Relay      http://127.0.0.1:{port}  up ")
            assert lines[3] == "Model      jarvis"
            where = "http://127.0.0.1:9/v1 (SVC_MODEL_BASE_URL in the environment)"
            why = f"the model's server at {where} cannot be reached: accepts no connection"
            assert lines[6] == f"✗ Model: {why}   [model_unreachable]"
            assert lines[4] == "Devices    1 paired, 1 online"
            assert re.fullmatch(r"  online   [0-9a-f]{8}  My \[2J phone", lines[5])
        shown = lonely.run("svc", "status", "--json").json
        assert shown["servers"]["api"]["answers"] is True
        assert [each["code"] for each in shown["problems"]] == ["model_unreachable"]
        assert shown["servers"]["relay"]["pid"] == servers.process.pid
        assert shown["devices"][0]["online"] is False
        top_of(lonely)
        logged = lonely.run("svc", "logs", "-n", "2").out.splitlines()
        assert len(logged) == 2
        assert "INFO svc" in logged[-1]
        stopped = lonely.run("svc", "down")
        assert (stopped.code, stopped.out) == (0, "Stopped: relay, api, dashboard.\n")
        assert servers.wait() == 0
    assert (lonely.home / "svc" / "log" / "relay.log").stat().st_mode & 0o777 == 0o600


def top_of(home: CommandHome) -> None:
    """Check the output of `svc top` as JSON, as text and on a terminal, beside servers with one paired phone."""
    shown = home.run("svc", "top", "--json", "--every", "0.1").json
    assert (shown["servers"], shown["sessions"], shown["requests"]) == (["relay", "api", "dashboard"], 1, 0)
    assert shown["memory"] > 1e6
    lines = home.run("svc", "top", "--every", "0.1").out.splitlines()  # without a terminal: once
    assert [line.split()[:2] for line in lines[:2]] == [["WHAT", "NOW"], ["Phones", "0"]]
    terminal = home.spawn("svc", "top", "--every", "0.1")
    terminal.setwinsize(24, 80)
    terminal.expect_exact("relay up ")
    terminal.expect_exact("1 paired")
    terminal.expect_exact("q leaves")
    terminal.send("q")
    assert finish(terminal)[0] == 0
    terminal = home.spawn("svc", "top")
    terminal.expect_exact("q leaves")
    terminal.sendintr()
    assert finish(terminal)[0] == 130


def test_logs_follow(lonely: CommandHome) -> None:
    folder = lonely.home / "svc" / "log"
    folder.mkdir(parents=True)
    (folder / "relay.log").write_text("2026-01-01T00:00:02.000Z INFO svc two\nTraceback\n")
    (folder / "api.log").write_text('{"time": "2026-01-01T00:00:01.000Z", "event": "one"}\n')
    terminal = lonely.spawn("svc", "logs", "-f")
    terminal.expect_exact("one")
    terminal.expect_exact("two")
    terminal.expect_exact("Traceback")
    with (folder / "relay.log").open("a") as file:
        file.write("2026-01-01T00:00:03.000Z INFO svc thr")
        file.flush()
        file.write("ee\x1b[2J\n")
    os.rename(folder / "relay.log", folder / "relay.log.1")
    (folder / "relay.log").write_text("2026-01-01T00:00:04.000Z INFO svc four\n")
    terminal.expect_exact("three[2J")  # written before the file was replaced
    terminal.expect_exact("four")
    terminal.sendintr()
    terminal.wait()
    assert terminal.exitstatus == 130


class ServerHome:
    """Home of this process, in which the test holds the roles of servers, and runs `svc`; `killed` are the signals."""

    def __init__(self, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.path = path
        self.held: dict[str, HomeClaim] = {}
        self.killed: list[int] = []
        self._capsys = capsys

    def claim(self, *roles: str, **more: object) -> None:
        """Hold these roles as servers that run, at addresses without a listener."""
        for role in roles:
            self.held[role] = lock_home(self.path, role, version="1")
            self.held[role].publish({"host": "::", "port": 1, "inside": f"http://{role}:1", **more})

    def release(self, *_: object) -> None:
        while self.held:
            self.held.popitem()[1].release()

    def run(self, *words: str) -> CommandRun:
        with pytest.raises(SystemExit) as caught:
            main.main(words)
        shown = self._capsys.readouterr()
        assert isinstance(caught.value.code, int)
        return CommandRun(caught.value.code, shown.out, shown.err)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[ServerHome]:
    monkeypatch.setenv("SVC_HOME", str(tmp_path))
    made = ServerHome(tmp_path, capsys)
    monkeypatch.setattr(f"{STOP}.os.kill", lambda pid, signum: made.killed.append(signum))
    yield made
    made.release()


def test_a_server_that_does_not_answer(home: ServerHome) -> None:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        port = sock.getsockname()[1]
    held = home.held["relay"] = lock_home(home.path, "relay", version="1")
    idle = home.run("status")
    assert (idle.code, idle.out) == (1, "relay starts or stops\n")
    held.publish({"host": "::", "port": port, "inside": f"http://127.0.0.1:{port}"})
    (home.path / ".env").write_text("API_SERVER_KEY=sk-0123456789abcdef\n")
    done = home.run("status")
    assert done.code == 1
    lines = done.out.splitlines()
    assert lines[0].startswith(f"Relay      http://[::]:{port}  DOES NOT ANSWER, pid {os.getpid()}")
    assert max(map(len, lines[:3])) <= 60
    assert lines[1:3] == ["API        does not run", "Dashboard  does not run"]
    assert [line.partition("[")[2] for line in lines[3::2]] == ["api_down]", "server_silent]", "version_differs]"]
    assert home.run("status", "--json").json["devices"] is None
    (home.path / ".env").unlink()  # without a key the relay runs alone by choice
    problems = home.run("status", "--json").json["problems"]
    assert [each["code"] for each in problems] == ["server_silent", "version_differs"]


def test_a_server_that_does_not_stop(home: ServerHome, monkeypatch: pytest.MonkeyPatch) -> None:
    home.claim("api")
    monkeypatch.setattr(f"{STOP}.STOP_TIMEOUT", 0.0)
    stopped = home.run("down")
    assert (stopped.code, "has not stopped" in stopped.err) == (1, True)

    def forbidden(pid: int, signum: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(f"{STOP}.os.kill", forbidden)
    assert home.run("down").problem == f"process {os.getpid()} cannot be told to stop: operation not permitted"


def service(redis: bool = True, nodes: int = 2, load: str = "phones") -> ServiceNodes:
    rows = [ServiceNode(url=f"http://10.0.0.{n}:8767", since=1.0, load=3) for n in range(nodes)]
    return ServiceNodes(redis=redis, load=load, nodes=rows)


@pytest.mark.parametrize(
    ("roles", "nodes", "reason"),
    [
        (["relay"], None, "no other node is reachable, so the relay cannot be drained: svc down stops it"),
        (["relay"], service(nodes=1), "no other node is reachable, so the relay cannot be drained: svc down stops it"),
        (["relay"], service(redis=False), "no other node is reachable, so the relay cannot be drained"),
        (["dashboard"], None, "nothing to drain: svc down stops the dashboard"),
        (["relay", "api"], service(nodes=1), "the api cannot be drained"),  # and no plan for the relay is printed
    ],
)
def test_a_server_without_another_node_is_not_drained(
    home: ServerHome, monkeypatch: pytest.MonkeyPatch, roles: list[str], nodes: ServiceNodes | None, reason: str
) -> None:
    both = len(roles) > 1
    monkeypatch.setattr(f"{STOP}.nodes_at", lambda url, home: service(nodes=3) if both and "relay" in url else nodes)
    monkeypatch.setattr(f"{STOP}.probe_json", lambda url, path, home: None)
    assert home.run("drain").out == f"Nothing runs on {home.path}.\n"
    home.claim(*roles)
    refused = home.run("drain")
    assert (refused.code, reason in refused.problem, home.killed) == (1, True, [])


def test_the_workers_of_this_host_are_no_other_nodes(home: ServerHome, monkeypatch: pytest.MonkeyPatch) -> None:
    """`svc drain` fails if all other nodes are workers of this host, since they stop together."""
    found = service(nodes=2)
    monkeypatch.setattr(f"{STOP}.nodes_at", lambda url, home: found)
    monkeypatch.setattr(f"{STOP}.os.kill", home.release)
    home.claim("relay", workers=2)
    refused = home.run("drain")
    assert (refused.code, "no other node is reachable" in refused.err) == (1, True)
    found = service(nodes=3)
    drained = home.run("drain")
    assert (drained.code, "The relay leaves its work to 1 other node." in drained.out) == (0, True)


@pytest.mark.parametrize(
    ("clients", "nodes", "line"),
    [
        (None, 3, "The relay leaves its work to 2 other nodes."),
        (1, 2, "The relay moves 1 client to 1 other node."),
        (5, 2, "The relay moves 5 clients to 1 other node."),
    ],
)
def test_drain_stops_all_servers_of_the_home(
    home: ServerHome, monkeypatch: pytest.MonkeyPatch, clients: int | None, nodes: int, line: str
) -> None:
    home.claim("relay", "api", "dashboard")
    health = None if clients is None else JsonObject({"clients": clients})
    monkeypatch.setattr(f"{STOP}.nodes_at", lambda url, home: service(nodes=nodes))
    monkeypatch.setattr(f"{STOP}.probe_json", lambda url, path, home: health)
    monkeypatch.setattr(f"{STOP}.os.kill", home.release)
    done = home.run("drain")
    lines = done.out.splitlines()
    assert (done.code, lines[0]) == (0, line)
    assert lines[1].startswith("The api leaves its work to ")
    assert re.fullmatch(r"Drained: relay, api, dashboard, in \d\.\d s\.", lines[2])


def test_the_local_secret_has_the_name_of_the_relay() -> None:
    assert (SECRET_FILE, SECRET_FIELD.encode()) == (LOCAL_SECRET, HEADER)


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        (b'HTTP/1.1 200 OK\r\n\r\n{"a": 1}', {"a": 1}),
        (b'HTTP/1.1 404 Not Found\r\n\r\n{"a": 1}', None),
        (b"HTTP/1.1 200 OK\r\n\r\n[1]", None),
        (b"HTTP/1.1 200 OK\r\n\r\n\xff", None),
        (b"", None),
    ],
)
def test_valid_and_invalid_health_responses(tmp_path: Path, answer: bytes, found: dict[str, int] | None) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            sock, _ = server.accept()
            with sock:
                sock.recv(4096)
                sock.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        assert probe_json(f"http://127.0.0.1:{server.getsockname()[1]}", "/x", tmp_path) == found
        thread.join()


def test_probe_of_a_host_with_other_letters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    addresses: list[object] = []
    ours, peer = socket.socketpair()

    def connect(address: object, timeout: float) -> socket.socket:
        addresses.append(address)
        return ours

    monkeypatch.setattr(socket, "create_connection", connect)
    with peer:
        peer.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        peer.shutdown(socket.SHUT_WR)
        assert probe("http://häuser.example:8", "/x", tmp_path) == (200, b"")
        assert b"\r\nHost: xn--huser-gra.example:8\r\n" in peer.recv(4096)
    assert probe("http://ä..example", "/x", tmp_path) == (0, b"")
    assert addresses == [(b"xn--huser-gra.example", 8)]


def test_status_shows_the_model_that_was_chosen_after_the_start(lonely: CommandHome) -> None:
    options = ("--host", "127.0.0.1", "--port", "0")
    with running(lonely.home, "servers.api", *options, env={"API_SERVER_KEY": ""}) as server:
        server.line("^api: ")
        assert "Model      built-in" in lonely.run("svc", "status").out
        config = lonely.home / "svc/config.yaml"
        for text, model in (
            ("model: {default: jarvis, base_url: 'http://127.0.0.1:9/v1'}\n", "jarvis"),
            ("model: {base_url: 'http://127.0.0.1:9/v1'}\n", "default"),
            ("model: {}\n", "built-in"),
            ("model: [", "built-in"),
        ):
            config.write_text(text)
            os.utime(config, (time.time() + 5, time.time() + 5))
            done = lonely.run("svc", "status")
            assert f"Model      {model}\n" in done.out
            assert ("model_unreachable" in done.out) is (model != "built-in")
