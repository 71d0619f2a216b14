from svc_proto.api.projections.turn_events import TimestampCache, TurnEnded
from svc_proto.basics.moment import Moment


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
