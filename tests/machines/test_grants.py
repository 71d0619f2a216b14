import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_proto.basics.errors import Refused
from svc_proto.machines.grants import (
    CHANNELS,
    build_grants,
    clamp,
    clamp_all,
    default_grants,
    is_granted,
    is_live,
    later_expiry,
    parse_grants,
    parse_requested_grants,
)

DAY = 86_400.0
NOW = 1_795_000_000.0
expiries = st.none() | st.floats(NOW, NOW + 400 * DAY)
presets = st.dictionaries(st.sampled_from(CHANNELS), st.none() | st.just(0.0) | st.floats(0, 800 * DAY), max_size=9)


@pytest.mark.parametrize(
    ("days", "bridge", "terminal", "chat"), [(1, 1, 1, 1), (7, 7, 7, 7), (30, 7, 30, 30), (90, 7, 30, 90)]
)
def test_defaults_end_with_the_session_or_earlier(days: int, bridge: int, terminal: int, chat: int) -> None:
    grants = default_grants(NOW, NOW + days * DAY)
    assert list(grants) == list(CHANNELS)
    assert grants["bridge"] == NOW + bridge * DAY
    assert grants["terminal"] == grants["tui"] == NOW + terminal * DAY
    for channel in ("chat", "voice:config", "voice:stt", "voice:tts", "voice:realtime"):
        assert grants[channel] == NOW + chat * DAY


def test_presets_take_the_place_of_defaults_and_live_before_their_expiry() -> None:
    grants = build_grants(NOW, NOW + 30 * DAY, {"bridge": 3600.0, "terminal": 0.0, "chat": 99 * DAY})
    assert grants["bridge"] == NOW + 3600
    assert grants["terminal"] == NOW + 30 * DAY  # no expiry, clamped to the session's
    assert (grants["chat"], set(grants)) == (NOW + 30 * DAY, set(CHANNELS))
    assert build_grants(NOW, None, {"bridge": 0.0})["bridge"] is None
    assert build_grants(NOW, NOW + 5, None) == default_grants(NOW, NOW + 5)
    assert is_live(None, NOW)
    assert is_live(NOW + 0.001, NOW)
    assert not is_live(NOW, NOW)
    assert is_granted({"chat": None}, "chat", NOW)
    assert not is_granted({"chat": NOW}, "chat", NOW)
    assert not is_granted({}, "chat", NOW)


@given(expiries, presets)
def test_no_grant_outlives_its_session(expires_at: float | None, preset: dict[str, float | None]) -> None:
    for expiry in build_grants(NOW, expires_at, preset).values():
        assert clamp(expiry, expires_at) == expiry


@given(expiries, expiries)
def test_clamp_takes_the_earlier(one: float | None, other: float | None) -> None:
    infinity = float("inf")
    result = clamp(one, other)
    assert (infinity if result is None else result) == min(
        infinity if one is None else one, infinity if other is None else other
    )
    assert clamp_all({"chat": one}, other) == {"chat": result}
    assert {one, other} == {result, later_expiry(one, other)}
    shared = NOW + DAY
    assert clamp_all({"chat": NOW + DAY}, shared)["chat"] is shared  # of equal ones the session's own object


@pytest.mark.parametrize("expires_at", [NOW + 30 * DAY, None])
def test_withheld_channels_are_absent(expires_at: float | None) -> None:
    grants = build_grants(NOW, expires_at, {"terminal": None, "tui": None, "bridge": 0.0})
    assert grants.keys() == set(CHANNELS) - {"terminal", "tui"}
    assert not is_granted(grants, "terminal", NOW)
    assert is_granted(grants, "bridge", NOW)


def test_parsing_grants() -> None:
    assert parse_grants({"bridge": 60, "chat": 0, "tui": False}) == {"bridge": 60.0, "chat": 0.0, "tui": None}
    assert parse_grants(dict.fromkeys(CHANNELS, 315_360_000)).keys() == set(CHANNELS)
    assert parse_grants({"own": 5, "chat": False}, more=("own",)) == {"own": 5.0, "chat": None}
    assert build_grants(NOW, None, {**dict.fromkeys(CHANNELS), "own": 5.0}) == {"own": NOW + 5}
    assert build_grants(NOW, None, {**dict.fromkeys(CHANNELS), "own": None}) == {}
    assert parse_requested_grants({"bridge": 60, "chat": -1, "tui": True, "terminal": "x"}) == {"bridge": 60.0}
    assert parse_requested_grants({"bridge": False, "chat": True}) == {"bridge": None}
    assert parse_requested_grants({"chat": -1, "own": 5}) is None
    assert parse_requested_grants("chat") is None


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ([], "grants"),
        *(({"bridge": wrong}, "grants.bridge") for wrong in (True, -1, "60", float("nan"), 315_360_001, None)),
        ({"": 5}, "grants."),
        ({"Bridge": 5}, "grants.Bridge"),
        ({"bridge": 5, "termnal": False}, "grants.termnal"),
        ({"x" * 99: 5}, "grants." + "x" * 64),
    ],
)
def test_bad_grants_are_refused_by_name(value: object, field: str) -> None:
    with pytest.raises(Refused) as caught:
        parse_grants(value)
    assert (caught.value.status, caught.value.code) == (400, "invalid_field")
    assert caught.value.extra == {"field": field}
