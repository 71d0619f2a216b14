"""The frame of WebSocket messages (wire core 1.2)."""

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_proto.basics.errors import RemoteProtocolError
from svc_proto.schema.envelope import Envelope, parse_envelope, parse_message, write_envelope
from svc_proto.schema.json_object import JsonObject

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


def test_the_whole_frame() -> None:
    text = '{"channel":"system","type":"pong","id":"7f0c","payload":{"ts":12},"profiles":[],"more":1}'
    assert parse_envelope(text) == Envelope("system", "pong", "7f0c", JsonObject({"ts": 12}))


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '"x"', "5", "NaN", '{"a":1,"a":2}', '{"id":"\\ud800"}'])
def test_texts_that_are_no_object(text: str) -> None:
    assert parse_envelope(text) is None


def test_missing_members_are_empty() -> None:
    assert parse_envelope("{}") == Envelope("", "", "", JsonObject())


@pytest.mark.parametrize("value", [None, 5, True, [], "text"])
def test_members_of_a_wrong_type_count_as_absent(value: object) -> None:
    members = {"channel": value, "type": value, "id": value, "payload": value}
    word = value if isinstance(value, str) else ""
    assert parse_envelope(json.dumps(members)) == Envelope(word, word, word, JsonObject())
    assert parse_envelope('{"channel":{},"type":{},"id":{}}') == Envelope("", "", "", JsonObject())


def test_written_compactly_in_the_order_of_the_reference() -> None:
    text = write_envelope("system", "pong", "7f0c", {"ts": 12, "é": None})
    assert text == '{"channel":"system","type":"pong","id":"7f0c","payload":{"ts":12,"é":null}}'


@given(st.text(), st.text(), st.text(), st.dictionaries(st.text(), JSON, max_size=4))
def test_envelopes_round_trip(channel: str, kind: str, identity: str, payload: dict[str, object]) -> None:
    assert parse_envelope(write_envelope(channel, kind, identity, payload)) == Envelope(
        channel, kind, identity, JsonObject(payload)
    )


@pytest.mark.parametrize("parse", [parse_envelope, parse_message])
def test_a_message_that_would_take_too_long_closes_the_socket(parse: Callable[[str], object]) -> None:
    with pytest.raises(RemoteProtocolError, match="too big: too many values") as caught:
        parse("[" + "{}," * 100_000 + "0]")
    assert caught.value.close_code == 1009


@given(st.text())
def test_any_text_is_an_envelope_or_nothing(text: str) -> None:
    assert isinstance(parse_envelope(text), Envelope | None)
