from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from svc_proto.basics.entropy import sha256_hex
from svc_proto.basics.errors import LocalProtocolError, Refused
from svc_proto.basics.moment import Moment
from svc_proto.machines.grants import CHANNELS, MAX_GRANTS, clamp
from svc_proto.machines.sessions import (
    DeviceInfo,
    Session,
    Sessions,
    SessionState,
    session_record,
)
from tests.machines.sources import WALL, at, source

DAY = 86_400.0


def prefixed(*prefixes: bytes) -> Callable[[int], bytes]:
    """Entropy whose UUIDs begin with the given four bytes, one after the other, and differ further on."""
    waiting = list(prefixes)

    def take(n: int) -> bytes:
        return waiting.pop(0) + bytes([len(waiting)]) * (n - 4)

    return take


def test_a_new_session() -> None:
    sessions = Sessions()
    device = DeviceInfo(
        name="Tablet", id="5b6e", model="TX-9", platform="Android 16", surface="android", form_factor="phone"
    )
    token, session = sessions.create(at(0), source(), transport_hint="wss", device=device, preset={"bridge": 60.0})
    assert len(token) == 36
    assert session.token_hash == sha256_hex(token)
    assert token not in repr(session)
    assert list(session_record(session, True).items()) == [
        ("token_prefix", token[:8]),
        ("device_name", "Tablet"),
        ("device_id", "5b6e"),
        ("created_at", WALL),
        ("first_seen", WALL),
        ("last_seen", WALL),
        ("expires_at", WALL + 30 * DAY),
        ("grants", {**dict.fromkeys(CHANNELS, WALL + 30 * DAY), "bridge": WALL + 60}),
        ("transport_hint", "wss"),
        ("client_surface", "android"),
        ("device_form_factor", "phone"),
        ("device_model", "TX-9"),
        ("device_platform", "Android 16"),
        ("is_current", True),
    ]
    assert (session.state, session.preset, len(sessions)) == (SessionState.ACTIVE, ("bridge",), 1)
    anonymous = sessions.create(at(0), source(2))[1]
    assert (anonymous.device_name, anonymous.device_id, anonymous.transport_hint) == (
        "Unknown device",
        *["unknown"] * 2,
    )


@pytest.mark.parametrize(
    ("ttl", "maximum", "lifetime"),
    [
        (None, None, 30 * DAY),
        (None, DAY, DAY),
        (None, 90 * DAY, 30 * DAY),
        (0.0, None, None),
        (0.0, 0.0, None),
        (0.0, DAY, DAY),
        (60.0, None, 60.0),
        (60.0, DAY, 60.0),
        (2 * DAY, DAY, DAY),
    ],
)
def test_the_lifetime(ttl: float | None, maximum: float | None, lifetime: float | None) -> None:
    session = Sessions().create(at(0), source(), ttl=ttl, max_ttl=maximum)[1]
    assert session.expires_at == (None if lifetime is None else WALL + lifetime)
    if lifetime is None:
        assert session.grants == dict.fromkeys(CHANNELS)


def test_a_look_up_moves_last_seen() -> None:
    sessions = Sessions()
    token, session = sessions.create(at(0), source(), ttl=100.0)
    assert sessions.lookup(token, at(40)) is session
    assert (session.first_seen, session.last_seen) == (WALL, WALL + 40)
    assert sessions.lookup(token + "x", at(50)) is None
    assert sessions.lookup("\ud800", at(50)) is None
    assert session.last_seen == WALL + 40


def test_a_session_ends_on_time_and_once() -> None:
    sessions = Sessions()
    token, session = sessions.create(at(0), source(), ttl=100.0)
    other = sessions.create(at(0), source(2), ttl=50.0)[1]
    forever = sessions.create(at(0), source(3), ttl=0.0)[1]
    assert sessions.next_expiry() == WALL + 50
    assert sessions.lookup(token, at(99.9)) is session
    assert sessions.lookup(token, at(100)) is None
    assert session.state is SessionState.EXPIRED
    assert sessions.lookup(token, at(10)) is None  # the clock set back revives nobody
    assert sessions.expire_due(at(100)) == [other, session]
    assert other.state is SessionState.EXPIRED
    assert sessions.expire_due(at(1e9)) == []
    assert sessions.next_expiry() is None
    assert sessions.active(at(1e9)) == [forever]


def test_finding_by_prefix() -> None:
    sessions = Sessions()
    entropy = prefixed(b"\xab\xcd\x00\x01", b"\xab\xcd\x00\x02", b"\xab\xce\x00\x01")
    (token, one), (_, two), (_, three) = [sessions.create(at(0), entropy) for _ in range(3)]
    now = at(1)
    assert sessions.find("abcd", now) == [one, two]
    assert sessions.find("abce0", now) == [three]
    assert sessions.find("abcd0001", now) == [one]
    assert sessions.find("ABCD0001", now) == []
    assert sessions.find(token, now) == [one]
    assert sessions.find(token[:20], now) == [one]
    assert sessions.find(token[:8] + "-ffff", now) == [one]  # only eight characters are known
    assert sessions.find(token[:-1] + "!", now) == []
    assert sessions.find("ffff", now) == []
    assert sessions.find("abcd", at(31 * DAY)) == []
    assert sessions.find(token, at(31 * DAY)) == []


@pytest.mark.parametrize("prefix", ["", "abc", "   ab  "])
def test_a_short_prefix_is_refused(prefix: str) -> None:
    with pytest.raises(Refused) as caught:
        Sessions().find(prefix, at(0))
    assert (caught.value.status, caught.value.code) == (400, "invalid_prefix")


def test_the_active_ones_last_seen_first() -> None:
    sessions = Sessions()
    made = [sessions.create(at(n), source(n)) for n in range(3)]
    sessions.lookup(made[0][0], at(9))
    assert sessions.active(at(10)) == [made[0][1], made[2][1], made[1][1]]


def test_a_revoked_session_is_gone() -> None:
    sessions = Sessions()
    token, session = sessions.create(at(0), source(), ttl=100.0)
    sessions.revoke(session, at(1))
    assert session.state is SessionState.REVOKED
    assert sessions.lookup(token, at(1)) is None
    assert not session.is_active(WALL)
    assert len(sessions) == 0
    assert sessions.next_expiry() is None
    assert sessions.expire_due(at(1e9)) == []
    with pytest.raises(LocalProtocolError):
        sessions.revoke(session, at(1))
    with pytest.raises(LocalProtocolError):
        sessions.patch(session, at(1), ttl=5.0, grants=None)


def test_an_expired_session_cannot_be_revoked_or_patched() -> None:
    sessions = Sessions()
    session = sessions.create(at(0), source(), ttl=100.0)[1]
    with pytest.raises(LocalProtocolError):
        sessions.revoke(session, at(100))
    with pytest.raises(LocalProtocolError):
        sessions.patch(session, at(100), ttl=5.0, grants=None)
    assert session.expires_at == WALL + 100
    assert sessions.expire_due(at(100)) == [session]


def test_extending_rebuilds_defaults_and_keeps_presets() -> None:
    sessions = Sessions()
    token, session = sessions.create(at(0), source(), ttl=10 * DAY, preset={"terminal": DAY, "own": 0.0})
    sessions.patch(session, at(DAY / 2), ttl=90 * DAY, grants=None)
    now = WALL + DAY / 2
    assert session.expires_at == now + 90 * DAY
    assert session.grants["chat"] == now + 90 * DAY
    assert session.grants["bridge"] == now + 7 * DAY
    assert session.grants["terminal"] == WALL + DAY
    assert session.grants["own"] == WALL + 10 * DAY
    assert session.last_seen == now
    assert sessions.next_expiry() == now + 90 * DAY
    assert sessions.lookup(token, at(50 * DAY)) is session


def test_shortening_clamps_everything() -> None:
    sessions = Sessions()
    session = sessions.create(at(0), source(), ttl=0.0, preset={"terminal": DAY})[1]
    sessions.patch(session, at(0), ttl=60.0, grants=None)
    assert session.grants == dict.fromkeys(CHANNELS, WALL + 60)
    sessions.patch(session, at(0), ttl=0.0, grants=None)
    assert session.expires_at is None
    assert session.grants == {**dict.fromkeys(CHANNELS), "terminal": WALL + 60}


def test_patching_grants_keeps_the_lifetime() -> None:
    sessions = Sessions()
    session = sessions.create(at(0), source(), ttl=10 * DAY, preset={"terminal": DAY})[1]
    sessions.patch(session, at(100), ttl=None, grants={"bridge": 9 * DAY, "tui": 0.0})
    assert session.expires_at == WALL + 10 * DAY
    assert session.grants["bridge"] == WALL + 100 + 9 * DAY
    assert session.grants["tui"] == WALL + 10 * DAY
    assert session.grants["terminal"] == WALL + DAY  # set by the operator, not named here
    assert session.preset == ("terminal", "bridge", "tui")


def test_the_operators_maximum_holds_for_patches() -> None:
    sessions = Sessions()
    session = sessions.create(at(0), source(), max_ttl=DAY)[1]
    sessions.patch(session, at(0), ttl=0.0, grants=None, max_ttl=DAY)
    assert session.expires_at == WALL + DAY


def test_names_do_not_pile_up() -> None:
    sessions = Sessions()
    session = sessions.create(at(0), source())[1]
    sessions.patch(session, at(0), ttl=None, grants={f"a{n}": 5.0 for n in range(MAX_GRANTS)})
    before = session.to_record()
    with pytest.raises(Refused) as caught:
        sessions.patch(session, at(0), ttl=5.0, grants={"one-more": 5.0})
    assert caught.value.extra == {"field": "grants"}
    assert session.to_record() == before


def test_reduce_only_lets_shorter_pass() -> None:
    sessions = Sessions()
    session = sessions.create(at(0), source(), ttl=30 * DAY)[1]
    sessions.patch(session, at(DAY), ttl=10 * DAY, grants={"tui": DAY}, reduce_only=True)
    assert session.expires_at == WALL + 11 * DAY
    assert session.grants["bridge"] == WALL + 7 * DAY  # not built anew
    assert session.grants["tui"] == WALL + 2 * DAY
    assert session.grants["chat"] == WALL + 11 * DAY


@pytest.mark.parametrize(
    ("ttl", "grants", "field"),
    [
        (30 * DAY + 1, None, "ttl_seconds"),
        (0.0, None, "ttl_seconds"),
        (None, {"bridge": 8 * DAY}, "grants.bridge"),
        (None, {"bridge": 0.0}, "grants.bridge"),
        (None, {"unheard": 5.0}, "grants.unheard"),
    ],
)
def test_reduce_only_refuses_longer(ttl: float | None, grants: dict[str, float] | None, field: str) -> None:
    sessions = Sessions()
    session = sessions.create(at(0), source(), ttl=30 * DAY)[1]
    before = session.to_record()
    with pytest.raises(Refused) as caught:
        sessions.patch(session, at(0), ttl=ttl, grants=grants, reduce_only=True)
    assert (caught.value.status, caught.value.code, caught.value.extra) == (403, "reduce_only", {"field": field})
    assert session.to_record() == before


def test_at_the_cap_a_new_session_is_refused() -> None:
    sessions = Sessions(cap=1)
    session = sessions.create(at(0), source())[1]
    for attempt in (
        lambda: sessions.create(at(0), source(2)),
        lambda: sessions.restore({**session.to_record(), "token_hash": "0" * 64}, at(0)),
    ):
        with pytest.raises(Refused) as caught:
            attempt()
        assert (caught.value.status, caught.value.code) == (503, "too_many_sessions")
    assert sessions.restore(session.to_record(), at(0)) == session


def test_prefixes_are_unlike_while_that_is_possible() -> None:
    sessions = Sessions()
    entropy = prefixed(b"\1\1\1\1", b"\1\1\1\1", b"\2\2\2\2")
    assert sessions.create(at(0), entropy)[1].token_prefix == "01010101"
    assert sessions.create(at(0), entropy)[1].token_prefix == "02020202"
    sessions.create(at(0), bytes)
    with pytest.raises(LocalProtocolError, match="entropy"):
        sessions.create(at(0), bytes)


spans = st.sampled_from((0.0, 1.0, 60.0, DAY, 7 * DAY, 30 * DAY, 400 * DAY))
presets = st.none() | st.dictionaries(st.sampled_from((*CHANNELS, "own")), spans, max_size=4)


class SessionsUnderAnySequence(RuleBasedStateMachine):
    """Create, patch, revoke, expire, store and load in any order, with a clock that also goes back."""

    def __init__(self) -> None:
        super().__init__()
        self.wall = 0.0
        self.sessions = Sessions(cap=5)
        self.entropy = source()
        self.tokens: dict[str, Session] = {}
        self.ended: list[str] = []
        self.reported: list[str] = []

    @property
    def now(self) -> Moment:
        return at(self.wall)

    def alive(self, token: str) -> bool:
        expires_at = self.tokens[token].expires_at
        return token not in self.ended and (expires_at is None or WALL + self.wall < expires_at)

    def note_the_ended(self) -> None:
        for token in self.tokens:
            if token not in self.ended and not self.alive(token):
                self.ended.append(token)

    @rule(ttl=st.none() | spans, preset=presets)
    def create(self, ttl: float | None, preset: dict[str, float] | None) -> None:
        if len(self.sessions) == 5:
            with pytest.raises(Refused):
                self.sessions.create(self.now, self.entropy, ttl=ttl, preset=preset)
            return
        token, session = self.sessions.create(self.now, self.entropy, ttl=ttl, preset=preset)
        self.tokens[token] = session

    @precondition(lambda self: self.tokens)
    @rule(data=st.data(), ttl=st.none() | spans, grants=presets, reduce_only=st.booleans())
    def patch(self, data: st.DataObject, ttl: float | None, grants: dict[str, float] | None, reduce_only: bool) -> None:
        session = self.tokens[data.draw(st.sampled_from(list(self.tokens)))]
        before = dict(session.grants)
        try:
            self.sessions.patch(session, self.now, ttl=ttl, grants=grants, reduce_only=reduce_only)
        except LocalProtocolError:
            assert session.state is not SessionState.ACTIVE
            assert session.grants == before
        except Refused:
            assert reduce_only
            assert session.grants == before
        else:
            named = grants or {}
            kept = before if reduce_only else session.preset
            for channel in kept:
                if channel not in named:
                    assert clamp(session.grants[channel], before[channel]) == session.grants[channel]

    @precondition(lambda self: self.tokens)
    @rule(data=st.data())
    def revoke(self, data: st.DataObject) -> None:
        token = data.draw(st.sampled_from(list(self.tokens)))
        try:
            self.sessions.revoke(self.tokens[token], self.now)
        except LocalProtocolError:
            assert not self.alive(token)
        else:
            self.ended.append(token)
            self.reported.append(token)

    @rule(seconds=st.sampled_from((0.0, 1.0, 59.0, DAY, 30 * DAY, -60.0)))
    def wait(self, seconds: float) -> None:
        self.sessions.active(self.now)  # so that whatever has ended by now is marked
        self.note_the_ended()
        self.wall = max(0.0, self.wall + seconds)

    @rule()
    def expire(self) -> None:
        for session in self.sessions.expire_due(self.now):
            token = next(token for token, known in self.tokens.items() if known is session)
            assert token not in self.reported
            assert session.state is SessionState.EXPIRED
            self.ended.append(token)
            self.reported.append(token)

    @rule()
    def reload(self) -> None:
        self.note_the_ended()
        loaded = Sessions(cap=5)
        for token, session in self.tokens.items():
            if self.alive(token):
                again = loaded.restore(session.to_record(), self.now)
                assert again == session
                assert again is not None
                self.tokens[token] = again
        self.reported.extend(token for token in self.ended if token not in self.reported)
        self.sessions = loaded

    @invariant()
    def a_token_is_accepted_while_its_session_lives(self) -> None:
        for token, session in self.tokens.items():
            expected = session if self.alive(token) else None
            if expected is None and token not in self.ended:
                self.ended.append(token)
            assert self.sessions.lookup(token, self.now) is expected

    @invariant()
    def no_grant_outlives_its_session(self) -> None:
        for session in self.tokens.values():
            for channel, expiry in session.grants.items():
                assert clamp(expiry, session.expires_at) == expiry
                if expiry is not None:
                    assert not session.holds(channel, expiry)


SessionsUnderAnySequence.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestSessionsUnderAnySequence = SessionsUnderAnySequence.TestCase


def test_tombstones_count_towards_the_cap() -> None:
    sessions = Sessions(cap=1)
    token, session = sessions.create(at(0), source())
    sessions.revoke(session, at(0))
    sessions.bury(session)
    with pytest.raises(Refused):
        sessions.create(at(0), source())
    assert sessions.lookup(token, at(0)) is None
    assert sessions.tombstones(token) == sessions.tombstones(token[:8]) == sessions.tombstones() == [session]
    assert sessions.tombstones("zzzz") == sessions.tombstones("z" * 36) == []
    sessions.erased(session)
    sessions.erased(session)
    assert sessions.tombstones() == []
    sessions.create(at(0), source())
