import re

from tests.clients.commands.command_process import CommandHome, finish
from tests.mcp.http_harness import HANDSHAKE, TYPES, message
from tests.servers.program_process import call


def status(linked: CommandHome, token: str) -> int:
    about = message("initialize", protocolVersion=HANDSHAKE, capabilities={})
    return call(linked.port, "POST", "/mcp", about, token=token, headers=TYPES).status


def test_a_token_opens_mcp_until_its_session_is_revoked(linked: CommandHome) -> None:
    told = linked.run("svc", "mcp", "token", "Open WebUI", "--days", "2", "--json").json
    url = f"{linked.url.replace('ws', 'http', 1)}/mcp"
    assert (told["url"], told["name"], told["days"]) == (url, "MCP: Open WebUI", 2)
    assert status(linked, told["token"]) == 200
    (session,) = [
        row for row in call(linked.port, "GET", "/sessions").body["sessions"] if row["device_name"] == told["name"]
    ]
    assert 86_400 < session["expires_at"] - session["created_at"] <= 2 * 86_400
    assert [channel for channel, until in session["grants"].items() if until] == ["bridge"]
    assert linked.run("svc", "pair", "--revoke", session["token_prefix"]).code == 0
    assert status(linked, told["token"]) == 401


def test_a_token_that_may_only_look(linked: CommandHome) -> None:
    token = linked.run("svc", "mcp", "token", "watcher", "--read-only", "--json").json["token"]
    (session,) = call(linked.port, "GET", "/sessions").body["sessions"]
    assert (session["device_name"], [*session["grants"]]) == ("MCP: watcher", ["bridge:read"])
    assert status(linked, token) == 200
    assert call(linked.port, "GET", "/screen", token=token).status == 401  # the token opens `/mcp` alone


def test_a_token_is_shown_only_at_a_terminal(linked: CommandHome) -> None:
    hidden = linked.run("svc", "mcp", "token")
    assert (hidden.code, hidden.out) == (2, "")
    assert hidden.problem == "a token is shown at a terminal alone; --json writes it elsewhere"
    code, shown = finish(linked.spawn("svc", "mcp", "token", "scripts"))
    found = re.search(r"[0-9a-f]{64}", shown)
    assert found is not None
    assert (code, status(linked, found[0])) == (0, 200)


def test_without_a_relay(lonely: CommandHome) -> None:
    failed = lonely.run("svc", "mcp", "token", "--json")
    assert failed.code == 1
    assert "is it running? svc up, svc doctor" in failed.problem
