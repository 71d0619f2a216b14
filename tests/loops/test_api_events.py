"""Test of a client that disconnects from a turn's stream and polls the messages of its session (wire api 4.5)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.loops.environment import ApiHandle, Environment
from tests.loops.raw_event_stream import chat
from tests.support.servers.model_server import ModelAnswer, ScriptedModel, plain

KEY = "sk-events-77aa"
MODEL_KEY = "sk-model-0d1e"
NOWHERE = "http://127.0.0.1:9"  # no relay listens there
Start = Callable[..., ApiHandle]


@pytest.fixture
def start(world: Environment) -> Start:
    """Return a function that starts an API server, with a scripted model if answers are given."""

    def started(*answers: ModelAnswer, **config: Any) -> ApiHandle:
        if answers:
            url = world.peer(ScriptedModel(answers))
            config |= {"model_base_url": f"{url}/v1", "model": "small", "model_api_key": MODEL_KEY}
        return world.api(key=KEY, **{"relay_url": NOWHERE, **config})

    return started


def rows_of(api: ApiHandle, session: str) -> list[tuple[str, object]]:
    return [(row["role"], row["content"]) for row in api.messages(session)]


@pytest.mark.parametrize("leave", ["abort", "close"])
def test_a_client_that_drops_and_polls(world: Environment, start: Start, leave: str) -> None:
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
