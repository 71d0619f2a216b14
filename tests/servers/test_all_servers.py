import base64
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from runtimes.net.listener import adopt_listener, bind
from runtimes.service_home.server_registry import find_running_servers, is_held, lock_home
from runtimes.tls.contexts import client_context
from servers import __main__ as everything
from servers.all_programs import with_api
from servers.env_file import create_api_key
from servers.launch import CannotStartError
from svc_proto.relay_config import RelayConfig
from tests.servers.conftest import Failing
from tests.servers.program_process import (
    LOCAL,
    ROOT,
    TIMEOUT,
    ProgramProcess,
    call,
    environment,
    ports_of,
    run_program,
    running,
    shown_pin,
    sign_in,
    websocket,
)
from tests.support.forkserver import Popen, python, run
from tests.support.ports import has_ipv6, needs_loopback_range

API = ("--api-port", "0", "--dashboard-port", "0")


def test_no_code_is_created_without_a_terminal(runtime: str, tmp_path: Path) -> None:
    with running(tmp_path, "servers", *LOCAL, runtime=runtime) as servers:
        servers.line(r"^To pair a phone: svc pair$")
        assert not [line for line in servers.seen if "code" in line]
        port = relay_of(servers)
        assert "session_token" in sign_in(port, pairing_code=call(port, "POST", "/pairing").body["code"])
        assert servers.stop() == 0


def test_the_first_start_in_a_terminal_opens_the_dashboard_to_phones(tmp_path: Path) -> None:
    stored: dict[str, str] = {}
    controller, terminal = os.openpty()
    command = [*python("servers"), "--port", "0", *API]
    with open(controller, "rb", buffering=0) as screen:
        for expected in (True, False):  # the password is shown at the first start only
            servers = Popen(command, cwd=ROOT, env=environment(tmp_path), stdout=terminal, stderr=terminal)
            shown = b""
            while b"Ctrl-C stops" not in shown:
                shown += screen.read(65_536)
            stored = dict(line.split("=", 1) for line in (tmp_path / "svc" / ".env").read_text().splitlines())
            address = re.search(rb"\nDashboard  http://127\.0\.0\.1:(\d+)", shown)
            assert address is not None
            known = base64.b64encode(f"me:{stored['SVC_DASHBOARD_PASSWORD']}".encode()).decode()
            phone = {"host": "192.0.2.2", "authorization": f"Basic {known}"}
            assert call(int(address[1]), "GET", "/", headers=phone).status == 200
            servers.terminate()
            assert servers.wait(TIMEOUT) == 0
            assert (b"Password " in shown) is expected
    os.close(terminal)
    assert stored["SVC_DASHBOARD_LOCAL_ACCESS"] == "1"
    assert re.fullmatch("[a-z2-9]{4}(-[a-z2-9]{4}){3}", stored["SVC_DASHBOARD_PASSWORD"])


def relay_of(servers: ProgramProcess) -> int:
    """Return the relay's port from its line of output, which may have been read already."""
    said = r"^relay: https?://[^ ]+:(\d+) "
    seen = [found for line in servers.seen if (found := re.match(said, line))]
    return int((seen[0] if seen else servers.line(said))[1])


def invite_of(servers: ProgramProcess) -> dict[str, Any]:
    """Create an invite at the relay, and return the payload of its QR code."""
    servers.line("^To pair a phone: ")
    invite: dict[str, Any] = json.loads(call(relay_of(servers), "POST", "/pairing/mint", {}).body["qr_payload"])
    return invite


def test_relay_and_api_in_one_process(runtime: str, tmp_path: Path) -> None:
    env = {"API_SERVER_KEY": "sk-all-5d1c"}
    with running(tmp_path, "servers", *LOCAL, env=env, runtime=runtime) as servers:
        ports = ports_of(servers)
        assert "sessions" in call(ports["relay"], "GET", "/health").body
        assert call(ports["api"], "GET", "/health").body["platform"] == "svc-agent"
        assert call(ports["api"], "GET", "/api/sessions").status == 401
        assert call(ports["api"], "GET", "/api/sessions", token="sk-all-5d1c").body["sessions"] == []
        assert call(ports["dashboard"], "GET", "/api/agent/sessions").body["sessions"] == []  # with the API's key
        invite = invite_of(servers)
        assert (invite["port"], invite["tls"]) == (ports["api"], False)
        assert invite["key"] not in ("", "sk-all-5d1c")  # the pairing has a key of its own
        assert call(ports["api"], "GET", "/api/sessions", token=invite["key"]).status == 200
        servers.line("^The API listens on this host only")
        assert servers.stop() == 0
        assert not [line for line in servers.seen if "sk-all" in line or "payload=" in line]


@needs_loopback_range
def test_the_api_creates_and_stores_a_key_for_other_hosts(tmp_path: Path) -> None:
    keys = []
    home = tmp_path / "svc"
    home.mkdir()
    (home / ".env").write_text("# mine\nOTHER=1")
    for _ in range(2):
        with running(tmp_path, "servers", "--host", "127.0.0.2", "--port", "0", *API, "--no-qr") as servers:
            port = int(servers.line(r"^api: http://127\.0\.0\.2:(\d+) \(with a key\)")[1])
            env = (home / ".env").read_text()
            assert env.startswith("# mine\nOTHER=1\nAPI_SERVER_KEY=sk-")
            keys.append(env.strip().partition("API_SERVER_KEY=")[2])
            assert call(port, "GET", "/v1/models", host="127.0.0.2").status == 401
            assert call(port, "GET", "/v1/models", host="127.0.0.2", token=keys[-1]).status == 200
            if len(keys) == 1:  # the key file was replaced, and the server reloads it
                (home / ".env").write_text(env.replace(keys[0], "sk-replaced-0123456789"))
                told = call(port, "POST", "/api/key/reload", host="127.0.0.2", token=keys.pop())
                assert told.body == {"ok": True, "changed": True}
                keys.append("sk-replaced-0123456789")
                assert call(port, "GET", "/v1/models", host="127.0.0.2", token=keys[0]).status == 200
            assert servers.stop() == 0
            assert not [line for line in servers.seen if keys[-1] in line]
    assert keys[0] == keys[1]
    assert (home / ".env").stat().st_mode & 0o777 == 0o600


def test_the_voice_of_the_relay_uses_the_api_beside_it() -> None:
    with bind("127.0.0.1", 0).sock as outside, bind("127.0.0.1", 0).sock as inside:
        relay = with_api(RelayConfig(webapi_url="http://before"), "sk-beside", *map(adopt_listener, (outside, inside)))
        voice, url = relay.voice, f"http://127.0.0.1:{inside.getsockname()[1]}"
    assert (relay.webapi_inside, voice.webapi_url, voice.api_key) == (url, url, "sk-beside")


def test_a_key_that_cannot_be_stored(tmp_path: Path) -> None:
    home = tmp_path / "svc"
    (home / ".env").mkdir(parents=True)
    with pytest.raises(CannotStartError, match="cannot keep an API key in"):
        create_api_key(home)


def test_the_agent_finds_the_phone_through_the_relay(tmp_path: Path, certificate: tuple[Path, Path]) -> None:
    """A tool of the agent gets the relay's own error, first from a relay without TLS, then from one with TLS."""
    tls = {"RELAY_SSL_CERT": str(certificate[0]), "RELAY_SSL_KEY": str(certificate[1])}
    for number, env in enumerate(({}, tls)):
        home = tmp_path / str(number)
        home.mkdir()
        with running(home, "servers", *LOCAL, "--no-qr", env=env) as servers:
            ports = ports_of(servers)
            session = call(ports["api"], "POST", "/api/sessions", {}).body["id"]
            told = call(ports["api"], "POST", f"/api/sessions/{session}/chat", {"message": "/phone ping"})
            assert told.status == 200
            rows = call(ports["api"], "GET", f"/api/sessions/{session}/messages").body["messages"]
            (result,) = [row["content"] for row in rows if row["role"] == "tool"]
            assert "no phone" in result.lower()  # the relay's own error text
            assert servers.stop() == 0


def gateway_asks(home: Path, url: str, **env: str) -> dict[str, Any]:
    """Run the gateway; return its answer to a request for the sessions of the API server at `url`."""
    order = '{"jsonrpc": "2.0", "id": 1, "method": "session.list"}\n'
    command = python("clients.gateway")
    told = environment(home, {"RELAY_WEBAPI_URL": url, **env})
    done = run(command, cwd=ROOT, env=told, input=order, capture_output=True, text=True, timeout=TIMEOUT)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    return next(answer for answer in answers if answer.get("id") == 1)


def test_an_api_with_tls_of_its_own(tmp_path: Path, certificate: tuple[Path, Path]) -> None:
    """An invite has TLS and the API's port; the relay's gateway reaches the API, others need its pin or to trust it."""
    env = {"API_SERVER_SSL_CERT": str(certificate[0]), "API_SERVER_SSL_KEY": str(certificate[1])}
    with running(tmp_path, "servers", *LOCAL, env=env) as servers:
        ports = ports_of(servers)
        relay, api = ports["relay"], ports["api"]
        invite = invite_of(servers)
        assert (invite["port"], invite["tls"], invite["relay"]["url"][:5]) == (api, True, "ws://")
        assert call(api, "GET", "/health", tls=client_context(certificate[0])).status == 200
        with websocket(relay) as desktop:
            code = call(relay, "POST", "/pairing").body["code"]
            assert desktop.sign_in(pairing_code=code)["type"] == "auth.ok"
            desktop.send_envelope("tui", "tui.attach", {"cols": 80, "rows": 24})
            while desktop.receive_message()["type"] != "tui.attached":
                pass
            asked = {"jsonrpc": "2.0", "id": "1", "method": "session.list", "params": {}}
            desktop.send_envelope("tui", "tui.rpc.request", asked)
            while (answer := desktop.receive_message())["type"] != "tui.rpc.response":
                pass
            assert answer["payload"]["result"]["sessions"] == []
        url = f"https://127.0.0.1:{api}"
        assert gateway_asks(tmp_path, url, RELAY_WEBAPI_PIN=shown_pin(api))["result"]["sessions"] == []
        assert gateway_asks(tmp_path, url, SSL_CERT_FILE=str(certificate[0]))["result"]["sessions"] == []
        for other in ({}, {"RELAY_WEBAPI_PIN": f"sha256/{'A' * 43}="}):
            assert "cannot be reached" in gateway_asks(tmp_path, url, **other)["error"]["message"]
        assert servers.stop() == 0


def pair(home: Path, *arguments: str) -> dict[str, Any]:
    """Run `svc pair` in an environment without the servers' settings; return its JSON output."""
    done = run_program(home, "clients.commands.pair", "--json", *arguments)
    assert done.returncode == 0, done.stderr
    invite: dict[str, Any] = json.loads(done.stdout)
    assert json.loads(invite["qr_payload"])["key"] == invite["api"]["key"]
    return invite


def test_commands_find_the_servers_that_run(tmp_path: Path, certificate: tuple[Path, Path]) -> None:
    home = tmp_path / "svc"
    home.mkdir()
    (home / ".env").write_text(
        "RELAY_PORT=0\nRELAY_HOST=127.0.0.1\nAPI_SERVER_PORT=0\nSVC_DASHBOARD_PORT=0\nAPI_SERVER_KEY=sk-main\n"
    )
    env = {f"{name}_SSL_CERT": str(certificate[0]) for name in ("RELAY", "API_SERVER")}
    env |= {f"{name}_SSL_KEY": str(certificate[1]) for name in ("RELAY", "API_SERVER")}
    env |= {"API_SERVER_KEY": "sk-all-5d1c", "SVC_BRAND": "hermes"}
    with running(tmp_path, "servers", "--no-qr", env=env) as servers:
        ports = ports_of(servers)
        told = {each.role: each for each in find_running_servers(home)}
        assert {role: each.port for role, each in told.items()} == ports
        assert {each.pid for each in told.values()} == {servers.process.pid}
        assert (told["api"].key, told["api"].model) == ("environment", "built-in")
        invite = pair(tmp_path)
        assert invite["relay"]["url"].startswith("wss://")
        assert invite["relay"]["url"].endswith(f":{ports['relay']}")
        assert (invite["api"]["url"][:5], invite["api"]["own_key"]) == ("https", True)
        assert invite["api"]["url"].endswith(f":{ports['api']}")
        assert invite["pairing_url"].startswith("hermes-relay://")
        trusting = client_context(certificate[0])
        assert call(ports["api"], "GET", "/api/sessions", token=invite["api"]["key"], tls=trusting).status == 200
        # The dashboard uses the API's key, and need not trust the certificate of relay and API.
        for path, member in (("/api/plugins/svc-relay/overview", "session_count"), ("/api/agent/sessions", "sessions")):
            assert member in call(ports["dashboard"], "GET", path).body
        alone = pair(tmp_path, "--no-relay")["api"]
        assert (alone["key"], alone["own_key"]) == ("sk-main", False)
        asked = run_program(tmp_path, "clients.commands.svc", "relay", "insecure-api-key")
        assert asked.returncode == 0, asked.stderr
        files = [path.read_text() for path in (home / "run").iterdir()]
        assert not [text for text in files if "sk-all" in text]
        assert servers.stop() == 0
    assert find_running_servers(home) == []


def test_a_desktop_that_was_paired_by_an_invite_chats(tmp_path: Path) -> None:
    """A desktop with another home gets the API's port and key from the invite, and lists the commands of the chat."""
    there = tmp_path / "desk"
    there.mkdir()
    with running(tmp_path, "servers", *LOCAL, "--no-qr", env={"API_SERVER_KEY": "sk-all-5d1c"}) as servers:
        ports = ports_of(servers)
        payload = json.loads(pair(tmp_path)["qr_payload"])
        payload |= {"host": "127.0.0.1", "endpoints": None}  # the loopback address, which this invite does not have
        payload["relay"]["url"] = f"ws://127.0.0.1:{ports['relay']}"
        shown = ""
        for words in (("pair", "--pair-qr", json.dumps(payload)), ("chat", "/help")):
            done = run_program(there, "clients.commands.svc_relay", *words)
            assert done.returncode == 0, done.stderr
            shown = done.stdout
        assert "/phone" in shown
        file = there / "svc" / "remote-sessions.json"
        assert file.stat().st_mode & 0o777 == 0o600
        assert servers.stop() == 0


@pytest.mark.parametrize("role", ["relay", "api"])
def test_a_second_server_on_one_home_is_refused(tmp_path: Path, failing: Failing, role: str) -> None:
    home = tmp_path / "svc"
    held = lock_home(home, role, version="1")
    code, line = failing(everything.main, *LOCAL)
    assert code == 2
    assert line == (
        f"the {role} of {home} runs already (process {os.getpid()}): see svc status, "
        "or name another folder with SVC_HOME"
    )
    held.release()
    assert not is_held(home, "relay")


THERE = {"host": "agent.example", "port": 9000, "tls": True, "key": "sk-there"}


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({}, {"key": ""}),  # the API has no key
        ({"API_SERVER_ENABLED": "0"}, {"port": 8642}),
        # the main key, since that may be another API than the one in this process
        ({"RELAY_WEBAPI_URL": "https://agent.example:9000", "API_SERVER_KEY": "sk-there"}, THERE),
    ],
    ids=["no key", "disabled", "another API"],
)
def test_invites_have_the_configured_api(tmp_path: Path, env: dict[str, str], expected: dict[str, object]) -> None:
    with running(tmp_path, "servers", *LOCAL, env=env) as servers:
        invite = invite_of(servers)
        assert {name: invite[name] for name in expected} == expected
        assert servers.stop() == 0
        assert any(line.startswith("api: http") for line in servers.seen) is (expected.get("port") != 8642)


def test_both_read_the_same_file(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("platforms: {api_server: {extra: {model_name: jarvis, key: sk-file-9}}}\n")
    env = {"RELAY_HERMES_CONFIG": str(tmp_path / "mine.yaml")}
    with running(tmp_path, "servers", *LOCAL, env=env) as servers:
        port = int(servers.line(r"^api: http://127\.0\.0\.1:(\d+) \(with a key\)")[1])
        assert call(port, "GET", "/v1/models", token="sk-file-9").body["data"][0]["id"] == "jarvis"
        assert call(port, "GET", "/v1/models", token=invite_of(servers)["key"]).status == 200
        assert servers.stop() == 0


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "::1", "localhost"])
def test_addresses_that_include_loopback(tmp_path: Path, host: str) -> None:
    if ":" in host and not has_ipv6():
        pytest.skip("no IPv6 here")
    with running(tmp_path, "servers", "--host", host, "--port", "0", *API) as servers:
        servers.line("^To pair a phone: ")
        assert servers.stop() == 0


@needs_loopback_range
def test_an_address_without_loopback(tmp_path: Path) -> None:
    local = ("--host", "127.0.0.2", "--port", "0", *API, "--api-host", "127.0.0.1")
    with running(tmp_path, "servers", *local) as servers:
        servers.line(r"^api: http://127\.0\.0\.1:(\d+) \(no key\)")  # its own host needs no created key
        servers.line("^To pair a phone: ")
        made = run_program(tmp_path, "clients.commands.svc", "pair", "--json")
        code = json.loads(made.stdout)["relay"]["code"]
        assert "session_token" in sign_in(relay_of(servers), host="127.0.0.2", pairing_code=code)
        assert servers.stop() == 0
    assert not (tmp_path / "svc" / ".env").exists()


def test_the_log_in_json_and_at_the_level_of_each(tmp_path: Path) -> None:
    env = {"RELAY_LOG_LEVEL": "DEBUG", "SVC_LOG_FORMAT": "json"}
    with running(tmp_path, "servers", *LOCAL, "--no-qr", env=env) as servers:
        port = int(servers.line(r"^relay: http://127\.0\.0\.1:(\d+) ")[1])
        assert call(port, "GET", "/health?secret=x").status == 200
        line = servers.line('"event": "request"').string
        found = json.loads(line)
        assert (found["route"], found["status"], found["peer"]) == ("/health", 200, "127.0.0.1")
        assert "secret" not in line
        assert servers.stop() == 0
        models = [json.loads(line) for line in servers.seen if '"event": "model"' in line]
        assert [each["name"] for each in models] == ["built-in"]
