"""Complete scenarios on every loop: a chat, a model, the relay, a phone, and back; and calls that need approval."""

from __future__ import annotations

import json
from typing import Any

from clients.phone.emulator import EmulatedPhone
from clients.phone.emulator.png import draw
from svc_proto.phone.safety.settings import ConfirmationPolicy, SafetySettings
from tests.loops.environment import REMOTE, ApiHandle, Environment, bearer
from tests.loops.raw_event_stream import chat
from tests.loops.session_events import CheckedTurn, check_turn
from tests.support.servers.model_server import ScriptedModel, calls, last_result, plain

KEY = "sk-stories-3c90"
BEGIN = ["session.created", "run.started", "message.started"]
END = ["assistant.completed", "run.completed", "done"]
QUESTION = ["tool.pending", "approval.request", "approval.responded"]
ASKED = [*QUESTION, "tool.started", "tool.completed"]
MAIL = "com.example.mail"


def api_with(world: Environment, model: ScriptedModel, **config: Any) -> ApiHandle:
    return world.api(key=KEY, model_base_url=f"{world.peer(model)}/v1", model="small", **config)


def turn_of(world: Environment, api: ApiHandle, session: str, message: str) -> CheckedTurn:
    return check_turn(chat(world, api, session, message).rest())


TO_DELETE = ("Lunch on Friday?", "Delete")

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


def test_a_picture_that_a_second_client_fetches(relayed: Environment) -> None:
    backend = EmulatedPhone(name="Pixel")
    relayed.phone(backend=backend, name="Pixel")
    viewer = relayed.pair("Laptop", peer=REMOTE)
    model = ScriptedModel(
        [
            calls(("phone_screenshot", {})),
            lambda request: plain(f"Here it is:\n{last_result(request).splitlines()[-1]}"),
        ]
    )
    api = api_with(relayed, model)
    session = api.session()
    turn = turn_of(relayed, api, session, "What is on my screen?")
    marker = turn.text.splitlines()[-1]
    assert marker.startswith("MEDIA:svc-relay://"), turn.text
    assert api.messages(session)[-1]["content"] == turn.text
    path = f"/media/{marker.rpartition('/')[2]}"
    fetched = relayed.http("GET", path, headers=bearer(viewer.token), peer=REMOTE)
    assert (fetched.status, fetched.headers.get(b"content-type")) == (200, b"image/png")
    assert fetched.body == draw(backend.device.windows(), screen_on=backend.device.screen_on)
    assert relayed.http("GET", path, headers=bearer("no such token"), peer=REMOTE).status == 401


def test_a_phone_that_denies_a_command(relayed: Environment) -> None:
    """The model receives the refusal with its meaning, and the turn goes on."""
    relayed.phone(safety=SafetySettings(armed=True, answers=ConfirmationPolicy.DENY))
    tapped = [("phone_open_app", {"package": MAIL}), *(("phone_tap_text", {"text": text}) for text in TO_DELETE)]
    model = ScriptedModel([calls(*tapped), lambda request: plain(last_result(request))])
    api = api_with(relayed, model)
    turn = turn_of(relayed, api, api.session(), "Tap it")
    done = ["tool.started", "tool.completed"]
    assert turn.story == [*BEGIN, *done, *done, "tool.started", "tool.failed", "assistant.delta", *END]
    assert "denied" in turn.one("tool.failed")["error"]
    assert turn.text.startswith("error: 403 user_denied")


# --- approvals ------------------------------------------------------------------------------------------------------

CALLING = ("phone_call", {"number": "+15550100"})
OPENING = ("phone_send_intent", {"action": "android.intent.action.VIEW", "data": "https://example.com/"})


def answer(api: ApiHandle, run_id: str, choice: str, **more: object) -> tuple[int, Any]:
    """Answer the open approval request of a run; return status and body."""
    asked = api.request("GET", f"/v1/runs/{run_id}").json.get("approvals", [])
    named = asked[0]["call_id"] if asked else None
    answered = api.request("POST", f"/v1/runs/{run_id}/approval", {"choice": choice, "call_id": named, **more})
    return answered.status, answered.json


def test_an_approval_that_lets_the_phone_act(relayed: Environment) -> None:
    relayed.phone(name="Pixel")
    model = ScriptedModel([calls(OPENING), plain("Open.")])
    api = api_with(relayed, model)
    stream = chat(relayed, api, api.session(), "Open it", approvals=True)
    pending = stream.until("approval.request").data
    assert pending["args"] == OPENING[1]
    assert "/send_intent" not in [record["path"] for record in relayed.http("GET", "/bridge/activity").json["activity"]]
    assert answer(api, pending["run_id"], "once")[0] == 200
    turn = check_turn(stream.rest())
    assert turn.story == [*BEGIN, *ASKED, "assistant.delta", *END]
    assert relayed.http("GET", "/bridge/activity").json["activity"][0]["path"] == "/send_intent"


def test_a_phone_confirms_calls_itself(relayed: Environment) -> None:
    """A phone with gates confirms a call itself, so a chat that shows no approvals can place the call."""
    relayed.phone(name="Pixel")
    model = ScriptedModel([calls(CALLING), plain("Calling.")])
    api = api_with(relayed, model)
    turn = turn_of(relayed, api, api.session(), "Call Ada")
    assert turn.story == [*BEGIN, "tool.started", "tool.completed", "assistant.delta", *END]
    record = relayed.http("GET", "/bridge/activity").json["activity"][0]
    assert (record["path"], record["decision"]) == ("/call", "confirmed")
