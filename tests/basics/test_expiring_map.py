from hypothesis import given, settings
from hypothesis import strategies as st

from svc_proto.basics.expiring_map import ExpiringMap


def test_an_entry_is_seen_until_it_is_popped_or_cleared() -> None:
    entries: ExpiringMap[str, int] = ExpiringMap(10)
    assert entries.put("a", 1, 5.0) is None
    assert (entries.get("a", 4.9), entries.get("a", 5.0)) == (1, None)
    assert (entries.peek("a"), "a" in entries) == (1, True)
    assert entries.pop("a", 5.0) is None
    assert ("a" in entries, entries.peek("a"), entries.pop("a", 0.0)) == (False, None, None)
    entries.put("a", 1, 9.0)
    entries.clear()
    assert (len(entries), entries.next_expiry(), entries.purge(99.0)) == (0, None, [])


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
