import json
import signal
import socket
from pathlib import Path

import pytest

from runtimes.tls.contexts import client_context
from servers.relay import main
from servers.relay_program import read_relay_config
from svc_proto.wire.events import WebSocketClosed
from tests.runtimes.certificates import make_certificate
from tests.servers.conftest import Failing
from tests.servers.program_process import TIMEOUT, call, running, running_relay, shown_pin, sign_in, websocket

TOKEN = r"[0-9a-f]{64}"


def test_serve_and_stop(runtime: str, tmp_path: Path) -> None:
    with running_relay(tmp_path, runtime=runtime) as (relay, port):
        health = call(port, "GET", "/health")
        assert health.status == 200
        assert health.body["status"] == "ok"
        assert (tmp_path / "svc").stat().st_mode & 0o777 == 0o700
        assert (tmp_path / "svc" / "svc.db").stat().st_mode & 0o777 == 0o600
        with websocket(port) as ws:
            relay.process.send_signal(signal.SIGTERM)
            event = ws.receive()
            assert isinstance(event, WebSocketClosed)
            assert event.code == 1001
        assert relay.wait() == 0


def test_state_after_a_restart_and_a_kill(tmp_path: Path) -> None:
    with running_relay(tmp_path) as (relay, port):
        code = call(port, "POST", "/pairing").body["code"]
        spare = call(port, "POST", "/pairing").body["code"]
        options = ("--remote", f"ws://127.0.0.1:{port}", "--print-token")
        with running(tmp_path, "clients.phone", *options, "--code", code) as phone:
            token = phone.line(f"^paired: session ({TOKEN})$")[1]
            assert call(port, "GET", "/ping", token=token).body["pong"] is True
            phone.line("^GET /ping -> 200$")
            for _ in range(5):
                assert "invalid" in sign_in(port, pairing_code="WRONG0")["reason"]
            assert sign_in(port, pairing_code="WRONG0") == {"status": 429}
            relay.process.kill()
            phone.line("^offline: next try in ")
            with running_relay(tmp_path, port=port):
                assert phone.line(f"^online: session ({TOKEN})$")[1] == token
                assert call(port, "GET", "/current_app", token=token).body["package"]
                # The limiter and the codes are lost, the session is stored.
                assert "invalid" in sign_in(port, pairing_code=spare)["reason"]
                assert sign_in(port, session_token=token)["session_token"] == token
            assert phone.stop() == 0


def test_every_option(tmp_path: Path, certificate: tuple[Path, Path]) -> None:
    settings = tmp_path / "agent.yaml"
    settings.write_text("platforms: {api_server: {extra: {key: agent-key}}}\n")
    options = {
        "--shell": "/bin/sh",
        "--webapi-url": "https://agent.example:9000",
        "--log-level": "error",
        "--config": str(settings),
        "--brand": "hermes",
    }
    env = {
        "RELAY_PORT": "1",
        "RELAY_HOST": "203.0.113.7",
        "RELAY_LOG_LEVEL": "DEBUG",
        "RELAY_SSL_CERT": str(certificate[0]),
        "RELAY_SSL_KEY": str(certificate[1]),
        "RELAY_PAIRING_CODE": "abc123",
        "SVC_DATABASE_URL": f"sqlite:///{tmp_path}/other.db",
    }
    flags = ("--no-ssl", "--allow-insecure-api-key")
    arguments = [text for pair in options.items() for text in pair]
    with running_relay(tmp_path, *flags, *arguments, env=env) as (relay, port):
        payload = json.loads(call(port, "POST", "/pairing/mint").body["qr_payload"])
        assert (payload["host"], payload["port"], payload["tls"]) == ("agent.example", 9000, True)
        assert payload["key"] == "agent-key"
        assert "hermes" in payload
        assert payload["relay"]["url"] == f"ws://127.0.0.1:{port}"
        assert call(port, "GET", "/relay/security").body["allow_insecure_api_bearer"] is True
        assert "session_token" in sign_in(port, pairing_code="ABC123")
        assert (tmp_path / "other.db").exists()
        assert relay.stop() == 0
        assert [line for line in relay.seen if not line.startswith("relay: ")] == []


def test_a_hangup_renews_the_certificate(runtime: str, tmp_path: Path) -> None:
    cert, key = make_certificate(tmp_path)
    env = {"RELAY_SSL_CERT": str(cert), "RELAY_SSL_KEY": str(key)}
    with running_relay(tmp_path, env=env, runtime=runtime) as (relay, port):
        with socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT) as raw:
            old = client_context(cert).wrap_socket(raw, server_hostname="localhost")
            before, secret = shown_pin(port), key.read_bytes()
            make_certificate(tmp_path)
            fitting = key.read_bytes()
            key.write_bytes(secret)
            relay.process.send_signal(signal.SIGHUP)
            line = relay.line("ERROR .*certificate not reloaded").string
            assert "KEY_VALUES_MISMATCH" in line
            assert str(cert) in line
            assert shown_pin(port) == before
            key.write_bytes(fitting)
            relay.process.send_signal(signal.SIGHUP)
            renewed = relay.line(r"INFO .*certificate reloaded\S* pin=(.+)$")[1].strip('"')
            assert shown_pin(port) == renewed != before
            assert call(port, "GET", "/health", tls=client_context(cert)).status == 200
            old.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
            assert old.recv(100).startswith(b"HTTP/1.1 200")
            old.close()
        assert relay.stop() == 0
        everything = "\n".join(relay.seen)
        assert not [part for part in secret.decode().splitlines()[1:-1] if part in everything]


@pytest.mark.parametrize(
    ("env", "code", "said"),
    [
        ({"RELAY_PORT": "x"}, 2, "RELAY_PORT"),
        ({"RELAY_SSL_CERT": "{cert}"}, 2, "RELAY_SSL_CERT and RELAY_SSL_KEY"),
        ({"RELAY_SSL_KEY": "{key}"}, 2, "RELAY_SSL_CERT and RELAY_SSL_KEY"),
        ({"RELAY_SSL_CERT": "{tmp}/none.pem", "RELAY_SSL_KEY": "{key}"}, 1, "none.pem"),
        ({"RELAY_SSL_CERT": "{cert}", "RELAY_SSL_KEY": "{tmp}/none.pem"}, 1, "none.pem"),
        ({"RELAY_SSL_CERT": "{key}", "RELAY_SSL_KEY": "{cert}"}, 1, "certificate"),
        ({"SVC_HOME": "{cert}"}, 2, "not a folder"),
        ({"SVC_HOME": "{cert}/below"}, 2, "{cert}/below"),
        ({"RELAY_SESSIONS_FILE": "{tmp}"}, 2, "{tmp}"),
        ({"RELAY_SESSIONS_FILE": "{key}"}, 2, "{key}"),
        ({"SVC_DATABASE_URL": "foo"}, 2, "SVC_DATABASE_URL must be an SQLAlchemy URL"),
        ({"SVC_DATABASE_URL": "nosuch://user:secret@host/db"}, 2, "nosuch"),
        ({"SVC_RUNTIME": "twisted"}, 2, "--runtime"),
    ],
)
def test_invalid_environments(
    failing: Failing,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    certificate: tuple[Path, Path],
    env: dict[str, str],
    code: int,
    said: str,
) -> None:
    words = {"cert": str(certificate[0]), "key": str(certificate[1]), "tmp": str(tmp_path)}
    for name, value in env.items():
        monkeypatch.setenv(name, value.format(**words))
    found, line = failing(main, "--host", "127.0.0.1", *(() if "RELAY_PORT" in env else ("--port", "0")))
    assert found == code
    assert said.format(**words) in line
    assert "secret" not in line


def test_a_home_that_is_not_writable(failing: Failing, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("servers.launch.os.access", lambda path, mode: False)  # root may write anywhere
    code, line = failing(main, "--host", "127.0.0.1", "--port", "0")
    assert code == 2
    assert line.endswith("not writable; SVC_HOME names another folder")


def test_configured_database_files_are_excluded_from_media() -> None:
    for name in ("SVC_DATABASE_URL", "RELAY_SESSIONS_FILE"):
        config = read_relay_config({name: "sqlite:////srv/chats.db", "RELAY_MEDIA_ALLOWED_ROOTS": "/srv"}, {})
        assert config.store_files[:2] == ("/srv/chats.db", "/srv/chats.db-wal")
    assert read_relay_config({}, {}).store_files == ()
