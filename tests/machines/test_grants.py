from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_proto.basics.errors import Refused
from svc_proto.machines.grants import (
    CHANNELS,
    MAX_GRANTS,
    build_grants,
    clamp,
    clamp_all,
    default_grants,
    expiry_after,
    holds,
    is_live,
    lenient_grants,
    parse_grants,
)

DAY = 86_400.0
NOW = 1_795_000_000.0
expiries = st.none() | st.floats(NOW, NOW + 400 * DAY)
presets = st.dictionaries(st.sampled_from((*CHANNELS, "own")), st.just(0.0) | st.floats(0, 800 * DAY), max_size=9)


def test_the_channels_are_those_of_the_spec() -> None:
    words = "chat terminal bridge tui voice:config voice:stt voice:tts voice:realtime"
    assert words.split() == list(CHANNELS)


@pytest.mark.parametrize(
    ("days", "bridge", "terminal", "chat"),
    [(1, 1, 1, 1), (7, 7, 7, 7), (30, 7, 30, 30), (90, 7, 30, 90)],
)
def test_defaults_end_with_the_session_or_earlier(days: int, bridge: int, terminal: int, chat: int) -> None:
    grants = default_grants(NOW, NOW + days * DAY)
    assert list(grants) == list(CHANNELS)
    assert grants["bridge"] == NOW + bridge * DAY
    assert grants["terminal"] == grants["tui"] == NOW + terminal * DAY
    for channel in ("chat", "voice:config", "voice:stt", "voice:tts", "voice:realtime"):
        assert grants[channel] == NOW + chat * DAY


def test_a_session_without_end_has_grants_without_end() -> None:
    assert default_grants(NOW, None) == dict.fromkeys(CHANNELS)


def test_a_preset_takes_the_place_of_the_default() -> None:
    grants = build_grants(NOW, NOW + 30 * DAY, {"bridge": 3600.0, "terminal": 0.0, "own": 99 * DAY})
    assert grants["bridge"] == NOW + 3600
    assert grants["terminal"] == NOW + 30 * DAY  # never, clamped
    assert grants["own"] == NOW + 30 * DAY
    assert grants["chat"] == NOW + 30 * DAY
    assert build_grants(NOW, None, {"bridge": 0.0})["bridge"] is None
    assert build_grants(NOW, NOW + 5, None) == default_grants(NOW, NOW + 5)


@given(expiries, presets)
def test_no_grant_outlives_its_session(expires_at: float | None, preset: dict[str, float]) -> None:
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


def test_live_is_before_the_expiry() -> None:
    assert is_live(None, NOW)
    assert is_live(NOW + 0.001, NOW)
    assert not is_live(NOW, NOW)
    assert holds({"chat": None}, "chat", NOW)
    assert not holds({"chat": NOW}, "chat", NOW)
    assert not holds({}, "chat", NOW)


def test_zero_means_never() -> None:
    assert expiry_after(NOW, 0) is None
    assert expiry_after(NOW, 5) == NOW + 5


def test_parsing_grants() -> None:
    assert parse_grants({"bridge": 60, "own": 0}) == {"bridge": 60.0, "own": 0.0}
    assert len(parse_grants({f"{n:064}": 315_360_000 for n in range(64)})) == 64


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ([], "grants"),
        ({"bridge": True}, "grants.bridge"),
        ({"bridge": -1}, "grants.bridge"),
        ({"bridge": "60"}, "grants.bridge"),
        ({"bridge": float("nan")}, "grants.bridge"),
        ({"bridge": 315_360_001}, "grants.bridge"),
        ({"": 5}, "grants"),
        ({"x" * 65: 5}, "grants"),
        ({f"c{n}": 5 for n in range(65)}, "grants"),
    ],
)
def test_bad_grants_are_refused_by_name(value: object, field: str) -> None:
    with pytest.raises(Refused) as caught:
        parse_grants(value)
    assert (caught.value.status, caught.value.code) == (400, "invalid_field")
    assert caught.value.extra == {"field": field}


def test_of_a_phones_wishes_the_good_ones_count() -> None:
    assert lenient_grants({"bridge": 60, "chat": -1, "tui": True, "terminal": "x"}) == {"bridge": 60.0}
    assert lenient_grants({"chat": -1}) is None
    assert lenient_grants("chat") is None
    many = lenient_grants({f"c{n}": 5 for n in range(MAX_GRANTS + 9)})
    assert many is not None
    assert len(many) == MAX_GRANTS
