"""A random turn of a model in each protocol: what is reported and, after a status of 200, what is stored."""

import json
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from svc_proto.api.config import ApiConfig
from tests.api.harness import KEY, ApiHarness
from tests.api.turn_script import PROTOCOLS, draw_turn, find_differences, request_of
from tests.support.servers.model_server import MODEL_PORT, ScriptedModel


@pytest.mark.parametrize("protocol", PROTOCOLS)
@given(seed=st.integers(0, 1_000_000))
@settings(max_examples=10)
def test_protocol_reports_the_turn_of_the_model(protocol: str, seed: int) -> None:
    turn = draw_turn(Random(seed), "unit")
    book = ApiHarness(ApiConfig(key=KEY, model_base_url=f"http://127.0.0.1:{MODEL_PORT}/v1", model="small"))
    book.serve(MODEL_PORT, ScriptedModel(each.answer() for each in turn.rounds))
    chat = book.session()
    path, body, streams = request_of(protocol, chat, turn)
    named = [(b"x-svc-session-id", chat.encode())] if protocol.startswith("completion") else []
    call = book.call("POST", path, body, headers=named)
    book.after(10.0)
    events = [(event.event, json.loads(event.data)) for event in call.stream() if event.data.startswith("{")]
    assert find_differences(turn, protocol, call.head.status, bytes(call.body), events if streams else ()) == {}
    if call.head.status != 200:
        return
    session = dict(call.head.headers).get(b"x-svc-session-id", chat.encode()).decode()
    stored = [(row["role"], row["content"], row.get("finish_reason"), row.get("tool_name"))
              for row in book.messages(session)]  # fmt: skip
    assert stored == turn.rows()
