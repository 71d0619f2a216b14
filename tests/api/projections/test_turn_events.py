import json

from svc_proto.api.projections.turn_events import TimestampCache, TurnEnded, encode_frame
from svc_proto.basics.moment import Moment
from svc_proto.wire.sse import encode_event


def test_frame_equals_the_encoded_event() -> None:
    members = {"a": "ä\n\r\u2028\x00", "b": [1, None, True]}
    data = json.dumps(members, ensure_ascii=False, separators=(",", ":"))
    assert encode_frame(members, event="x.y").encode() == encode_event(data, event="x.y")
    assert encode_frame(members).encode() == encode_event(data)


def test_a_stamp_is_a_number() -> None:
    stamp, now = TimestampCache(), Moment(1.0, 1_927_857_907.0204)
    assert stamp.at(now) == stamp.at(now) == "1927857907.020"
    assert stamp.at(Moment(2.0, 1_927_857_908.0)) == "1927857908.000"


def test_completed_and_partial_turns() -> None:
    assert TurnEnded(content="").completed
    for ended in (
        TurnEnded(content="", finish="length"),
        TurnEnded(content="", finish="interrupted", interrupted=True),
        TurnEnded(content="", error="no"),
    ):
        assert (ended.completed, ended.partial) == (False, True)
