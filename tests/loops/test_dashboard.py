"""The dashboard on every loop, beside a relay, an API server and a phone: it shows their present state."""

from __future__ import annotations

import json
from typing import Any

from svc_proto.dashboard.agent_proxy import PREFIX
from svc_proto.wire.sse import EventStreamDecoder
from tests.loops.dashboard_client import DashboardServer
from tests.loops.environment import Environment, bearer

KEY = "sk-dash-93c1"


def test_the_dashboard_shows_the_present_state(relayed: Environment) -> None:
    board = DashboardServer(relayed)
    invite = board.relay("POST", "/pairing", {"mode": "lan", "ttl_seconds": 3600}).json
    assert json.loads(invite["qr_payload"])["endpoints"][0]["role"] == "lan"
    phone = relayed.phone(code=invite["code"], name="Pixel <b>")
    assert relayed.http("GET", "/ping", headers=bearer(phone.token)).status == 200
    refused = relayed.http("POST", "/open_app", {"package": "com.chase.sig.android"}, headers=bearer(phone.token))
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


def chat(board: DashboardServer, session: str, message: str) -> list[tuple[str, dict[str, Any]]]:
    answer = board.request("POST", f"{PREFIX}/sessions/{session}/chat/stream", {"message": message})
    assert answer.status == 200, answer
    return [(event.event, json.loads(event.data)) for event in EventStreamDecoder().receive_data(answer.body)]


def test_a_chat_that_moves_the_phone(relayed: Environment) -> None:
    relayed.phone(name="Pixel")
    api = relayed.api(key=KEY)
    board = DashboardServer(relayed, api=api, api_key=KEY)
    session = board.request("POST", f"{PREFIX}/sessions", {}).json["id"]
    events = chat(board, session, "/phone open_app com.example.mail")
    done = [data["tool_name"] for name, data in events if name == "tool.completed"]
    assert done == ["phone_open_app"], events
    assert events[-1][0] == "done"
    assert chat(board, session, "/count 5")[-1][0] == "done"
    activity = board.relay("GET", "/bridge-activity").json["activity"]
    assert "/open_app" in [record["path"] for record in activity]
    assert len(board.request("GET", f"{PREFIX}/sessions/{session}/messages").json["messages"]) == 6
    assert board.request("DELETE", f"{PREFIX}/sessions/{session}").status == 204
    assert KEY not in repr(board.server.logs)
