from collections.abc import Callable
from typing import Any

import pytest
from attrs import evolve

from svc_proto.basics.entropy import sha256_hex
from svc_proto.basics.errors import LocalProtocolError, Refused
from svc_proto.machines.grants import CHANNELS, Preset
from svc_proto.machines.paired_session_registry import (
    EXPIRED_PAGE,
    DeviceInfo,
    PairedSession,
    PairedSessionRegistry,
    SessionState,
    session_record,
)
from svc_proto.relay_config import SessionPolicy
from tests.machines.fixed_inputs import WALL, at, source

DAY = 86_400.0
REDUCE_ONLY, AS_PAIRED = SessionPolicy.REDUCE_ONLY, SessionPolicy.AS_PAIRED


def prefixed(*prefixes: bytes) -> Callable[[int], bytes]:
    """Return an entropy function whose results begin with `prefixes`, one for each call, and which then fails."""
    waiting = list(prefixes)

    def take(n: int) -> bytes:
        return waiting.pop(0) + bytes([len(waiting)]) * (n - 4)

    return take


def registered(**terms: Any) -> tuple[PairedSessionRegistry, PairedSession]:
    """Return a registry and the session that it has created at the start of the test, with these terms."""
    sessions = PairedSessionRegistry()
    return sessions, sessions.create(at(0), source(), **terms)[1]


def test_a_new_session() -> None:
    sessions = PairedSessionRegistry()
    named = DeviceInfo(name="Tablet", id="5b6e", model="TX-9", platform="Android 16")
    device = evolve(named, surface="android", form_factor="phone")
    token, session = sessions.create(at(0), source(), transport_hint="wss", device=device, preset={"bridge": 60.0})
    assert len(token) == 64
    assert session.token_hash == sha256_hex(token)
    assert token not in repr(session)
    grants = {**dict.fromkeys(CHANNELS, WALL + 30 * DAY), "bridge": WALL + 60}
    record: dict[str, object] = {"token_prefix": token[:8], "device_name": "Tablet", "device_id": "5b6e"}
    record |= {"created_at": WALL, "first_seen": WALL, "last_seen": WALL, "expires_at": WALL + 30 * DAY}
    record |= {"grants": grants, "transport_hint": "wss", "client_surface": "android", "device_form_factor": "phone"}
    record |= {"device_model": "TX-9", "device_platform": "Android 16", "rights": ["manage", "files", "notifications"]}
    record |= {"is_current": True, "online": False}
    assert list(session_record(session, True).items()) == list(record.items())
    assert (session.state, session.preset, len(sessions)) == (SessionState.ACTIVE, ("bridge",), 1)
    anonymous = sessions.create(at(0), source(2))[1]
    assert (anonymous.device_name, anonymous.device_id) == ("Unknown device", "unknown")
    assert anonymous.transport_hint == "unknown"


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
    session = PairedSessionRegistry().create(at(0), source(), ttl=ttl, max_ttl=maximum)[1]
    assert session.expires_at == (None if lifetime is None else WALL + lifetime)
    if lifetime is None:
        assert session.grants == dict.fromkeys(CHANNELS)


def test_a_use_of_a_token_moves_last_seen() -> None:
    sessions = PairedSessionRegistry()
    token, session = sessions.create(at(0), source(), ttl=100.0)
    assert sessions.lookup(token, at(40)) is session
    assert (session.first_seen, session.last_seen) == (WALL, WALL + 40)
    assert sessions.lookup(token + "x", at(50)) is None
    assert sessions.lookup("\ud800", at(50)) is None
    assert session.last_seen == WALL + 40
    sessions, entropy = PairedSessionRegistry(), source()
    _, session = sessions.create(at(0), entropy)
    access, _, lasts = sessions.issue(session, "client", at(0), entropy)
    assert sessions.find_by_access_token(access, at(lasts - 1)) is session
    assert sessions.find_by_access_token(access, at(lasts)) is None
    assert session.last_seen == WALL + lasts - 1
    newer, _, _ = sessions.issue(session, "client", at(lasts), entropy)
    assert sessions.find_by_access_token(access, at(lasts)) is None
    assert sessions.find_by_access_token(newer, at(lasts)) == session


def test_sessions_end_on_time_once_and_in_pages() -> None:
    sessions = PairedSessionRegistry()
    token, session = sessions.create(at(0), source(), ttl=100.0)
    other = sessions.create(at(0), source(2), ttl=50.0)[1]
    forever = sessions.create(at(0), source(3), ttl=0.0)[1]
    assert sessions.next_expiry() == WALL + 50
    assert sessions.lookup(token, at(99.9)) is session
    assert sessions.lookup(token, at(100)) is None
    assert session.state is SessionState.EXPIRED
    assert sessions.lookup(token, at(10)) is None  # a clock that is set back does not revive a session
    assert sessions.expire_due(at(10)) == [session]  # and the session is not kept here
    assert sessions.expire_due(at(100)) == [other]
    assert other.state is SessionState.EXPIRED
    assert sessions.expire_due(at(1e9)) == []
    assert sessions.next_expiry() is None
    assert sessions.active(at(1e9)) == [forever]
    sessions = PairedSessionRegistry()
    for n in range(EXPIRED_PAGE + 1):
        sessions.create(at(0), source(n), ttl=100.0)
    assert len(sessions.expire_due(at(100))) == EXPIRED_PAGE
    assert (len(sessions), sessions.next_expiry(), sessions.active(at(100))) == (1, WALL + 100, [])
    assert len(sessions.expire_due(at(100))) == 1
    assert sessions.next_expiry() is None


def test_sessions_are_found_by_prefix_or_device() -> None:
    sessions, token = PairedSessionRegistry(), "7f0c2d4e-93a1-4b65-8c1d-0a2b3c4d5e6f"
    _, session = sessions.create(at(0), source())
    record = {**session.to_record(), "token_hash": sha256_hex(token), "token_prefix": token[:8]}
    restored = sessions.restore(record, at(1))
    assert restored is not None
    assert sessions.lookup(token, at(1)) is restored
    assert sessions.find(token, at(1)) == [restored]
    assert sessions.find_by_refresh_token(token, at(1)) == (None, False)
    other = token[:-1] + "e"  # has the same prefix
    assert sessions.find(other, at(1)) == []
    sessions.remember_revoked(restored)
    assert (sessions.tombstones(token), sessions.tombstones(other)) == ([restored], [])
    sessions = PairedSessionRegistry()
    entropy = prefixed(b"\xab\xcd\x00\x01", b"\xab\xcd\x00\x02", b"\xab\xce\x00\x01")
    (token, one), (_, two), (_, three) = [sessions.create(at(0), entropy) for _ in range(3)]
    now = at(1)
    assert sessions.find("abcd", now) == [one, two]
    assert sessions.find("abce0", now) == [three]
    assert sessions.find("abcd0001", now) == [one]
    assert sessions.find("ABCD0001", now) == []
    assert sessions.find(token, now) == [one]
    assert sessions.find(token[:20], now) == [one]
    assert sessions.find(token[:8] + "-ffff", now) == [one]  # only eight characters are stored
    assert sessions.find(token[:-1] + "!", now) == []
    assert sessions.find("ffff", now) == []
    assert sessions.find("abcd", at(31 * DAY)) == []
    assert sessions.find(token, at(31 * DAY)) == []
    sessions = PairedSessionRegistry()
    made = [sessions.create(at(n), source(n)) for n in range(3)]
    sessions.lookup(made[0][0], at(9))
    assert sessions.active(at(10)) == [made[0][1], made[2][1], made[1][1]]
    sessions = PairedSessionRegistry()
    entropy = source()
    for number, device in enumerate(("a", "b", "a", "unknown", "None", "")):
        sessions.create(at(number), entropy, ttl=100.0 if number else 2.0, device=DeviceInfo(id=device))
    assert [each.created_at for each in sessions.of_device("a", at(1))] == [WALL, WALL + 2]
    assert [each.created_at for each in sessions.of_device("a", at(9))] == [WALL + 2]
    for nothing in ("unknown", "None", "", " NULL ", "c"):
        assert sessions.of_device(nothing, at(9)) == []


@pytest.mark.parametrize("prefix", ["", "abc", "   ab  "])
def test_a_short_prefix_is_refused(prefix: str) -> None:
    with pytest.raises(Refused) as caught:
        PairedSessionRegistry().find(prefix, at(0))
    assert (caught.value.status, caught.value.code) == (400, "invalid_prefix")


def test_ended_sessions_are_not_changed() -> None:
    sessions = PairedSessionRegistry()
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
    sessions, session = registered(ttl=100.0)
    sessions.rename(session, "Kitchen", at(1))
    assert (session.device_name, session.to_record()["device_name"]) == ("Kitchen", "Kitchen")
    with pytest.raises(LocalProtocolError):
        sessions.rename(session, "late", at(100))
    sessions, session = registered(ttl=100.0)
    with pytest.raises(LocalProtocolError):
        sessions.revoke(session, at(100))
    with pytest.raises(LocalProtocolError):
        sessions.patch(session, at(100), ttl=5.0, grants=None)
    assert session.expires_at == WALL + 100
    assert sessions.expire_due(at(100)) == [session]


def test_a_new_lifetime_rebuilds_defaults_and_clamps_presets() -> None:
    sessions = PairedSessionRegistry()
    token, session = sessions.create(at(0), source(), ttl=10 * DAY, preset={"terminal": DAY, "voice:stt": 0.0})
    sessions.patch(session, at(DAY / 2), ttl=90 * DAY, grants=None)
    now = WALL + DAY / 2
    assert (session.expires_at, session.grants["chat"]) == (now + 90 * DAY, now + 90 * DAY)
    assert (session.grants["bridge"], session.grants["terminal"]) == (now + 7 * DAY, WALL + DAY)
    assert (session.grants["voice:stt"], session.last_seen) == (WALL + 10 * DAY, now)
    assert sessions.next_expiry() == now + 90 * DAY
    assert sessions.lookup(token, at(50 * DAY)) is session
    sessions, session = registered(ttl=0.0, preset={"terminal": DAY})
    sessions.patch(session, at(0), ttl=60.0, grants=None)
    assert session.grants == dict.fromkeys(CHANNELS, WALL + 60)
    sessions.patch(session, at(0), ttl=0.0, grants=None)
    assert session.expires_at is None
    assert session.grants == {**dict.fromkeys(CHANNELS), "terminal": WALL + 60}
    sessions, session = registered(max_ttl=DAY)
    sessions.patch(session, at(0), ttl=0.0, grants=None, max_ttl=DAY)
    assert session.expires_at == WALL + DAY


def test_withheld_channels_stay_withheld() -> None:
    sessions, session = registered(preset={"terminal": None, "tui": None})
    assert session.grants.keys() == set(CHANNELS) - {"terminal", "tui"}
    for policy in SessionPolicy:
        sessions.patch(session, at(0), ttl=DAY, grants={"bridge": 60.0}, policy=policy)
        assert session.grants.keys() == set(CHANNELS) - {"terminal", "tui"}
    sessions.patch(session, at(0), ttl=0.0, grants=None, policy=None)  # nor when the operator extends
    assert session.grants.keys() == set(CHANNELS) - {"terminal", "tui"}
    sessions, session = registered()
    sessions.patch(session, at(0), ttl=None, grants={"terminal": None, "bridge": 60.0}, policy=None)
    assert "terminal" not in session.grants
    with pytest.raises(Refused):
        sessions.patch(session, at(0), ttl=None, grants={"terminal": 60.0})
    sessions.patch(session, at(0), ttl=None, grants={"bridge": DAY})
    sessions, session = registered()
    for span, has_right in ((None, False), (0.0, True)):
        sessions.patch(session, at(0), ttl=None, grants={"manage": span}, policy=None)
        assert ("manage" in session.rights) is has_right


@pytest.mark.parametrize(
    ("policy", "code"),
    [(SessionPolicy.OPEN, "withheld"), (SessionPolicy.AS_PAIRED, "withheld"), (REDUCE_ONLY, "reduce_only")],
)
def test_session_cannot_grant_itself_a_withheld_channel(policy: SessionPolicy, code: str) -> None:
    sessions, session = registered(preset={"terminal": None})
    before = session.to_record()
    for span in (0.0, 1.0, DAY):
        with pytest.raises(Refused) as caught:
            sessions.patch(session, at(0), ttl=None, grants={"bridge": 60.0, "terminal": span}, policy=policy)
        assert (caught.value.status, caught.value.code) == (403, code)
        assert caught.value.extra == {"field": "grants.terminal"}
    assert session.to_record() == before


@pytest.mark.parametrize("policy", list(SessionPolicy))
def test_channel_granted_by_the_operator_is_extended_by_the_operator(policy: SessionPolicy) -> None:
    sessions, session = registered(preset={"terminal": None})
    sessions.patch(session, at(0), ttl=None, grants={"terminal": 3600.0}, policy=None)
    assert session.grants["terminal"] == WALL + 3600
    sessions.patch(session, at(0), ttl=None, grants={"terminal": 600.0}, policy=policy)  # shorter is always permitted
    with pytest.raises(Refused):
        sessions.patch(session, at(0), ttl=None, grants={"terminal": 601.0}, policy=policy)
    sessions.patch(session, at(9), ttl=None, grants={"terminal": 0.0}, policy=None)
    assert session.grants["terminal"] == session.expires_at


def test_session_may_take_back_a_channel_that_it_gave_up() -> None:
    sessions, session = registered()
    for policy in SessionPolicy:
        sessions.patch(session, at(0), ttl=None, grants={"terminal": None}, policy=policy)
        assert "terminal" not in session.grants
    again = PairedSession.from_record(session.to_record())
    sessions.patch(session, at(0), ttl=60 * DAY, grants=None)  # not implicitly
    assert "terminal" not in session.grants
    assert again.preset == ("terminal",)
    sessions.patch(session, at(0), ttl=None, grants={"terminal": DAY})
    assert session.grants["terminal"] == WALL + DAY


def test_as_paired_renews_up_to_the_terms_of_the_pairing_or_the_operator() -> None:
    sessions = PairedSessionRegistry()
    given = {"terminal": 3600.0, "tui": None, "chat": DAY}
    session = sessions.create(at(0.1), source(), ttl=7 * DAY, preset=given)[1]
    sessions.patch(session, at(0.2), ttl=60.0, grants=None, policy=AS_PAIRED)
    later = WALL + 50.7
    sessions.patch(session, at(50.7), ttl=7 * DAY, grants={"terminal": 3600.0, "bridge": 0.0}, policy=AS_PAIRED)
    assert session.expires_at == session.grants["bridge"] == later + 7 * DAY
    assert session.grants["terminal"] == later + 3600
    assert session.grants["chat"] == WALL + 60.2  # set explicitly, and not named now
    assert session.grants["voice:stt"] == later + 7 * DAY
    assert "tui" not in session.grants
    sessions, session = registered(ttl=DAY)
    sessions.patch(session, at(0), ttl=90 * DAY, grants={"tui": 90 * DAY}, policy=None)
    sessions.patch(session, at(5), ttl=80 * DAY, grants={"bridge": DAY}, policy=AS_PAIRED)
    assert session.expires_at == session.grants["tui"] == session.grants["chat"] == WALL + 5 + 80 * DAY
    with pytest.raises(Refused):
        sessions.patch(session, at(5), ttl=81 * DAY, grants=None, policy=AS_PAIRED)
    sessions, session = registered(ttl=DAY)
    assert dict(session.given.grants) == dict.fromkeys(CHANNELS, DAY)
    sessions.patch(session, at(0), ttl=90 * DAY, grants=None, policy=None)
    held = dict(session.grants)
    sessions.patch(session, at(50), ttl=None, grants={"voice:stt": 1.0}, policy=AS_PAIRED)
    assert session.grants == {**held, "voice:stt": WALL + 51}  # the bridge's 7 days do not start again
    sessions, session = registered(ttl=0.0, preset={"terminal": 0.0})
    sessions.patch(session, at(0), ttl=DAY, grants={"chat": DAY}, policy=None)
    sessions.patch(session, at(0), ttl=0.0, grants={"terminal": 0.0}, policy=AS_PAIRED)
    assert session.grants["terminal"] is None  # given without end, also after a change by the operator


@pytest.mark.parametrize(
    ("policy", "now", "ttl", "grants", "field"),
    [
        (AS_PAIRED, DAY, 30 * DAY + 1, None, "ttl_seconds"),
        (AS_PAIRED, DAY, 0.0, None, "ttl_seconds"),
        (AS_PAIRED, DAY, None, {"terminal": 3601.0}, "grants.terminal"),
        (AS_PAIRED, DAY, None, {"terminal": 0.0}, "grants.terminal"),
        (AS_PAIRED, DAY, None, {"chat": 60.0, "bridge": 2 * DAY + 1}, "grants.bridge"),
        (REDUCE_ONLY, 0.0, 30 * DAY + 1, None, "ttl_seconds"),
        (REDUCE_ONLY, 0.0, 0.0, None, "ttl_seconds"),
        (REDUCE_ONLY, 0.0, None, {"bridge": 3 * DAY}, "grants.bridge"),
        (REDUCE_ONLY, 0.0, None, {"bridge": 0.0}, "grants.bridge"),
        (REDUCE_ONLY, 0.0, 5.0, {"chat": 1.0, "tui": 5.0}, "grants.tui"),
    ],
)
def test_policies_refuse_longer_terms(
    policy: SessionPolicy, now: float, ttl: float | None, grants: Preset | None, field: str
) -> None:
    sessions = PairedSessionRegistry()
    preset = {"terminal": 3600.0, "bridge": 2 * DAY, "tui": None}
    session = sessions.create(at(0), source(), ttl=30 * DAY, preset=preset)[1]
    before = session.to_record()
    with pytest.raises(Refused) as caught:
        sessions.patch(session, at(now), ttl=ttl, grants=grants, policy=policy)
    code = policy.value.replace("-", "_")
    assert (caught.value.status, caught.value.code, caught.value.extra) == (403, code, {"field": field})
    assert session.to_record() == before


def test_shorter_grants_are_accepted_and_keep_the_lifetime() -> None:
    sessions, session = registered(ttl=30 * DAY)
    sessions.patch(session, at(DAY), ttl=10 * DAY, grants={"tui": DAY}, policy=REDUCE_ONLY)
    assert session.expires_at == WALL + 11 * DAY
    assert session.grants["bridge"] == WALL + 7 * DAY  # unchanged
    assert (session.grants["tui"], session.grants["chat"]) == (WALL + 2 * DAY, WALL + 11 * DAY)
    sessions, session = registered(ttl=10 * DAY, preset={"terminal": DAY})
    sessions.patch(session, at(100), ttl=None, grants={"bridge": 9 * DAY, "tui": 0.0})
    assert (session.expires_at, session.grants["bridge"]) == (WALL + 10 * DAY, WALL + 100 + 9 * DAY)
    assert session.grants["tui"] == WALL + 10 * DAY
    assert session.grants["terminal"] == WALL + DAY  # set by the operator, not named here
    assert session.preset == ("terminal", "bridge", "tui")


def test_sessions_and_tombstones_count_towards_the_cap() -> None:
    sessions = PairedSessionRegistry(cap=1)
    session = sessions.create(at(0), source())[1]
    for attempt in (
        lambda: sessions.create(at(0), source(2)),
        lambda: sessions.restore({**session.to_record(), "token_hash": "0" * 64}, at(0)),
    ):
        with pytest.raises(Refused) as caught:
            attempt()
        assert (caught.value.status, caught.value.code) == (503, "too_many_sessions")
    assert sessions.restore(session.to_record(), at(0)) == session
    sessions = PairedSessionRegistry(cap=1)
    token, session = sessions.create(at(0), source())
    sessions.revoke(session, at(0))
    sessions.remember_revoked(session)
    with pytest.raises(Refused):
        sessions.create(at(0), source())
    assert sessions.lookup(token, at(0)) is None
    assert sessions.tombstones(token) == sessions.tombstones(token[:8]) == sessions.tombstones() == [session]
    assert sessions.tombstones("zzzz") == sessions.tombstones("z" * 36) == []
    sessions.forget_revoked(session)
    sessions.forget_revoked(session)
    assert sessions.tombstones() == []
    sessions.create(at(0), source())


def test_prefixes_are_unique_if_possible() -> None:
    sessions = PairedSessionRegistry()
    entropy = prefixed(b"\1\1\1\1", b"\1\1\1\1", b"\2\2\2\2")
    assert sessions.create(at(0), entropy)[1].token_prefix == "01010101"
    assert sessions.create(at(0), entropy)[1].token_prefix == "02020202"
    sessions.create(at(0), bytes)
    with pytest.raises(LocalProtocolError, match="entropy"):
        sessions.create(at(0), bytes)


def test_older_session_gets_no_new_channels() -> None:
    sessions = PairedSessionRegistry()
    record = sessions.create(at(0), source())[1].to_record()
    del record["given"]
    record["grants"] = {"chat": "never", "bridge": WALL + 60}
    session = PairedSessionRegistry().restore(record, at(0))
    assert session is not None
    held = session.grants.keys()
    assert held == {"chat", "bridge", "voice:config", "voice:stt", "voice:tts", "voice:realtime"}
    sessions.patch(session, at(0), ttl=90 * DAY, grants=None)
    assert (session.grants.keys(), session.grants["bridge"]) == (held, WALL + 7 * DAY)


def test_records_of_another_node_are_applied_but_revive_no_session() -> None:
    there, here = PairedSessionRegistry(), PairedSessionRegistry()
    token, theirs = there.create(at(0), source())
    session = here.apply_record(theirs.to_record(), at(0))
    assert session is not None
    assert here.lookup(token, at(1)) is session
    assert here.hashed(theirs.token_hash) is session
    assert here.active(at(1)) == [session]
    (group,) = here.hash_groups()
    assert (group, list(here.copy_hashes(group))) == (session.token_hash[0], [session.token_hash])
    assert here.copy_hashes("x") == {}
    there.patch(theirs, at(2), ttl=60.0, grants={"chat": 5.0})
    entropy = source()
    access, _, _ = there.issue(theirs, "client", at(2), entropy)
    there.rename(theirs, "Kitchen", at(2))
    theirs.names, theirs.rights = "hermes", ("files",)
    record = {**theirs.to_record(), "given": {"ttl_seconds": 60.0, "grants": {"chat": 5.0}}}  # others than at first
    assert here.apply_record(record, at(3)) is session
    assert {**session.to_record(), "last_seen": record["last_seen"]} == record  # a node keeps its own last request
    assert here.next_expiry() == theirs.expires_at
    assert here.find_by_access_token(access, at(3)) is session
    newer, _, _ = there.issue(theirs, "client", at(3), entropy)
    here.apply_record(theirs.to_record(), at(3))
    assert (here.find_by_access_token(access, at(3)), here.find_by_access_token(newer, at(3))) == (None, session)
    assert here.apply_record({**theirs.to_record(), "token_hash": "ab" * 32, "expires_at": 1.0}, at(3)) is None
    with pytest.raises(Refused):
        here.apply_record({}, at(3))
    here.revoke(session, at(4))
    assert here.hashed(theirs.token_hash) is None
    there, here = PairedSessionRegistry(), PairedSessionRegistry()
    token, theirs = there.create(at(0), source(), ttl=60)
    here.apply_record(theirs.to_record(), at(0))
    assert here.lookup(token, at(61)) is None
    there.patch(theirs, at(59), ttl=600, grants=None)
    assert here.apply_record(theirs.to_record(), at(61)) is None
    assert here.lookup(token, at(61)) is None
    (session,) = here.expire_due(at(61))
    assert session.state is SessionState.EXPIRED
