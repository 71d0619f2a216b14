from random import Random

from hypothesis import given
from hypothesis import strategies as st

from svc_proto.basics.moment import Moment
from svc_proto.machines.paired_session import PairedSession, SessionTrigger
from svc_proto.machines.paired_session_registry import PairedSessionRegistry
from svc_proto.machines.session_map import SessionMap


def new_session(seed: int, expires_at: float | None) -> PairedSession:
    session = PairedSessionRegistry().create(Moment(0.0, 0.0), Random(seed).randbytes)[1]
    session.expires_at = expires_at
    session.token_hash = f"{seed % 2}{seed}"  # two groups
    return session


def test_expiries_that_are_missing_or_replaced_are_not_due() -> None:
    sessions = SessionMap()
    session = new_session(0, None)
    sessions.discard(session)
    sessions.put(session)
    assert (sessions.next_expiry(), sessions.purge(1e18, 9)) == (None, [])
    session.step(SessionTrigger.LIFETIME_ELAPSED)
    sessions.put(session)
    assert sessions.purge(-1e18, 9) == [session]
    sessions, session = SessionMap(), new_session(0, 9.0)
    for expiry in (*range(200), 500):
        session.expires_at = float(expiry)
        sessions.put(session)
    assert sessions.next_expiry() == 500.0
    (group,) = sessions._groups.values()
    assert len(group._expiries) < 100
    other = new_session(2, 200.0)  # of the same group
    for _ in range(200):
        sessions.put(other)
    assert (sessions.next_expiry(), sessions.purge(200.0, 9)) == (200.0, [other])
    session.step(SessionTrigger.LIFETIME_ELAPSED)
    sessions.put(session)
    for _ in range(200):
        sessions.put(other)
    assert sessions.purge(0.0, 9) == [session]
    sessions, moved, other = SessionMap(), new_session(0, 1.0), new_session(2, 5.0)
    for each, expiry in ((moved, 1.0), (other, 5.0), (moved, 9.0)):
        each.expires_at = expiry
        sessions.put(each)
    assert (sessions.next_expiry(), sessions.purge(5.0, 9)) == (5.0, [other])
    sessions = SessionMap()
    sessions.put(new_session(0, None))
    for _ in range(200):
        sessions.put(other)
    assert (sessions.purge(5.0, 9), sessions.next_expiry()) == ([other], None)


@given(st.lists(st.tuples(st.integers(0, 5), st.one_of(st.none(), st.integers(0, 9)), st.booleans()), max_size=60))
def test_every_session_is_due_at_its_last_expiry(steps: list[tuple[int, int | None, bool]]) -> None:
    sessions, model, expiries = SessionMap(), dict[str, PairedSession](), list[float]()
    for seed, expiry, stays in steps:
        session = new_session(seed, None if expiry is None else float(expiry))
        session = sessions.find(session.token_hash) or session
        if stays:
            session.expires_at = None if expiry is None else float(expiry)
            sessions.put(session)
            model[session.token_hash] = session
        else:
            sessions.discard(session)
            model.pop(session.token_hash, None)
        expiries = sorted(each.expires_at for each in model.values() if each.expires_at is not None)
        assert sessions.next_expiry() == (expiries[0] if expiries else None)
        assert len(sessions) == len(model)
    assert {each for name in sessions.group_names() for each in sessions.copy_hashes(name)} == model.keys()
    assert {id(each) for each in sessions.values()} == {id(each) for each in model.values()}
    due = sessions.purge(5.0, 2)
    assert len(due) == min(2, len([when for when in expiries if when <= 5.0]))
    due += sessions.purge(5.0, len(model) + 1)
    assert [each.expires_at for each in due] == [when for when in expiries if when <= 5.0]
    assert len(sessions) == len(model) - len(due)
