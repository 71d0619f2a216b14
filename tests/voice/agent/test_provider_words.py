"""The broker's orders in a vendor's words."""

from __future__ import annotations

import json

import pytest

from svc_proto.voice.agent.native import provider_words
from svc_proto.voice.contract import RealtimeOptions
from svc_proto.voice.keys import VendorAccess
from svc_proto.voice.providers.realtime import Dialect, OpenAiDialect, XaiDialect
from svc_proto.voice.realtime import orders

OPTIONS = RealtimeOptions(model="m", voice="v", sample_rate=24_000, instructions="", tools=())
CREATE = "response.create"


def dialect(*, xai: bool = False) -> Dialect:
    access = VendorAccess("somebody", "wss://example.test/v1/realtime", "a key")
    return XaiDialect(access, OPTIONS) if xai else OpenAiDialect(access, OPTIONS)


@pytest.mark.parametrize(
    ("order", "kinds"),
    [
        (orders.AppendInput(b"\1\0"), ["input_audio_buffer.append"]),
        (orders.CommitInput(), ["input_audio_buffer.commit"]),
        (orders.ClearInput(), ["input_audio_buffer.clear"]),
        (orders.SayText("hello"), ["conversation.item.create"]),
        (orders.Respond(), [CREATE]),
        (orders.ReadAloud("It is done."), [CREATE]),
        (orders.Summarize("It is done."), [CREATE]),
        (orders.CancelResponse(), ["response.cancel"]),
        (orders.AnswerCall("k1", {"ok": True}), ["conversation.item.create"]),
    ],
)
def test_each_order(order: orders.ProviderOrder, kinds: list[str]) -> None:
    assert [message["type"] for message in provider_words(order, dialect(), {})] == kinds


def test_what_is_to_be_spoken_is_in_them() -> None:
    for order in (orders.ReadAloud("It is done."), orders.Summarize("It is done.")):
        for xai in (False, True):
            assert "It is done." in json.dumps(provider_words(order, dialect(xai=xai), {}))
    assert provider_words(orders.Summarize("x"), dialect(), {}) != provider_words(orders.ReadAloud("x"), dialect(), {})


def test_the_output_of_a_function_says_what_the_session_is() -> None:
    (message,) = provider_words(orders.AnswerCall("k1", {"ok": True}), dialect(), {"engine": "realtime_agent"})
    item = message["item"]
    assert isinstance(item, dict)
    assert (item["type"], item["call_id"]) == ("function_call_output", "k1")
    assert json.loads(item["output"]) == {"ok": True, "interface": {"engine": "realtime_agent"}}
