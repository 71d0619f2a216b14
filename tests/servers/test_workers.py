"""Tests of a relay with worker processes."""

import http.client
import json
import logging
import os
import re
import signal
import ssl
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from shutil import which
from typing import Any

import pytest
from attrs import evolve, frozen

from runtimes.net.listener import bind
from runtimes.service_home.server_registry import find_running_server, is_held
from runtimes.tls.contexts import client_context
from servers.relay import main
from servers.relay_workers import warn_of_costs, worker_command
from svc_proto.cli.worker_supervisor import PAUSE
from svc_proto.service_clients.local_secret import HEADER, LOCAL_SECRET
from tests.runtimes.certificates import make_certificate
from tests.runtimes.redis_server import needs_redis
from tests.servers.program_process import (
    ROOT,
    SYSTEM_PATH,
    TIMEOUT,
    ProgramProcess,
    ProgramResponse,
    call,
    environment,
    running,
    running_relay,
)
from tests.servers.proxies import in_front
from tests.servers.relay_cluster import NodePhone, until
from tests.servers.test_supervision import LAUNCHER
from tests.support.forkserver import python, run

TOKEN = "a-monitor-that-may-look"
TWO = ("--workers", "2")
SOURCES = [f"127.0.0.{n}" for n in range(1, 17)]


@frozen
class WorkerGroup:
    """Relay with several worker processes on this host, and requests to it from several addresses."""

    relay: ProgramProcess
    port: int
    home: Path

    @property
    def groups(self) -> dict[str, int]:
        """Return the process group of each worker by name, from the log; a restarted worker has its latest one."""
        found = [re.search(r'worker started name="?([^"]+)"? pid=(\d+)', line) for line in self.relay.seen]
        return {match[1]: int(match[2]) for match in found if match}

    def ask(
        self, source: str, method: str, path: str, body: Mapping[str, object] | None = None, token: str = ""
    ) -> ProgramResponse:
        """Send a request from address `source` with the local secret."""
        secret = {HEADER.decode(): (self.home / LOCAL_SECRET).read_text()}
        return call(self.port, method, path, body, token=token, headers=secret, source=source)

    def worker(self, source: str) -> str:
        """Return the start time of the worker that gets connections from `source`, which identifies the worker."""
        answer = self.ask(source, "GET", "/metrics", token=TOKEN)
        assert answer.status == 200
        return str(re.findall(r"^process_start_time_seconds (\S+)", answer.data.decode(), re.MULTILINE)[0])

    def tap(self, source: str, phone: NodePhone) -> int:
        """Send a command for the phone from address `source`; return the status, or 0 without an answer."""
        body = {"x": 1, "y": 1}
        try:
            return self.ask(source, "POST", f"/tap?device=device-{phone.name}", body, phone.token).status
        except (OSError, http.client.HTTPException):  # the worker was just killed
            return 0


@contextmanager
def supervisor(folder: Path, env: Mapping[str, str] | None = None) -> Iterator[WorkerGroup]:
    with running_relay(folder, *TWO, env={"SVC_METRICS_TOKEN": TOKEN, **(env or {})}) as (relay, port):
        yield WorkerGroup(relay, port, folder / "svc")


def left_over(groups: Mapping[str, int]) -> list[str]:
    left = []
    for entry in Path("/proc").iterdir():
        try:
            state, _, group = (entry / "stat").read_text().rpartition(") ")[2].split()[:3]
            if state != "Z" and int(group) in groups.values():
                left.append((entry / "cmdline").read_text())
        except (OSError, ValueError):  # no process, or one that has ended
            continue
    return left


def svc(home: Path, *words: str) -> Any:
    """Run `svc` with `words` on this host, and return its JSON output."""
    env = {**os.environ, "SVC_HOME": str(home), "SVC_METRICS_TOKEN": TOKEN}
    command = [sys.executable, "-m", "clients.commands.svc", *words, "--json"]
    return json.loads(subprocess.run(command, env=env, capture_output=True, check=True, timeout=TIMEOUT).stdout)


@needs_redis
def test_commands_show_the_nodes(tmp_path: Path) -> None:
    def phones() -> list[int]:
        return sorted(node["phones"] for node in svc(relay.home, "status")["services"]["relay"]["nodes"])

    with supervisor(tmp_path) as relay:
        until(lambda: phones() == [0, 0], "two nodes are shown")
        phone = NodePhone("ada", relay.port, relay.ask("127.0.0.1", "POST", "/pairing").body["code"])
        try:
            assert phone.online.wait(TIMEOUT), phone.refused
            until(lambda: phones() == [0, 1], "one of them has the phone")
            for words in (("status",), ("top", "--every", "0.1")):
                service = svc(relay.home, *words)["services"]["relay"]
                assert service["redis"] is True
                assert len({node["url"] for node in service["nodes"]}) == 2
                assert all(node["since"] > 1_700_000_000 for node in service["nodes"])
            assert svc(relay.home, "status")["services"]["relay"]["store"] is True
            env = {**os.environ, "SVC_HOME": str(relay.home), "SVC_METRICS_TOKEN": TOKEN}
            command = [sys.executable, "-m", "clients.commands.svc", "drain"]
            refused = subprocess.run(command, env=env, capture_output=True, timeout=TIMEOUT, text=True)
            assert (refused.returncode, "no other node is reachable" in refused.stderr) == (1, True)
        finally:
            phone.close()


@needs_redis
def test_two_processes_are_one_relay(tmp_path: Path) -> None:
    with supervisor(tmp_path) as relay:
        places = {source: relay.worker(source) for source in SOURCES}
        assert len(set(places.values())) == 2
        here = "127.0.0.1"  # source address of the phone
        there = next(source for source in SOURCES if places[source] != places[here])
        assert {relay.worker(there) for _ in range(5)} == {places[there]}
        home = find_running_server(relay.home, "relay")
        assert home is not None
        assert (home.pid, home.port) == (relay.relay.process.pid, relay.port)

        phone = NodePhone("ada", relay.port, relay.ask(here, "POST", "/pairing").body["code"])
        try:
            assert phone.online.wait(TIMEOUT), phone.refused
            for source in (here, there):
                until(lambda source=source: relay.tap(source, phone) == 200, "the phone is driven")  # type: ignore[misc]
            letter = {"file_name": "a.txt", "content_type": "text/plain", "content": b64encode(b"a letter").decode()}
            uploaded = relay.ask(here, "POST", "/media/upload", letter, phone.token)
            assert uploaded.status == 200, uploaded
            for source in (here, there):
                fetched = relay.ask(source, "GET", f"/media/{uploaded.body['token']}", token=phone.token)
                assert (fetched.status, fetched.data) == (200, b"a letter")
            first = "worker 1" if places[here] == min(places.values(), key=float) else "worker 2"
            os.killpg(relay.groups[first], signal.SIGKILL)
            assert "has ended with -9" in relay.relay.line("worker ended").string
            until(lambda: relay.tap(there, phone) == 200, "the phone is back")
            relay.relay.line(f'worker started name="{first}"')
            until(lambda: len({relay.worker(source) for source in SOURCES} - set(places.values())) == 1, "it is back")
            for source in (here, there):
                until(lambda source=source: relay.tap(source, phone) == 200, "the phone is driven")  # type: ignore[misc]
        finally:
            phone.close()
        groups = relay.groups
        assert groups.keys() == {"redis", "worker 1", "worker 2"}
        assert len(left_over(groups)) >= 4  # and the shell that runs Redis
        assert relay.relay.stop() == 0
        assert left_over(groups) == []
        assert not is_held(relay.home, "relay")
        log = (relay.home / "log" / "relay.log").read_text()
        assert log.count(" svc ready sessions=") == 3
        assert "worker ended" in log


@needs_redis
@pytest.mark.skipif(which("nginx", path=SYSTEM_PATH) is None, reason="nginx is not installed")
def test_behind_a_proxy_on_this_host(tmp_path: Path) -> None:
    """Check that the nginx block of the how-to sends each address to one worker, and that it uses both workers."""
    page = (ROOT / "docs/howto/cluster.md").read_text()
    (block,) = re.findall(r"^  (split_clients .*)\n  (proxy_bind .*)$", page, re.MULTILINE)
    proxied = (
        f"{block[1]} location / {{ proxy_pass http://127.0.0.1:RELAY; proxy_set_header X-Forwarded-For $remote_addr; }}"
    )
    with (
        supervisor(tmp_path, {"RELAY_TRUST_PROXY_HEADERS": "1"}) as relay,
        in_front(tmp_path / "nginx", "nginx", proxied.replace("RELAY", str(relay.port)), block[0]) as port,
    ):
        outside = evolve(relay, port=port)
        places = {source: {outside.worker(source) for _ in range(3)} for source in SOURCES}
        assert {len(seen) for seen in places.values()} == {1}
        assert len(set.union(*places.values())) == 2


@needs_redis
def test_a_killed_supervisor_takes_its_workers_along(tmp_path: Path) -> None:
    with supervisor(tmp_path) as relay:
        groups = relay.groups
        (folder,) = set(re.findall(r"\0(/[^\0]*/svc-redis-[^\0/]+)\0", "".join(left_over(groups))))
        assert Path(folder, "redis.sock").exists()
        relay.relay.process.kill()
        until(lambda: not left_over(groups), "all have ended")
        assert not Path(folder).exists()


@needs_redis
def test_redis_is_restarted(tmp_path: Path) -> None:
    with supervisor(tmp_path) as relay:
        os.killpg(relay.groups["redis"], signal.SIGKILL)
        relay.relay.line("worker started name=redis", PAUSE + TIMEOUT)
        until(lambda: relay.ask("127.0.0.1", "POST", "/pairing").status == 200, "a code can be agreed on")
        assert relay.relay.stop() == 0


@needs_redis
def test_tls_the_local_port_and_a_hangup(tmp_path: Path) -> None:
    cert, key = make_certificate(tmp_path)
    with supervisor(tmp_path, {"RELAY_SSL_CERT": str(cert), "RELAY_SSL_KEY": str(key)}) as relay:
        assert call(relay.port, "GET", "/health", tls=client_context(cert)).status == 200
        there = find_running_server(relay.home, "relay")
        assert there is not None
        assert call(int(there.inside.rpartition(":")[2]), "GET", "/health").status == 200
        make_certificate(tmp_path)
        relay.relay.process.send_signal(signal.SIGHUP)
        pins = {relay.relay.line(r"certificate reloaded.* pin=(.+)$")[1] for _ in range(2)}
        assert len(pins) == 1
        with pytest.raises(ssl.SSLError):
            call(relay.port, "GET", "/health", tls=client_context(make_certificate(tmp_path)[0]))
        assert relay.relay.stop() == 0


@needs_redis
def test_a_worker_that_cannot_start_ends_all(tmp_path: Path) -> None:
    with running(
        tmp_path, "servers.relay", *TWO, "--port", "0", env={"SVC_DATABASE_URL": "sqlite:////nowhere/x"}
    ) as relay:
        assert relay.wait() == 2
        assert relay.seen[-1] == "error: worker 1 has ended with 2"
        assert any("nowhere" in line for line in relay.seen)


def test_the_command_of_a_worker_has_equal_options() -> None:
    words = ["--host", "::1", "--port", "0", "--no-ssl", "--root-path", "", "--shell", "/bin/a b", *TWO]
    options = main.make_context("relay", words).params
    command = worker_command(options)
    assert main.make_context("relay", list(command[command.index("servers.relay") + 1 :])).params == options


def test_more_workers_than_processors_cause_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("workers")
    for workers, processors in ((2, 2), (3, None), (3, 2)):
        warn_of_costs(logger, workers, processors)
    assert [record.message.partition(":")[0] for record in caplog.records] == [
        "more workers than processors make commands slower"
    ]


@pytest.mark.parametrize(
    ("module", "env", "said"),
    [
        (
            "servers.relay",
            {"PATH": "/nowhere"},
            "several workers need a Redis or Valkey between them: install redis-server",
        ),
        ("servers.relay", {"RELAY_WORKERS": "65"}, "RELAY_WORKERS must be a whole number from 1 to 64"),
        ("servers", {"RELAY_WORKERS": "2"}, "RELAY_WORKERS is for a relay by itself"),
    ],
)
def test_impossible_settings(tmp_path: Path, module: str, env: dict[str, str], said: str) -> None:
    settings = environment(tmp_path, {"RELAY_WORKERS": "2", **env})
    ended = run(python(module), cwd=ROOT, env=settings, capture_output=True, text=True, timeout=TIMEOUT)
    assert ended.returncode == 2
    assert ended.stderr.startswith(f"error: {said}")
    assert ended.stderr.count("\n") == 1


def test_a_passed_listener_is_refused(tmp_path: Path) -> None:
    opened = bind("127.0.0.1", 0).sock
    words = [sys.executable, "-c", LAUNCHER, str(opened.fileno()), "servers.relay", *TWO]
    more = {"LISTEN_FDS": "1", "LISTEN_FDNAMES": "relay", "SVC_CLUSTER_URL": "redis://127.0.0.1"}
    with opened:
        ended = subprocess.run(
            words,
            cwd=ROOT,
            env=environment(tmp_path, more),
            pass_fds=(opened.fileno(),),
            capture_output=True,
            check=False,
        )
    assert ended.returncode == 2
    assert ended.stderr == b"error: several workers cannot share the socket that a supervisor has opened\n"
