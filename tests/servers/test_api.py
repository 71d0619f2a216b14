import signal
import socket
from pathlib import Path

import pytest

from servers.__main__ import main as all_main
from servers.api import main
from servers.api_program import read_api_config
from servers.dashboard import main as dashboard_main
from servers.options import ProgramCommand
from servers.relay import main as relay_main
from tests.runtimes.certificates import make_certificate
from tests.servers.conftest import Failing
from tests.servers.program_process import TIMEOUT, ProgramProcess, call, running

KEY = "sk-api-0b7e61-94c2"
LOCAL = ("--port", "0")
KEYED = {"API_SERVER_KEY": KEY}


def port_of(api: ProgramProcess) -> int:
    return int(api.line(r"^api: http://127\.0\.0\.1:(\d+) ")[1])


def test_serve_and_stop(runtime: str, tmp_path: Path) -> None:
    with running(tmp_path, "servers.api", *LOCAL, env=KEYED, runtime=runtime) as api:
        port = port_of(api)
        health = call(port, "GET", "/health")
        assert (health.status, health.body["status"]) == (200, "ok")
        for token in (None, "wrong", KEY + "x"):
            refused = call(port, "GET", "/v1/models", token=token)
            assert (refused.status, refused.body["error"]["code"]) == (401, "invalid_api_key")
        assert call(port, "GET", "/v1/models", token=KEY).body["data"][0]["id"] == "svc-agent"
        created = call(port, "POST", "/api/sessions", {"title": "First"}, token=KEY)
        assert created.status == 201
        assert api.stop() == 0
        assert not [line for line in api.seen if KEY in line]
    with running(tmp_path, "servers.api", *LOCAL, env=KEYED, runtime=runtime) as api:
        found = call(port_of(api), "GET", f"/api/sessions/{created.body['id']}", token=KEY)
        assert found.body["session"] == created.body["session"]
        assert api.stop(signal.SIGINT) == 0
    assert (tmp_path / "svc" / "svc.db").stat().st_mode & 0o777 == 0o600


def test_a_turn_is_cut_short_when_the_server_stops(tmp_path: Path) -> None:
    with running(tmp_path, "servers.api", *LOCAL) as api:
        port = port_of(api)
        identity = call(port, "POST", "/api/sessions", {}).body["id"]
        with socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT) as sock:
            head = f"POST /api/sessions/{identity}/chat/stream HTTP/1.1\r\nHost: x\r\nContent-Length: 25\r\n\r\n"
            sock.sendall(head.encode() + b'{"message":"/count 1000"}')
            data = b""
            while b"assistant.delta" not in data:
                data += sock.recv(65_536)
            api.process.send_signal(signal.SIGTERM)
            while chunk := sock.recv(65_536):
                data += chunk
        assert api.wait() == 0
        assert data.endswith(b"0\r\n\r\n")
        assert data.rindex(b"event: done") > data.rindex(b"event: run.completed")
        assert b'"interrupted":true' in data
    with running(tmp_path, "servers.api", *LOCAL) as api:
        rows = call(port_of(api), "GET", f"/api/sessions/{identity}/messages").body["messages"]
        assert [row["role"] for row in rows] == ["user", "assistant"]
        assert rows[1]["content"]


def test_listening_beyond_loopback_gives_warnings(tmp_path: Path) -> None:
    """An open API without key or TLS gives warnings, and so do misspelled settings, but not those of other programs."""
    (tmp_path / "svc").mkdir()
    (tmp_path / "svc" / "config.yaml").write_text("modle: {default: llama3.2}\nterminal: {backend: local}\n")
    (tmp_path / "svc" / ".env").write_text("API_SERVER_PROT=1\n")
    with running(tmp_path, "servers.api", "--host", "0.0.0.0", *LOCAL) as api:
        api.line("WARNING .*variable not used problem=.*API_SERVER_PROT is no variable .*: is API_SERVER_PORT meant")
        api.line("WARNING .*without a key")
        api.line("WARNING .*without TLS")
        api.line(r"WARNING .*configuration not used path=\S+/config\.yaml line=1 problem=.*modle .* is model meant\?")
        api.line(r"^api: http://0\.0\.0\.0:\d+ \(no key\)$")
        assert api.stop() == 0
    with running(tmp_path, "servers.api", "--host", "0.0.0.0", *LOCAL, env=KEYED) as api:
        api.line(r"^api: http://0\.0\.0\.0:\d+ \(with a key\)$")
        assert api.stop() == 0
        assert [line for line in api.seen if "without a key" in line or "terminal" in line] == []


def test_a_certificate_that_cannot_be_used(failing: Failing, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    cert, key = make_certificate(tmp_path)
    monkeypatch.setenv("API_SERVER_SSL_CERT", str(key))
    assert failing(main, *LOCAL) == (2, "API_SERVER_SSL_CERT and API_SERVER_SSL_KEY must be set together")
    monkeypatch.setenv("API_SERVER_SSL_KEY", str(cert))
    code, line = failing(main, *LOCAL)
    assert code == 1
    assert str(key) in line


def test_switched_off(tmp_path: Path) -> None:
    with running(tmp_path, "servers.api", *LOCAL, env={"API_SERVER_ENABLED": "false"}) as api:
        assert api.wait() == 0
        assert api.seen == ["api: not started, because API_SERVER_ENABLED is off"]


def test_files_are_weaker_than_the_environment_and_options(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(
        "platforms: {api_server: {extra: {host: 1.1.1.1, port: 1111, key: sixteen-from-yaml, "
        "cors_origins: [http://a, http://b]}}}\n"
        "gateway: {api_server: {max_concurrent_runs: 3}}\n"
    )
    env = {"SVC_HOME": str(tmp_path)}
    config = read_api_config(env, {})
    assert (config.host, config.port, config.key) == ("1.1.1.1", 1111, "sixteen-from-yaml")
    assert config.cors_origins == ("http://a", "http://b")
    assert config.max_concurrent_runs == 3
    (tmp_path / ".env").write_text("# mine\nexport API_SERVER_KEY='sixteen-from-dotenv'\nAPI_SERVER_PORT=2222\nX=/x\n")
    config = read_api_config(env, {})
    assert (config.host, config.port, config.key) == ("1.1.1.1", 2222, "sixteen-from-dotenv")
    config = read_api_config({**env, "API_SERVER_KEY": "sixteen-from-env", "API_SERVER_HOST": " "}, {"port": 3333})
    assert (config.host, config.port, config.key) == ("1.1.1.1", 3333, "sixteen-from-env")


@pytest.mark.parametrize(
    ("env", "said"),
    [
        ({"API_SERVER_PORT": "x"}, "API_SERVER_PORT"),
        ({"API_SERVER_KEY": "a secret"}, "API_SERVER_KEY must be printable ASCII"),
        ({"SVC_MODEL_BASE_URL": "http://user:secret@h/v1"}, "SVC_MODEL_BASE_URL"),
        ({"API_SERVER_ENABLED": "perhaps"}, "API_SERVER_ENABLED"),
        ({"SVC_HOME": "{tmp}/file"}, "Not a directory"),
        ({"SVC_CONFIG": "{tmp}/list"}, "{tmp}/list: the top of the YAML document is not a mapping"),
        ({"SVC_CONFIG": "{tmp}/binary"}, "{tmp}/binary: not UTF-8"),
        ({"SVC_CONFIG": "{tmp}/broken"}, "{tmp}/broken: not YAML at line 2"),
        ({"SVC_CONFIG": "{tmp}"}, "cannot read {tmp}: Is a directory"),
        ({"SVC_DATABASE_URL": "nosuch://user:secret@host/db"}, "nosuch"),
    ],
)
def test_invalid_environments(
    failing: Failing, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, env: dict[str, str], said: str
) -> None:
    (tmp_path / "list").write_text("- 1\n")
    (tmp_path / "broken").write_text("a: [\n")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\xfa")
    (tmp_path / "file").touch()
    for name, value in env.items():
        monkeypatch.setenv(name, value.format(tmp=tmp_path))
    code, line = failing(main, *(() if "API_SERVER_PORT" in env else LOCAL))
    assert code == 2
    assert said.format(tmp=tmp_path) in line
    assert "secret" not in line


@pytest.mark.parametrize("program", [main, relay_main, dashboard_main, all_main])
def test_no_server_starts_with_a_line_of_settings_that_cannot_be_read(
    failing: Failing, tmp_path: Path, program: ProgramCommand
) -> None:
    (tmp_path / "svc").mkdir()
    (tmp_path / "svc" / ".env").write_text("\n# mine\nAPI_SERVER_KEY='sixteen-from-dotenv\n")
    code, line = failing(program)
    assert code == 2
    assert line.endswith("svc/.env: line 3: neither NAME=value nor a comment, or a quote without its end")
    assert "sixteen" not in line
