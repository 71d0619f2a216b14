import base64
import gzip
import logging
from pathlib import Path
from queue import SimpleQueue
from types import SimpleNamespace
from typing import Any, cast

import pytest
from attrs import evolve
from zeroconf import IPVersion, ServiceBrowser, ServiceStateChange, Zeroconf

from runtimes.net.mdns import find_lan_addresses
from servers import dashboard_program as program
from servers.dashboard import main
from servers.dashboard_program import page_files, read_dashboard_config
from servers.launch import CannotStartError, bind_server, trust_certificates
from svc_proto.dashboard.config import DashboardConfig
from svc_proto.facts import Address
from svc_proto.relay_config import PUBLIC_ROUTE, LocalTrustPolicy, RelayConfig
from tests.servers.conftest import Failing
from tests.servers.program_process import LOCAL, TIMEOUT, ProgramProcess, call, ports_of, running, running_relay
from tests.support.ports import free_port

RELAY = "/api/plugins/svc-relay"
PASSWORD = "correct horse"
PORT = ("--port", "0")


def port_of(dashboard: ProgramProcess) -> int:
    return int(dashboard.line(r"^dashboard: https?://[0-9.]+:(\d+) ")[1])


def test_beside_a_relay(runtime: str, tmp_path: Path) -> None:
    """The dashboard shows the relay, and reports a missing API server and a model that does not answer."""
    model = {"SVC_MODEL_BASE_URL": "http://127.0.0.1:9/v1", "SVC_MODEL": "m"}
    with (
        running_relay(tmp_path, runtime=runtime) as (_, relay),
        running(
            tmp_path,
            "servers.dashboard",
            *PORT,
            env={"SVC_RELAY_PORT": str(relay), "API_SERVER_PORT": str(free_port()), **model},
            runtime=runtime,
        ) as board,
    ):
        port = port_of(board)
        assert call(port, "GET", "/").data == page_files()["index.html"]
        assert call(port, "GET", f"{RELAY}/overview").body["health"] == "ok"
        invite = call(port, "POST", f"{RELAY}/pairing", {"mode": "lan"}).body
        assert invite["endpoints"][0]["relay"]["url"].endswith(f":{relay}")
        assert call(port, "GET", "/api/agent/sessions").status == 502
        checks = {check["code"]: check for check in call(port, "GET", "/api/health").body["checks"]}
        where = "http://127.0.0.1:9/v1 (SVC_MODEL_BASE_URL in the environment)"
        found = checks["model_unreachable"]["found"]
        assert found == f"the model's server at {where} cannot be reached: connection refused"
        assert checks["relay_down"]["ok"] is True
        assert board.stop() == 0


def test_for_other_hosts_with_a_password(tmp_path: Path) -> None:
    env = {"SVC_DASHBOARD_PASSWORD": PASSWORD}
    with running(tmp_path, "servers.dashboard", "--host", "0.0.0.0", *PORT, env=env) as board:
        board.line("WARNING .*without TLS")
        port = int(board.line(r"^dashboard: http://0\.0\.0\.0:(\d+) \(with a password\)$")[1])
        assert call(port, "GET", "/").status == 401
        known = base64.b64encode(f"me:{PASSWORD}".encode()).decode()
        assert call(port, "GET", "/", headers={"authorization": f"Basic {known}"}).status == 200
        assert board.stop() == 0
        assert not [line for line in board.seen if PASSWORD in line]


def test_servers_that_speak_tls(tmp_path: Path, certificate: tuple[Path, Path]) -> None:
    """A dashboard reaches a relay and an API server with TLS; a dashboard with TLS answers over TLS."""
    cert, key = map(str, certificate)
    env = {
        **{f"{name}_SSL_CERT": cert for name in ("RELAY", "API_SERVER", "SVC_DASHBOARD")},
        **{f"{name}_SSL_KEY": key for name in ("RELAY", "API_SERVER", "SVC_DASHBOARD")},
        "API_SERVER_KEY": "sk-tls-1f",
    }
    with (
        running(tmp_path, "servers.relay", "--host", "127.0.0.1", *PORT, env=env) as relay,
        running(tmp_path, "servers.api", *PORT, env=env) as api,
    ):
        ports = [int(each.line(r"^(?:relay|api): https://127\.0\.0\.1:(\d+) ")[1]) for each in (relay, api)]
        where = {"SVC_RELAY_PORT": str(ports[0]), "API_SERVER_PORT": str(ports[1])}
        with running(tmp_path, "servers.dashboard", *PORT, "--no-ssl", env={**env, **where}) as board:
            port = port_of(board)
            assert call(port, "GET", f"{RELAY}/overview").body["health"] == "ok"
            assert call(port, "GET", "/api/agent/sessions").body["sessions"] == []
        with running(tmp_path, "servers.dashboard", *PORT, env={**env, **where}) as board:
            port = int(board.line(r"^dashboard: https://127\.0\.0\.1:(\d+) \(this host only\)$")[1])
            assert call(port, "GET", f"{RELAY}/push", tls=trust_certificates(cert)).status == 200


def test_disabled_servers(tmp_path: Path) -> None:
    with running(tmp_path, "servers", *LOCAL, "--no-qr", "--no-dashboard") as servers:
        ports_of(servers, 2)
        assert servers.stop() == 0
        assert not [line for line in servers.seen if line.startswith("dashboard")]
    env = {"SVC_RELAY_PORT": "9"}  # another relay than the one in the same process
    with running(tmp_path, "servers", *LOCAL, "--no-qr", "--no-api", env=env) as servers:
        port = ports_of(servers, 2)["dashboard"]
        assert call(port, "GET", f"{RELAY}/overview").status == 502
        assert call(port, "GET", "/api/agent/sessions").status == 404
        assert servers.stop() == 0


def test_reasons_not_to_start(failing: Failing, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    code, said = failing(main, "--host", "0.0.0.0")
    assert (code, said) == (2, "a dashboard that listens on 0.0.0.0 needs a password: set SVC_DASHBOARD_PASSWORD")
    code, said = failing(main, "--host", "203.0.113.1")
    assert code == 2
    monkeypatch.setenv("SVC_RELAY_PORT", "eight")
    assert failing(main)[1] == "SVC_RELAY_PORT must be a whole number from 1 to 65535, not 'eight'"
    monkeypatch.delenv("SVC_RELAY_PORT")
    monkeypatch.setenv("RELAY_SSL_CERT", str(tmp_path / "none.pem"))
    monkeypatch.setenv("RELAY_SSL_KEY", str(tmp_path / "none.pem"))
    code, said = failing(main, "--port", "0")
    assert (code, said.partition(":")[0]) == (1, "cannot use a certificate of this host")
    with pytest.raises(CannotStartError, match="needs a password"):
        read_dashboard_config({}, {"host": "::"})
    with pytest.raises(CannotStartError, match="dashboard: "):
        bind_server(DashboardConfig(host="203.0.113.1", password=PASSWORD), "dashboard")


@pytest.mark.parametrize(
    ("relay", "stored", "starts"),
    [
        (RelayConfig(), False, True),
        (RelayConfig(), True, True),  # the kernel names the users of callers
        (RelayConfig(local_trust=LocalTrustPolicy.USER), True, True),
        (RelayConfig(local_trust=LocalTrustPolicy.ADDRESS), True, True),
        (RelayConfig(local_trust=LocalTrustPolicy.SECRET), False, False),
        (RelayConfig(trusted_proxies=("127.0.0.1",)), False, False),
        (RelayConfig(trusted_proxies=("127.0.0.1",), local_trust=LocalTrustPolicy.ADDRESS), False, False),
    ],
)
def test_configurations_that_need_a_password(relay: RelayConfig, stored: bool, starts: bool, tmp_path: Path) -> None:
    if stored:
        (tmp_path / PUBLIC_ROUTE).write_text("a public route\n")
    relay = evolve(relay, home=str(tmp_path))
    assert (program.dashboard_refusal(DashboardConfig(), relay) is None) is starts
    assert program.dashboard_refusal(DashboardConfig(password=PASSWORD), relay) is None


def test_the_page_is_packaged() -> None:
    files = page_files()
    assert {"index.html", "app.js", "app.css", "icon.svg"} <= set(files)
    own = {name: body for name, body in files.items() if not name.startswith("vendor/")}  # libraries load on use
    used = b"".join(own.values())
    for name in own:
        assert name == "index.html" or name.startswith("messages/") or name.encode() in used, f"nothing asks for {name}"
    assert b"https://" not in files["index.html"]
    assert b"<script>" not in files["index.html"]
    assert b"style=" not in files["index.html"]
    assert sum(len(gzip.compress(body)) for body in own.values()) < 250_000  # bytes: it loads quickly


LAN = "192.168.1.9"


@pytest.mark.parametrize(
    ("host", "password", "found", "expected"),
    [
        ("0.0.0.0", PASSWORD, [LAN], [LAN]),
        ("::", PASSWORD, [LAN], [LAN]),
        (LAN, PASSWORD, [LAN], [LAN]),
        ("0.0.0.0", PASSWORD, [], None),  # no network
        ("0.0.0.0", "", [LAN], None),
        ("127.0.0.1", PASSWORD, [LAN], None),
        ("fd00::9", PASSWORD, [LAN], None),
    ],
)
def test_announcements_are_for_the_local_network(
    monkeypatch: pytest.MonkeyPatch, host: str, password: str, found: list[str], expected: list[str] | None
) -> None:
    monkeypatch.setattr(program, "find_lan_addresses", lambda: found)
    config = DashboardConfig(host=host, password=password)
    listener = cast("Any", SimpleNamespace(address=Address(host, 9119), tls=None))
    announcement = program.lan_announcement(config, listener, logging.getLogger("test"))
    assert (announcement and announcement._addresses) == expected
    monkeypatch.setattr(program, "can_announce", lambda: False)
    assert program.lan_announcement(config, listener, logging.getLogger("test")) is None


def test_a_dashboard_of_the_local_network_announces_itself(tmp_path: Path) -> None:
    if not find_lan_addresses():
        pytest.skip("this host has no address in a local network")
    names: SimpleQueue[str] = SimpleQueue()

    def on_change(zeroconf: Zeroconf, service_type: str, name: str, state_change: ServiceStateChange) -> None:
        if state_change is ServiceStateChange.Added:
            names.put(name)

    def is_at(port: int, name: str) -> bool:
        info = browser.get_service_info(kind, name, timeout=60_000)
        return info is not None and info.port == port

    kind, env = "_http._tcp.local.", {"SVC_DASHBOARD_PASSWORD": PASSWORD, "SVC_DASHBOARD_HOST": "0.0.0.0"}
    with Zeroconf(interfaces=find_lan_addresses(), ip_version=IPVersion.V4Only) as browser:
        ServiceBrowser(browser, kind, handlers=[on_change])
        with running(tmp_path, "servers.dashboard", *PORT, "--no-chat", env=env) as board:
            port = port_of(board)
            while not is_at(port, name := names.get(timeout=TIMEOUT)):
                pass  # another server of this network
            assert name.startswith("svc dashboard on ")
            assert board.stop() == 0
