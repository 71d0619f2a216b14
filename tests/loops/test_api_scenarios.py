"""Test of a model that drives the phone through API server and relay."""

from __future__ import annotations

import json
from typing import Any

from clients.phone.emulator import EmulatedPhone
from tests.loops.environment import ApiHandle, Environment
from tests.loops.raw_event_stream import chat
from tests.loops.session_events import CheckedTurn, check_turn
from tests.support.servers.model_server import ScriptedModel, calls, last_result, plain

KEY = "sk-stories-3c90"
BEGIN = ["session.created", "run.started", "message.started"]
END = ["assistant.completed", "run.completed", "done"]
MAIL = "com.example.mail"


def api_with(world: Environment, model: ScriptedModel, **config: Any) -> ApiHandle:
    return world.api(key=KEY, model_base_url=f"{world.peer(model)}/v1", model="small", **config)


def turn_of(world: Environment, api: ApiHandle, session: str, message: str) -> CheckedTurn:
    return check_turn(chat(world, api, session, message).rest())


# --- a phone --------------------------------------------------------------------------------------------------------


def test_a_model_drives_the_phone(relayed: Environment) -> None:
    backend = EmulatedPhone(name="Pixel")
    relayed.phone(backend=backend, name="Pixel")
    model = ScriptedModel(
        [
            calls(("phone_open_app", {"package": MAIL}), ("phone_tap_text", {"text": "Compose"}), text="I open it."),
            lambda request: calls(("phone_current_app", {})) if "Compose" in str(request) else plain("lost"),
            lambda request: plain(f"You are in {json.loads(last_result(request))['package']}."),
        ]
    )
    api = api_with(relayed, model)
    session = api.session()
    turn = turn_of(relayed, api, session, "Write a mail")
    tools = ["tool.started", "tool.completed"]
    assert turn.story == [*BEGIN, "assistant.delta", *tools, *tools, *tools, "assistant.delta", *END]
    assert turn.text == f"I open it.\n\nYou are in {MAIL}."
    assert [told.data["tool_name"] for told in turn.all("tool.completed")] == [
        "phone_open_app",
        "phone_tap_text",
        "phone_current_app",
    ]
    offered = {tool["function"]["name"] for tool in model.seen[0]["tools"]}
    assert {"phone_screen", "phone_tap_text", "memory"} <= offered
    activity = relayed.http("GET", "/bridge/activity").json["activity"]
    acts = [record["path"] for record in activity if record["path"] != "/screen"]
    assert acts == ["/current_app", "/tap", "/open_app"]
    assert [row["role"] for row in api.messages(session)].count("tool") == 3


# --- approvals ------------------------------------------------------------------------------------------------------
