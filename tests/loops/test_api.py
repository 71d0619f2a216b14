"""Tests of the API server: turns of a model, and sessions after a stop or a kill."""

import json
from typing import Any

from svc_proto.wire.sse import EventStreamDecoder
from tests.loops.clients import PendingResponse
from tests.loops.environment import ApiHandle, Environment
from tests.support.servers.model_server import ScriptedModel, plain

KEY = "sk-loop-41f0"


def said(events: list[tuple[str, dict[str, Any]]]) -> str:
    return "".join(data["delta"] for name, data in events if name == "assistant.delta")


def test_a_turn_of_a_model_on_another_host(world: Environment) -> None:
    url = world.peer(ScriptedModel([plain("Good morning.")]))
    api = world.api(key=KEY, model_base_url=f"{url}/v1", model="m", model_api_key="sk-model-77")
    session = api.session()
    assert said(api.turn(session, "Hi")) == "Good morning."
    assert [row["content"] for row in api.messages(session)] == ["Hi", "Good morning."]
    assert "sk-model" not in repr(api.server.logs)


def begin_turn(api: ApiHandle, session: str, message: str) -> PendingResponse:
    """Start a turn, wait until the user's message is stored, and return the pending response."""
    path = f"/api/sessions/{session}/chat/stream"
    turn = api.client().begin("POST", path, {"message": message}, headers=api.headers)
    for _ in range(1_000):
        if api.messages(session):
            return turn
    raise TimeoutError("the turn does not begin")


def test_a_stop_in_the_middle_of_a_turn(world: Environment) -> None:
    """Check that a stop ends the stream of a turn regularly, and that its partial answer is stored."""
    api = world.api(key=KEY, durable=True)
    session = api.session()
    client = begin_turn(api, session, "/count 5000")
    api.server.begin_stop()
    events = EventStreamDecoder().receive_data(client.finish().body)
    client.wire.close()
    assert [event.event for event in events[-3:]] == ["assistant.completed", "run.completed", "done"]
    completed = json.loads(events[-3].data)
    assert (completed["interrupted"], completed["completed"]) == (True, False)
    assert api.server.exit_code() == 0
    api.server.restart()
    rows = api.messages(session)
    assert [row["content"] for row in rows] == [
        "/count 5000",
        *([completed["content"]] if completed["content"] else []),
    ]
