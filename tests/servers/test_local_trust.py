"""Tests of the local secret between real programs."""

import subprocess
from pathlib import Path

from runtimes.net.peer_user import can_look_up_users
from svc_proto.relay_config import PUBLIC_ROUTE
from svc_proto.service_clients.local_secret import LOCAL_SECRET
from tests.servers.program_process import LOCAL, call, run_program, running, sign_in

STARTED = "^dashboard: http" if can_look_up_users() else r"^dashboard: not started: .*set SVC_DASHBOARD_PASSWORD"


def svc(home: Path, port: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    env = {"RELAY_PORT": str(port), "RELAY_HOST": "127.0.0.1"}
    return run_program(home, "clients.commands.svc", *arguments, env=env)


def test_our_commands_send_the_local_secret(tmp_path: Path) -> None:
    with running(tmp_path, "servers", *LOCAL, env={"RELAY_LOCAL_TRUST": "secret"}) as servers:
        port = int(servers.line(r"^relay: http://127\.0\.0\.1:(\d+) ")[1])
        servers.line("^To pair a phone")  # the start sends a request to its own relay
        assert any("dashboard: not started" in line for line in servers.seen)
        file = tmp_path / "svc" / LOCAL_SECRET
        assert file.stat().st_mode & 0o777 == 0o600
        assert call(port, "POST", "/pairing").status == 403
        assert svc(tmp_path, port, "pair", "--register-code", "Q7M2ZK", "--json").returncode == 0
        token = sign_in(port, pairing_code="Q7M2ZK")["session_token"]
        assert svc(tmp_path, port, "relay", "insecure-api-key", "on").returncode == 0
        assert svc(tmp_path, port, "pair", "--json").returncode == 0
        assert svc(tmp_path, port, "pair", "--revoke", token[:8]).returncode == 0
        unknown_host = svc(tmp_path / "other", port, "pair", "--json")
        assert unknown_host.returncode == 1
        assert "local secret" in unknown_host.stderr
        secret = file.read_text()
        assert servers.stop() == 0
    assert not [line for line in servers.seen if secret in line]


def test_a_public_invite_requires_the_local_secret_afterwards(tmp_path: Path) -> None:
    secrets = []
    for number in range(2):
        with running(tmp_path, "servers", *LOCAL, "--no-qr") as servers:
            if number == 1:
                servers.line(STARTED)
            port = int(servers.line(r"^relay: http://127\.0\.0\.1:(\d+) ")[1])
            assert call(port, "POST", "/pairing").status == (403 if number else 200)
            assert svc(tmp_path, port, "pair", "--json", "--public-url", "https://home.example/relay").returncode == 0
            assert call(port, "POST", "/pairing").status == 403
            secrets.append((tmp_path / "svc" / LOCAL_SECRET).read_text())
            assert servers.stop() == 0
    assert secrets[0] != secrets[1]
    assert (tmp_path / "svc" / PUBLIC_ROUTE).exists()
