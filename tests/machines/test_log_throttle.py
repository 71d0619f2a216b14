from svc_proto.machines.log_throttle import LogThrottle


def test_once_a_minute_for_each_address_of_a_bounded_table() -> None:
    mentions = LogThrottle()
    said = [(address, at) for at in range(0, 130, 10) for address in "ab" if mentions.is_due(address, float(at))]
    assert said == [(address, at) for at in (0, 60, 120) for address in "ab"]
    mentions = LogThrottle()
    assert all(mentions.is_due(str(number), 0.0) for number in range(1_001))
    assert not mentions.is_due("1", 0.0)
    assert mentions.is_due("0", 0.0)
