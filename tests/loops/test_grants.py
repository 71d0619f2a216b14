"""Grants as a boundary: what a pairing withholds is neither shown nor served, over a restart as well."""

from __future__ import annotations

from svc_proto.machines.grants import CHANNELS
from tests.loops.wires import Ws
from tests.loops.world import World, bearer

WITHHELD = {"terminal": False, "tui": False}


def declined(ws: Ws, channel: str) -> None:
    ws.say(channel, f"{channel}.attach", {"cols": 80, "rows": 24}, "a-1")
    answer = ws.hear()
    assert (answer["channel"], answer["id"], answer["payload"]["error"]) == ("system", "a-1", "grant_required")


def asked_for(world: World, token: str, body: object, *, local: bool = False) -> tuple[int, str]:
    answer = world.http("PATCH", f"/sessions/{token[:8]}", body, headers=None if local else bearer(token))
    return answer.status, "" if answer.status == 200 else answer.code


def test_a_withheld_shell_is_opened_by_this_host_only(world: World) -> None:
    relay = world.start_relay(durable=True)
    ws = world.pair("Phone", grants=WITHHELD)
    token = ws.token
    for channel in WITHHELD:
        declined(ws, channel)
    assert asked_for(world, token, {"ttl_seconds": 0, "grants": {"terminal": 0}}) == (403, "withheld")
    ws.close()
    ws.wire.close()  # a stop waits for who does not go
    relay.stop()
    relay.restart()
    ws = world.websocket()
    payload = ws.sign_in(session_token=token)["payload"]
    (listed,) = world.http("GET", "/sessions").json["sessions"]
    assert payload["grants"].keys() == listed["grants"].keys() == set(CHANNELS) - WITHHELD.keys()
    declined(ws, "terminal")
    assert asked_for(world, token, {"grants": {"terminal": 60}}) == (403, "withheld")
    assert asked_for(world, token, {"grants": {"terminal": 60}}, local=True) == (200, "")
    ws.say("terminal", "terminal.list", {})
    assert ws.hear()["channel"] == "terminal"
    declined(ws, "tui")
