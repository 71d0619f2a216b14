"""Test of a dashboard beside a relay: pairing of a phone, its commands in the activity log, and its revocation."""

from __future__ import annotations

import json

from tests.loops.dashboard_client import DashboardServer
from tests.loops.environment import Environment, bearer


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
