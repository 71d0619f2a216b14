"""Who may call what: programs on this host, bearers of a session, browsers, strangers, those behind a proxy."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from svc_proto.agent.tools.pairing import DEVICE_NAME
from svc_proto.config import LocalTrust
from svc_proto.engine.local_secret import HEADER, LOCAL_SECRET
from tests.loops.boards import RELAY, Board
from tests.loops.programs import AGENT, install
from tests.loops.shells import runs
from tests.loops.virtual import VirtualWorld
from tests.loops.wires import Declined
from tests.loops.world import REMOTE, World, bearer

READY = (sys.executable, "-c", "import sys; print('{}', flush=True); sys.stdin.read()")

LOOPBACK_ONLY = [
    ("POST", "/pairing"),
    ("POST", "/pairing/register"),
    ("POST", "/pairing/approve"),
    ("POST", "/pairing/mint"),
    ("GET", "/relay/info"),
    ("GET", "/relay/security"),
    ("PATCH", "/relay/security"),
    ("GET", "/bridge/status"),
    ("GET", "/bridge/activity"),
    ("GET", "/bridge/devices"),
]


@pytest.mark.parametrize(("method", "path"), LOOPBACK_ONLY)
def test_routes_for_this_host_only(served: World, method: str, path: str) -> None:
    answer = served.http(method, path, peer=REMOTE)
    assert (answer.status, answer.json["ok"], answer.code) == (403, False, "loopback_only")
    assert served.http(method, path).status != 403


def test_a_refusal_comes_before_the_body(served: World) -> None:
    client = served.client(REMOTE)
    client.wire.send(b"POST /pairing/register HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n")
    assert client.wire.read_until(b"\r\n").startswith(b"HTTP/1.1 403")


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example"},
        {"host": "evil.example:8767"},
        {"host": "127.0.0.1.evil.example"},
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:9119"},
        {"origin": "http://localhost:3000"},
        {"sec-fetch-site": "same-site"},
        {"x-forwarded-for": "127.0.0.1"},
        {"x-real-ip": "127.0.0.1"},
        {"forwarded": "for=127.0.0.1"},
    ],
    ids=str,
)
def test_a_web_page_or_a_proxy_is_not_this_host(served: World, headers: dict[str, str]) -> None:
    assert served.http("POST", "/pairing", headers=headers).status == 403
    assert served.http("GET", "/relay/security", headers=headers).status == 403
    assert served.http("GET", "/sessions", headers=headers).status == 401
    assert served.http("GET", "/health", headers=headers).status == 200


@pytest.mark.parametrize(
    "headers", [{"host": "localhost"}, {"host": "[::1]:8767"}, {"sec-fetch-site": "none"}], ids=str
)
def test_a_program_on_this_host_is_this_host(served: World, headers: dict[str, str]) -> None:
    assert served.http("GET", "/relay/security", headers=headers).status == 200


def test_another_sites_page_pairs_nothing_and_blocks_nobody(served: World) -> None:
    foreign = {"origin": "http://localhost:25050"}
    code = served.http("POST", "/pairing/register", body=b'{"code": "EVIL66"}', headers=foreign)
    assert (code.status, code.code) == (403, "loopback_only")
    for _ in range(6):  # one more than the limiter would count
        with pytest.raises(Declined) as declined:
            served.websocket(headers=foreign)
        assert (declined.value.answer.status, declined.value.answer.code) == (403, "origin_not_allowed")
    assert served.sign_in(served.websocket(), pairing_code="EVIL66")["type"] == "auth.fail"
    served.pair()


def test_a_block_keeps_no_good_token_out(served: World) -> None:
    ws = served.pair(peer=REMOTE)
    for _ in range(5):
        assert served.sign_in(served.websocket(peer=REMOTE), pairing_code="WRONG1")["type"] == "auth.fail"
    with pytest.raises(Declined) as declined:
        served.websocket(peer=REMOTE)
    assert declined.value.answer.status == 429
    again = served.websocket(peer=REMOTE, headers=bearer(ws.token))
    assert served.sign_in(again, session_token=ws.token)["type"] == "auth.ok"


def test_the_local_secret_is_asked_for_and_shown_by_our_own_programs(world: World, tmp_path: Path) -> None:
    world.start_relay(local_trust=LocalTrust.SECRET)
    path = f"/{LOCAL_SECRET}"
    if isinstance(world, VirtualWorld):
        secret = world.relay_host.disk.get(world.relay_host.state + path).decode()
    else:
        secret = (tmp_path / path[1:]).read_text()
        assert (tmp_path / path[1:]).stat().st_mode & 0o777 == 0o600
    shown = {HEADER.decode(): secret}
    refused = world.http("POST", "/pairing")
    assert (refused.status, refused.code) == (403, "loopback_only")
    assert secret not in refused.body.decode()
    code = world.http("POST", "/pairing", headers=shown).json["code"]
    assert world.sign_in(world.websocket(peer=REMOTE), pairing_code=code)["type"] == "auth.ok"
    api = world.api()
    api.turn(api.session(), "/phone ping")  # the agent pairs itself
    names = [session["device_name"] for session in world.http("GET", "/sessions", headers=shown).json["sessions"]]
    assert DEVICE_NAME in names
    kept = Board(world, password="correct horse")
    known = {"authorization": "Basic OmNvcnJlY3QgaG9yc2U="}
    assert kept.ask("GET", f"{RELAY}/overview", headers=known).status == 200
    assert kept.relay("GET", "/overview").status == 401


def test_a_dashboard_shows_the_local_secret_for_nobody_in_particular(world: World) -> None:
    world.start_relay(local_trust=LocalTrust.SECRET)
    board = Board(world)
    assert board.relay("POST", "/pairing", {}).status == 403
    assert "has a password" in board.detail(board.relay("GET", "/overview"))["error"]


@pytest.mark.parametrize("authorization", ["Bearer nonsense", "Bearer", "Basic abc", "nonsense"])
def test_a_bad_bearer_is_a_401(served: World, authorization: str) -> None:
    for method, path in (("GET", "/sessions"), ("PATCH", "/sessions/abcd"), ("GET", "/ping"), ("POST", "/tap")):
        answer = served.http(method, path, headers={"authorization": authorization})
        assert (answer.status, answer.code) == (401, "unauthorized")


def test_device_control_needs_a_bearer_on_this_host_too(served: World) -> None:
    assert served.http("GET", "/ping").status == 401


def test_a_remote_bearer_sees_the_sessions(relayed: World) -> None:
    ws = relayed.pair()
    assert relayed.http("GET", "/sessions", peer=REMOTE).status == 401
    answer = relayed.http("GET", "/sessions", headers=bearer(ws.token), peer=REMOTE)
    assert [record["is_current"] for record in answer.json["sessions"]] == [True]
    lower = {"authorization": f"bearer {ws.token}"}
    assert relayed.http("GET", "/sessions", headers=lower, peer=REMOTE).status == 200


def test_a_session_without_a_live_bridge_grant_drives_nothing(relayed: World) -> None:
    ws = relayed.pair(ttl_seconds=3600, grants={"bridge": 1})
    assert relayed.http("GET", "/ping", headers=bearer(ws.token)).status == 503  # no phone, but allowed
    patched = relayed.http(
        "PATCH", f"/sessions/{ws.token[:8]}", headers=bearer(ws.token), body=b'{"grants": {"bridge": 0.001}}'
    )
    assert patched.status == 200
    relayed.eventually(lambda: relayed.http("GET", "/ping", headers=bearer(ws.token)).status == 403)
    assert relayed.http("GET", "/ping", headers=bearer(ws.token)).code == "grant_required"


# --- the end of a session -------------------------------------------------------------------------------------------


def is_running(world: World, pid: int) -> bool:
    if isinstance(world, VirtualWorld):
        return any(child.pid == pid for child in world.relay_host.children)
    return runs(pid)


def program_of(world: World) -> tuple[str, ...]:
    """An agent gateway; a simulated host gets its shell too."""
    if isinstance(world, VirtualWorld):
        install(world.relay_host, tmux=False)
        return (AGENT,)
    return READY


@pytest.mark.parametrize("how", ["revoke", "revoke itself", "expire"])
def test_the_end_of_a_session_ends_its_sockets_and_its_work(world: World, how: str) -> None:
    world.start_relay(terminal_tmux=False, user_shell="/bin/sh", tui_command=program_of(world))
    phone, witness = world.fake_phone("Phone"), world.pair("Witness")
    ws = world.pair("Caller")
    ws.say("terminal", "terminal.attach", {"session_name": "main", "shell": "/bin/sh"})
    shell = ws.hear()["payload"]["pid"]
    ws.say("tui", "tui.attach", {})
    while (message := ws.hear())["type"] != "tui.attached":
        assert message["type"] == "terminal.output"
    gateway = message["payload"]["pid"]
    calling = world.client().begin("GET", "/screen", headers=bearer(ws.token))
    phone.command()
    assert is_running(world, shell)
    assert is_running(world, gateway)
    path = f"/sessions/{ws.token[:8]}"
    if how == "expire":
        assert world.http("PATCH", path, headers=bearer(ws.token), body=b'{"ttl_seconds": 1}').status == 200
    else:
        caller = ws if how == "revoke itself" else witness
        answer = world.http("DELETE", path, headers=bearer(caller.token))
        assert (answer.status, answer.json["revoked_self"]) == (200, caller is ws)
    answer = calling.finish()
    assert (answer.status, answer.code) == (401, "unauthorized")
    said = []
    while (message := ws.hear())["type"] != "error":
        said.append(message["type"])
    assert {*said} <= {"terminal.output", "tui.rpc.event"}
    assert (message["channel"], message["payload"]["error"]) == ("system", "session_ended")
    assert ws.wait_closed().code == 1008
    world.eventually(lambda: not is_running(world, shell))
    world.eventually(lambda: not is_running(world, gateway))
    for request in (("GET", "/ping"), ("GET", "/media/x"), ("POST", "/clipboard/inbox"), ("POST", "/media/upload")):
        assert world.http(*request, headers=bearer(ws.token)).status == 401
    assert world.sign_in(world.websocket(), session_token=ws.token)["type"] == "auth.fail"
    witness.pong()  # and nobody else notices
    calling = world.client().begin("GET", "/ping", headers=bearer(witness.token))
    phone.respond(phone.command()["request_id"], {"fine": True})
    assert calling.finish().json == {"fine": True}


def test_the_end_of_a_phones_session_answers_those_who_wait_for_it(relayed: World) -> None:
    phone, caller = relayed.fake_phone("Phone"), relayed.pair("Caller")
    calling = relayed.client().begin("GET", "/screen", headers=bearer(caller.token))
    phone.command()
    assert relayed.http("DELETE", f"/sessions/{phone.token[:8]}").status == 200
    answer = calling.finish()
    assert (answer.status, answer.code) == (502, "phone_disconnected")
    assert relayed.http("GET", "/ping", headers=bearer(caller.token)).code == "phone_not_connected"


# --- profiles -------------------------------------------------------------------------------------------------------


def test_a_new_profile_is_told_to_everybody(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rescan every 30 s (wire core 1.8); on a real clock a tenth of a second will do."""

    def write(path: str, text: str) -> None:
        if isinstance(world, VirtualWorld):
            world.relay_host.disk.put(f"{world.relay_host.state}{path}", text.encode())
        else:
            file = tmp_path / path[1:]
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)

    if not isinstance(world, VirtualWorld):
        monkeypatch.setattr("svc_proto.relay.service.RESCAN_EVERY", 0.1)
    world.start_relay()
    clients = [world.pair(name) for name in ("One", "Two")]
    began = world.clock()
    write("/profiles/work/config.yaml", json.dumps({"model": {"default": "m-1"}, "description": "At work"}))
    for ws in clients:
        message = ws.hear(40.0)
        assert (message["channel"], message["type"]) == ("pairing", "profiles.updated")
        assert message["profiles"] == message["payload"]["profiles"]
        work = next(profile for profile in message["profiles"] if profile["name"] == "work")
        if work["model"] == "unknown":  # it was seen half written
            continue
        assert (work["model"], work["description"]) == ("m-1", "At work")
    if isinstance(world, VirtualWorld):
        assert 29.0 < world.clock() - began < 31.0
    for ws in clients * 3:
        if isinstance(world, VirtualWorld):
            world.pass_time(6.0)
        ws.pong()
    late = world.websocket()
    message = world.sign_in(late, session_token=clients[0].token)
    assert [profile["name"] for profile in message["payload"]["profiles"]] == ["default", "work"]
