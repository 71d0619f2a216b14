from hypothesis import given, settings
from hypothesis import strategies as st

from svc_proto.basics.expiring_map import ExpiringMap


def test_an_entry_lives_until_its_deadline() -> None:
    entries: ExpiringMap[str, int] = ExpiringMap(10)
    assert entries.put("a", 1, 5.0) is None
    assert entries.get("a", 4.9) == 1
    assert entries.get("a", 5.0) is None
    assert entries.peek("a") == 1
    assert "a" in entries
    assert entries.pop("a", 5.0) is None
    assert "a" not in entries
    assert (entries.get("a", 0.0), entries.peek("a"), entries.pop("a", 0.0)) == (None, None, None)


def test_entries_are_popped_replaced_and_cleared() -> None:
    entries: ExpiringMap[str, int] = ExpiringMap(10)
    entries.put("a", 1, 5.0)
    entries.put("b", 2, None)
    assert entries.next_expiry() == 5.0
    assert entries.pop("a", 1.0) == 1
    assert entries.next_expiry() is None
    assert entries.pop("b", 1e9) == 2
    assert len(entries) == 0
    for value, deadline in ((1, 5.0), (2, 9.0)):  # replacing moves the deadline
        entries.put("a", value, deadline)
    assert entries.next_expiry() == 9.0
    assert entries.purge(8.0) == []
    entries.put("a", 3, 2.0)
    assert entries.purge(2.0) == [("a", 3)]
    entries.put("a", 1, 9.0)
    entries.clear()
    assert (len(entries), entries.next_expiry(), entries.purge(99.0)) == (0, None, [])


def test_purging_in_order_of_deadline() -> None:
    entries: ExpiringMap[str, int] = ExpiringMap(10)
    for key, when in (("late", 9.0), ("soon", 1.0), ("also", 1.0), ("gone", 0.5), ("never", None)):
        entries.put(key, 0, when)
    entries.discard("gone")
    entries.discard("gone")
    assert entries.purge(0.9) == []
    assert entries.purge(9.0) == [("soon", 0), ("also", 0), ("late", 0)]
    assert entries.items() == [("never", 0)]


def test_at_the_cap_the_entry_put_longest_ago_is_dropped() -> None:
    entries: ExpiringMap[str, int] = ExpiringMap(2)
    entries.put("a", 1, 9.0)
    entries.put("b", 2, 5.0)
    assert entries.put("a", 3, 1.0) is None  # put again: now `b` is the oldest
    assert entries.put("c", 4, None) == ("b", 2)
    assert entries.values() == [3, 4]


def test_clearing_of_stale_deadlines_keeps_the_order_of_the_others() -> None:
    for stale in range(60, 80):  # one of them reaches the limit
        kept: ExpiringMap[str, int] = ExpiringMap(10)
        for key, deadline in (("last", 100.0), ("then", 50.0), *[("first", 10.0)] * stale):
            kept.put(key, 0, deadline)
        assert [key for key, _ in kept.purge(100.0)] == ["first", "then", "last"]


def test_stale_deadlines_are_removed() -> None:
    entries: ExpiringMap[str, int] = ExpiringMap(10)
    entries.put("n", 0, None)
    for number in range(1_000):
        entries.put("a", number, float(number))
    assert len(entries._heap) < 200
    assert entries.next_expiry() == 999.0


steps = st.tuples(st.sampled_from(("put", "pop", "discard", "purge", "get")), st.integers(0, 3), st.integers(0, 9))


@settings(max_examples=50)
@given(st.lists(steps, max_size=40))
def test_against_a_plain_dict(script: list[tuple[str, int, int]]) -> None:
    entries: ExpiringMap[int, int] = ExpiringMap(3)
    model: dict[int, tuple[int, float | None]] = {}  # in order of the last put
    for serial, (action, key, time) in enumerate(script):
        value, expires_at = model.get(key, (None, None))
        live = value if expires_at is None or time < expires_at else None
        match action:
            case "put":
                dropped = None
                if key not in model and len(model) == 3:
                    oldest = next(iter(model))
                    dropped = oldest, model.pop(oldest)[0]
                model.pop(key, None)
                model[key] = serial, None if time == 9 else float(time)
                assert entries.put(key, serial, model[key][1]) == dropped
            case "pop":
                model.pop(key, None)
                assert entries.pop(key, time) == live
            case "discard":
                model.pop(key, None)
                entries.discard(key)
            case "purge":
                due = {name: when for name, (_, when) in model.items() if when is not None and when <= time}
                expected = [(name, model.pop(name)[0]) for name in sorted(due, key=lambda name: due[name])]
                assert entries.purge(time) == expected
            case _:
                assert entries.get(key, time) == live
        assert entries.items() == [(name, number) for name, (number, _) in model.items()]
        assert entries.next_expiry() == min((when for _, when in model.values() if when is not None), default=None)
