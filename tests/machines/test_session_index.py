from random import Random

from hypothesis import given
from hypothesis import strategies as st

from svc_proto.basics.moment import Moment
from svc_proto.machines.paired_session import DeviceInfo, PairedSession
from svc_proto.machines.paired_session_registry import PairedSessionRegistry
from svc_proto.machines.session_index import SessionIndex


def new_session(token: bytes, device_id: str = "unknown", at: float = 0.0) -> PairedSession:
    tokens = iter([token])
    return PairedSessionRegistry().create(Moment(at, at), lambda size: next(tokens), device=DeviceInfo(id=device_id))[1]


def test_pages_have_each_live_session_once() -> None:
    random, index = Random(1), SessionIndex()
    sessions = [new_session(bytes([random.choice((0, 1, 255)), n % 5]) + random.randbytes(30)) for n in range(60)]
    for session in sessions:
        index.add(session)
    for limit in (1, 7, 59, 60, 61):
        seen: list[PairedSession] = []
        after = ""
        while True:
            page, after = index.page(after, limit)
            seen += page
            assert len(page) <= limit
            if not after:
                break
        assert [each.token_prefix for each in seen] == sorted(each.token_prefix for each in sessions)
        assert {id(each) for each in seen} == {id(each) for each in sessions}
    index = SessionIndex()
    sessions = [new_session(bytes([n]) * 32) for n in range(6)]
    for session in sessions:
        index.add(session)
    assert SessionIndex().page("", 3) == ([], "")
    page, after = index.page("", 2)
    index.remove(sessions[1])
    index.remove(sessions[2])
    assert page == sessions[:2]
    assert index.page(after, 3) == (sessions[3:], "")
    index.add(late := new_session(bytes([9]) * 32))
    assert index.page(after, 9) == ([*sessions[3:], late], "")


def test_sessions_of_devices_and_keys_are_told_apart_oldest_first() -> None:
    index = SessionIndex()
    registry, now = PairedSessionRegistry(), Moment(0.0, 0.0)
    sessions = [
        registry.create(now, Random(n).randbytes, device=DeviceInfo(id=f"{n % 2}-phone"), key_hash=key)[1]
        for n, key in enumerate(("abc", "abc1", "abc2", "abc"))
    ]
    for session in sessions:
        index.add(session)
    assert index.of_device("1-phone") == [sessions[1], sessions[3]]
    assert index.of_device("2-phone") == index.of_device("x") == []
    assert [index.find_by_key(key) for key in ("abc", "abc1", "abc3", "x")] == [sessions[3], sessions[1], None, None]
    index.remove(sessions[3])
    assert index.of_device("1-phone") == [sessions[1]]
    assert index.find_by_key("abc") is sessions[0]
    index = SessionIndex()
    later, earlier = (new_session(bytes([n]) * 32, "tablet", at=10.0 - n) for n in range(2))
    for session in (later, earlier, new_session(b"\7" * 32, " None ")):
        index.add(session)
    assert index.of_device("tablet") == [earlier, later]
    assert index.of_device(" None ") == index.of_device("other") == []
    for session in (later, later, earlier, new_session(b"\0" * 32, "tablet"), new_session(b"\x88" * 32, "other")):
        index.remove(session)
    assert index.of_device("tablet") == []


@given(st.sets(st.binary(min_size=4, max_size=4), max_size=30), st.text("0123", min_size=3, max_size=8))
def test_prefixes_are_found_as_by_a_scan(tokens: set[bytes], prefix: str) -> None:
    index = SessionIndex()
    sessions = [new_session(token * 8) for token in sorted(tokens)]
    for session in sessions:
        index.add(session)
    for wanted in (prefix, *(each.token_prefix[:5] for each in sessions)):
        assert index.find(wanted) == [each for each in sessions if each.token_prefix.startswith(wanted)]
