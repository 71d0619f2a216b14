from svc_proto.basics.moment import Moment


def test_the_same_clocks_at_another_instant() -> None:
    assert Moment(10.0, 1_000.0).at(7.5) == Moment(7.5, 997.5)
