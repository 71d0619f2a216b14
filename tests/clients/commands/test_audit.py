import json

from tests.clients.commands.command_process import CommandHome
from tests.servers.program_process import call, sign_in


def test_the_audit_log_of_a_relay(linked: CommandHome) -> None:
    linked.run("svc", "pair", "--register-code", "Q7M2ZK")
    token = sign_in(linked.port, pairing_code="Q7M2ZK")["session_token"]
    assert call(linked.port, "DELETE", f"/sessions/{token[:8]}").status == 200
    events = json.loads(linked.run("svc", "audit", "--json").out)
    assert [(each["event"], each["principal"][:8]) for each in events] == [
        ("session revoked", "operator"),
        ("paired", token[:8]),
    ]
    assert token not in json.dumps(events)
    shown = linked.run("svc", "audit", "PAIRED", "-n", "1").out
    assert f"paired           by {token[:8]}" in shown
    assert linked.run("svc", "audit", "no such text").out == "There are no such events.\n"


def test_no_store(lonely: CommandHome) -> None:
    assert "there is no database" in lonely.run("svc", "audit").problem
    assert "the API server does not run on this host" in lonely.run("svc", "undo", "1c2d3e4f").problem
