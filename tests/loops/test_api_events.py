"""The thirteen events of a session's stream on every loop, judged by their bytes (SPEC.md "Events", wire api 4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.loops.session_events import Turn, check_events, check_turn
from tests.loops.streams import chat
from tests.loops.world import ApiHandle, World
from tests.peers.model import Answer, ScriptedModel, calls, plain

KEY = "sk-events-77aa"
MODEL_KEY = "sk-model-0d1e"
NOWHERE = "http://127.0.0.1:9"  # no relay listens there
BEGIN = ["session.created", "run.started", "message.started"]
END = ["assistant.completed", "run.completed", "done"]
Start = Callable[..., ApiHandle]


@pytest.fixture
def start(world: World) -> Start:
    """Start the API with a model that gives these answers; without any, with the built-in agent."""

    def started(*answers: Answer, **config: Any) -> ApiHandle:
        if answers:
            url = world.peer(ScriptedModel(answers))
            config |= {"model_base_url": f"{url}/v1", "model": "small", "model_api_key": MODEL_KEY}
        return world.api(key=KEY, **{"relay_url": NOWHERE, **config})

    return started


def turn_of(world: World, api: ApiHandle, session: str, message: str = "Hi") -> Turn:
    """A whole turn, checked."""
    stream = chat(world, api, session, message)
    turn = check_turn(stream.rest())
    stream.close()
    assert KEY not in repr(stream.body)
    assert MODEL_KEY not in repr(stream.body)
    return turn


def rows_of(api: ApiHandle, session: str) -> list[tuple[str, object]]:
    return [(row["role"], row["content"]) for row in api.messages(session)]


def test_a_plain_turn(world: World, start: Start) -> None:
    api = start(plain('Grüße aus\u2028Köln 🙂 \\ "quoted"\nnext line'))
    session = api.session(title="Reise 🙂")
    stream = chat(world, api, session, "Hällo")
    assert stream.field("content-type") == "text/event-stream"
    assert stream.field("cache-control") == "no-cache"
    assert stream.field("x-accel-buffering") == "no"
    assert stream.field("x-svc-session-id") == session
    assert stream.field("content-length") is None
    turn = check_turn(stream.rest())
    assert turn.story == [*BEGIN, "assistant.delta", *END]
    assert len(turn.all("assistant.delta")) == 6
    assert turn.said == 'Grüße aus\u2028Köln 🙂 \\ "quoted"\nnext line'
    assert turn.one("session.created")["title"] == "Reise 🙂"
    assert {told.data["session_id"] for told in turn.events} == {session}
    completed = turn.one("run.completed")
    assert (completed["completed"], completed["partial"], completed["interrupted"]) == (True, False, False)
    assert (completed["api_calls"], completed["usage"]["output_tokens"]) == (1, 6)
    user, answer = api.messages(session)
    asked = turn.one("run.started")["user_message"]
    assert (user["id"], user["content"]) == (asked["id"], asked["content"]) == (asked["id"], "Hällo")
    assert (answer["id"], answer["content"]) == (completed["message_id"], turn.said)
    assert answer["usage"] == completed["usage"]


def test_a_turn_stopped_while_a_tool_runs(world: World, start: Start) -> None:
    api = start(calls(("demo_wait", {"seconds": 9})), plain("Again."))
    session = api.session()
    stream = chat(world, api, session, "Hi")
    run_id = stream.until("tool.started").data["run_id"]
    assert api.ask("POST", f"/v1/runs/{run_id}/stop").status == 200
    turn = check_turn(stream.rest())
    assert turn.one("run.completed")["interrupted"] is True
    assert turn_of(world, api, session).said == "Again."


@pytest.mark.parametrize("leave", ["abort", "close"])
def test_a_client_that_drops_and_polls(world: World, start: Start, leave: str) -> None:
    """Wire api 4.5: it looks for its own row, then for an answer that does not change over two looks."""
    api = start(plain("one two three four").slow(0.03))
    session = api.session()
    stream = chat(world, api, session, "Hi")
    stream.until("assistant.delta")
    getattr(stream.wire, leave)()
    assert rows_of(api, session)[0] == ("user", "Hi")
    world.eventually(lambda: len(api.messages(session)) == 2)
    rows = api.messages(session)
    assert rows_of(api, session) == [("user", "Hi"), ("assistant", "one two three four")]
    assert api.messages(session) == rows
    told = stream.body.split(b"\n\n")
    assert b"run.started" in told[1]
    assert rows[1]["id"].encode() in told[2]


def test_events_as_far_as_they_were_read_are_the_beginning_of_a_turn(world: World, start: Start) -> None:
    api = start(plain("one two three").stuck(3))
    stream = chat(world, api, api.session(), "Hi")
    events = [stream.event() for _ in range(5)]
    check_events([told for told in events if told is not None])
    stream.close()


@pytest.mark.parametrize(
    ("line", "story"),
    [
        ("/count 3", ["assistant.delta"]),
        ("/think", ["tool.progress", "assistant.delta"]),
        ("/memory add likes tea", ["tool.started", "memory.updated", "tool.completed", "assistant.delta"]),
        ("/fail", ["tool.started", "tool.failed", "assistant.delta"]),
    ],
)
def test_the_built_in_agent(world: World, start: Start, line: str, story: list[str]) -> None:
    api = start()
    assert turn_of(world, api, api.session(), line).story == [*BEGIN, *story, *END]
