"""The dashboard on every loop, beside a relay, an API server and a phone: what it shows is what there is."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

import pytest

from svc_proto.dashboard.agent_calls import PREFIX
from svc_proto.wire.sse import EventStreamDecoder
from tests.loops.boards import FILES, RELAY, Board
from tests.loops.world import REMOTE, World, bearer
from tests.peers.canned import Canned, http

KEY = "sk-dash-93c1"
PASSWORD = "correct horse"
PATIENCE = 0.3  # s, in place of 5: real loops have to wait it out


def test_what_there_is_is_shown(relayed: World) -> None:
    board = Board(relayed)
    invite = board.relay("POST", "/pairing", {"mode": "lan", "ttl_seconds": 3600}).json
    assert json.loads(invite["qr_payload"])["endpoints"][0]["role"] == "lan"
    phone = relayed.phone(code=invite["code"], name="Pixel <b>")
    assert relayed.http("GET", "/ping", headers=bearer(phone.token)).status == 200
    refused = relayed.http(
        "POST", "/open_app", headers=bearer(phone.token), body=json.dumps({"package": "com.chase.sig.android"}).encode()
    )
    assert refused.status == 403
    (session,) = board.relay("GET", "/sessions").json["sessions"]
    assert (session["device_name"], session["token_prefix"]) == ("Pixel <b>", phone.token[:8])
    records = board.relay("GET", "/bridge-activity?limit=10").json["activity"]
    assert [(record["path"], record["decision"]) for record in records] == [
        ("/open_app", "blocked"),
        ("/ping", "executed"),
    ]
    assert board.relay("GET", "/overview").json["paired_device_count"] == 1
    assert board.relay("GET", "/media").json["media"] == []
    assert board.relay("GET", "/push").json["configured"] is False
    assert board.relay("DELETE", f"/sessions/{phone.token[:3]}zzz").status == 404
    assert board.relay("DELETE", f"/sessions/{phone.token[:8]}").json["revoked"] == phone.token[:8]
    assert phone.exit_code() == 1  # the relay refuses its token now
    assert board.relay("GET", "/sessions").json["sessions"] == []


def test_the_page_and_who_may_see_it(world: World) -> None:
    board = Board(world)
    assert board.ask("GET", "/").body == FILES["index.html"]
    assert board.ask("GET", "/", headers={"host": "rebound.example"}).status == 403
    assert board.ask("GET", f"{RELAY}/push", headers={"origin": "https://evil.example"}).status == 403
    assert board.ask("GET", "/", peer=REMOTE).status == 403


def test_with_a_password(world: World) -> None:
    board = Board(world, password=PASSWORD)
    assert board.ask("GET", "/", peer=REMOTE).status == 401
    known = {"authorization": "Basic " + b64encode(f"me:{PASSWORD}".encode()).decode()}
    assert board.ask("GET", "/", headers=known, peer=REMOTE).status == 200
    assert PASSWORD not in repr(board.server.logs)


@pytest.mark.parametrize(
    ("peer", "word"),
    [
        (Canned(), "no answer within 0.3 seconds"),
        (Canned(http(200, b"<html>")), "it did not answer in JSON"),
        (Canned(http(200, b"{}", length=99), closes=True), "the connection ended within a message"),
        (Canned(http(200, b"x" * (9 << 20))), "the answer has more than"),
    ],
    ids=["silent", "no JSON", "cut", "huge"],
)
def test_a_relay_that_is_none(world: World, peer: Canned, word: str) -> None:
    board = Board(world, relay_url=world.peer(peer), patience=5.0 if word.startswith("the answer") else PATIENCE)
    answer = board.relay("GET", "/overview")
    assert answer.status == 502
    assert word in board.detail(answer)


def test_a_relay_that_goes_and_comes_back(relayed: World) -> None:
    board = Board(relayed)
    assert board.relay("GET", "/overview").status == 200
    relayed.relay.stop()
    gone = board.relay("GET", "/overview")
    assert gone.status == 502
    assert board.detail(gone).startswith(f"relay unreachable at 127.0.0.1:{relayed.relay.port}: ")
    relayed.relay.restart()
    assert board.relay("GET", "/overview").status == 200


def chat(board: Board, session: str, message: str) -> list[tuple[str, dict[str, Any]]]:
    answer = board.ask("POST", f"{PREFIX}/sessions/{session}/chat/stream", {"message": message})
    assert answer.status == 200, answer
    return [(event.event, json.loads(event.data)) for event in EventStreamDecoder().receive_data(answer.body)]


def test_a_chat_that_moves_the_phone(relayed: World) -> None:
    relayed.phone(name="Pixel")
    api = relayed.api(key=KEY)
    board = Board(relayed, api=api, api_key=KEY)
    session = board.ask("POST", f"{PREFIX}/sessions", {}).json["id"]
    events = chat(board, session, "/phone open_app com.example.mail")
    done = [data["tool_name"] for name, data in events if name == "tool.completed"]
    assert done == ["phone_open_app"], events
    assert events[-1][0] == "done"
    assert chat(board, session, "/count 5")[-1][0] == "done"
    assert board.relay("GET", "/bridge-activity").json["activity"][0]["path"] == "/open_app"
    assert len(board.ask("GET", f"{PREFIX}/sessions/{session}/messages").json["messages"]) == 6
    assert board.ask("DELETE", f"{PREFIX}/sessions/{session}").status == 204
    assert KEY not in repr(board.server.logs)


def test_a_turn_is_seen_as_it_comes_and_can_be_stopped(world: World) -> None:
    api = world.api(key=KEY)
    board = Board(world, api=api, api_key=KEY)
    session = board.ask("POST", f"{PREFIX}/sessions", {}).json["id"]
    reading = board.client()
    body = json.dumps({"message": "/wait 10"}).encode()
    reading.begin("POST", f"{PREFIX}/sessions/{session}/chat/stream", body=body)
    told = reading.wire.read_until(b"event: tool.started")
    run = json.loads(told.partition(b"event: run.started\ndata: ")[2].partition(b"\n")[0])["run_id"]
    assert board.ask("GET", f"{PREFIX}/runs/{run}").json["status"] == "running"
    assert board.ask("POST", f"{PREFIX}/runs/{run}/stop").status == 200
    assert b'"interrupted":true' in reading.wire.read_until(b"event: done")
    assert board.ask("GET", f"{PREFIX}/runs/{run}").json["status"] == "cancelled"
