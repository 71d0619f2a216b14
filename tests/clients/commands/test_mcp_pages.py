"""Tests of the pages about MCP clients: configurations for this host and others, headings, and programs that run."""

import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from clients.commands import mcp
from tests.clients.commands.command_process import CommandHome
from tests.servers.program_process import ROOT, TIMEOUT, call, running

PAGES = {page.stem: page.read_text() for page in (ROOT / "docs/howto/mcp").glob("*.md")}
OURS = {"command": "svc", "args": ["mcp"]}
HEADINGS = ("What it asks", "Only looking", "Several phones", "Ending it", "What goes wrong")


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGES[page], re.DOTALL)


def configs(page: str) -> list[Any]:
    """Return the JSON blocks of a page, which are client configurations."""
    return [json.loads(block) for block in blocks(page, "json")]


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """Return a function that runs `svc mcp install` for a client and returns its output; no client is on the path."""
    monkeypatch.setattr(mcp, "_command", lambda: (["svc", "mcp"], {}))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))

    def install(client: str) -> str:
        assert mcp.install.callback is not None
        mcp.install.callback(client=client)
        return capsys.readouterr().out

    return install


def test_the_pages_show_the_written_configurations(installed: Any, tmp_path: Path) -> None:
    printed = json.loads(installed("print"))
    assert printed == {"mcpServers": {"phone": OURS}}
    assert configs("claude-code")[0] == printed
    installed("cursor")
    assert configs("cursor")[0] == json.loads((tmp_path / ".cursor/mcp.json").read_text()) == printed
    (told,) = re.findall(r"code --add-mcp '(.*)'", installed("vscode"))
    assert configs("vscode")[0] == {"servers": {(entry := json.loads(told)).pop("name"): entry}}
    assert "claude mcp add --scope user phone -- svc mcp" in installed("claude")
    assert "claude mcp add --scope user phone -- svc mcp" in PAGES["claude-code"]


def test_configurations_for_other_hosts() -> None:
    for page, member in (("cursor", "mcpServers"), ("vscode", "servers")):
        for config in configs(page)[1:]:
            assert config[member]["phone"]["url"] == "https://home.example/mcp"
    tools = {f"mcp__phone__{tool}" for tool in ("phone_screen", "phone_find_nodes", "phone_current_app")}
    assert tools == {*configs("claude-code")[1]["permissions"]["allow"]}


def test_each_page_has_all_headings() -> None:
    assert set(PAGES) == {"claude-code", "cursor", "vscode", "open-webui", "script"}
    for name, text in PAGES.items():
        if name != "script":
            assert [heading for heading in HEADINGS if f"\n## {heading}\n" not in text] == [], name
        assert "svc pair --revoke" in text
        assert "(../../reference/mcp.md#what-goes-wrong)" in text


@pytest.mark.skipif(find_spec("mcp") is None, reason="the package mcp is not installed")
def test_the_programs_of_the_pages_run(linked: CommandHome, tmp_path: Path) -> None:
    first, second = blocks("script", "python")
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "svc").write_text(f'#!/bin/sh\nexec {sys.executable} -m clients.commands.svc "$@"\n')
    (tools / "svc").chmod(0o755)
    settings = ", ".join(
        f"{name!r}: {linked.env[name]!r}" for name in linked.env if name.startswith(("SVC_", "RELAY_"))
    )
    env = {
        **os.environ,
        **linked.env,
        "PATH": f"{tools}:{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]),
    }
    code = linked.run("svc", "pair", "--json").json["relay"]["code"]
    phone = ("--remote", linked.url, "--code", code, "--master", "on", "--allow")

    def run(program: str, **more: str) -> str:
        command = [sys.executable, "-c", program]
        done = subprocess.run(
            command, env={**env, **more}, capture_output=True, text=True, timeout=TIMEOUT, check=False
        )
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout

    with running(linked.home, "clients.phone", *phone) as there:
        there.line("^paired: session ")
        few = f"env={{'PYTHONPATH': {env['PYTHONPATH']!r}, {settings}}}"
        assert "Inbox" in run(first.replace('args=["mcp"]', f'args=["mcp"], {few}'))
        token = linked.run("svc", "mcp", "token", "scripts", "--json").json["token"]
        told = run(second, PHONE_TOKEN=token, PHONE_URL=f"http://127.0.0.1:{linked.port}/mcp")
        assert told.splitlines() == ['allowed: Broadcast? phone_broadcast {"action":"com.example.HELLO"}', "sent"]
    (done,) = [
        row for row in call(linked.port, "GET", "/bridge/activity").body["activity"] if row["path"] == "/broadcast"
    ]
    assert (done["decision"], done["asked_by"]) == ("executed", "MCP: scripts")
