import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from clients.commands import mcp
from tests.clients.commands.command_process import CommandHome, CommandRun, module
from tests.servers.program_process import ROOT, TIMEOUT, running


class Peer:
    """MCP client of a running `svc mcp`, which sends and receives one message for each line."""

    def __init__(self, home: CommandHome, **env: str) -> None:
        self.process = subprocess.Popen(
            [*module("svc"), "mcp"], cwd=ROOT, env={**home.env, **env}, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def ask(self, method: str, **params: object) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        self.process.stdin.write(json.dumps(request).encode() + b"\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())["result"]

    def leave(self) -> int:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.close()
        return self.process.wait(TIMEOUT)


def test_a_phone_on_standard_input_and_output(linked: CommandHome) -> None:
    code = linked.run("svc", "pair", "--json").json["relay"]["code"]
    phone = ("--remote", linked.url, "--code", code, "--master", "on", "--allow")
    with running(linked.home, "clients.phone", *phone) as there:
        there.line("^paired: session ")
        peer = Peer(linked)
        about = peer.ask("initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo={"name": "t"})
        assert about["serverInfo"]["title"] == "Phone"
        opened = peer.ask("tools/call", name="phone_open_app", arguments={"package": "com.example.mail"})
        assert opened["isError"] is False, opened
        shot = peer.ask("tools/call", name="phone_screenshot")
        assert shot["content"][0]["mimeType"] == "image/png"
        assert peer.leave() == 0
    devices = [each["device_name"] for each in linked.run("svc", "status", "--json").json["devices"]]
    assert "MCP on this host" in devices


def test_without_a_relay_a_call_fails_with_the_reason(lonely: CommandHome) -> None:
    peer = Peer(lonely)
    peer.ask("initialize", protocolVersion="2025-06-18", capabilities={})
    failed = peer.ask("tools/call", name="phone_ping")
    assert failed["content"][0]["text"] == "the relay cannot be reached (SVC_RELAY_URL): unreachable"
    assert peer.leave() == 0


def test_a_start_at_a_terminal_prints_a_hint(lonely: CommandHome) -> None:
    terminal = lonely.spawn("svc", "mcp")
    terminal.expect_exact("this is for an agent's program to start: svc mcp install")
    terminal.wait()
    assert terminal.exitstatus == 1
    wrong = lonely.run("svc", "mcp", env={"SVC_RELAY_URL": "ftp://x"})
    assert (wrong.code, wrong.problem) == (2, "the relay's address must be an http:// or https:// URL")


# --- install ------------------------------------------------------------------------------------------------------


def install(home: CommandHome, client: str, path: str = "/usr/bin:/bin") -> CommandRun:
    return home.run("svc", "mcp", "install", client, env={"PATH": path})


def test_print(lonely: CommandHome) -> None:
    entry = install(lonely, "print").json["mcpServers"]["phone"]
    assert entry["args"][-1] == "mcp"
    assert entry["env"] == {"SVC_HOME": str(lonely.home / "svc")}
    assert Path(entry["command"]).is_absolute()


def test_cursor(lonely: CommandHome) -> None:
    path = lonely.home / ".cursor" / "mcp.json"
    assert install(lonely, "cursor").out.startswith(f"{path}: the server 'phone' is ")
    first = json.loads(path.read_text())
    path.write_text(json.dumps({"theme": "x", "mcpServers": {"other": {"command": "o"}, "phone": 1}}))
    install(lonely, "cursor")
    assert json.loads(path.read_text()) == {
        "theme": "x",
        "mcpServers": {"other": {"command": "o"}, "phone": first["mcpServers"]["phone"]},
    }
    for text in ("{ // mine\n}", "[]", '{"mcpServers": []}'):
        path.write_text(text)
        assert install(lonely, "cursor").problem.startswith(f"{path} is not what was expected; svc mcp install print")
        assert path.read_text() == text
    path.unlink()
    path.mkdir()
    assert install(lonely, "cursor").problem == f"{path} cannot be read: is a directory"


@pytest.mark.parametrize(
    ("client", "program", "begins"),
    [("claude", "claude", ["mcp", "add", "--scope", "user", "phone", "--env"]), ("vscode", "code", ["--add-mcp"])],
)
def test_a_clients_own_command(lonely: CommandHome, client: str, program: str, begins: list[str]) -> None:
    absent = install(lonely, client)
    assert absent.code == 0
    assert absent.out.startswith(f"{program} is not on this host's path. Where it is:\n  {program} {begins[0]}")
    tools = lonely.home / "tools"
    tools.mkdir()
    called = lonely.home / "called"
    fake = tools / program
    fake.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {called}\n')
    fake.chmod(0o755)
    path = f"{tools}:/usr/bin:/bin"
    assert install(lonely, client, path).out == f"{program} knows the server 'phone' now.\n"
    assert called.read_text().splitlines()[: len(begins)] == begins
    fake.write_text("#!/bin/sh\necho there is one >&2; exit 1\n")
    assert install(lonely, client, path).problem == f"{program} failed: there is one"


def test_where_svc_is_not_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("SVC_HOME", raising=False)
    assert mcp._command() == ([str(tmp_path / "python"), "-P", "-m", "clients.commands.svc", "mcp"], {})
