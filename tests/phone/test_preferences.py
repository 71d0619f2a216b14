from __future__ import annotations

import pytest

from svc_proto.phone.preferences import MIB, Preferences


def test_the_defaults_are_the_specification() -> None:
    defaults = Preferences()
    assert (defaults.max_inbound, defaults.cache_cap) == (25 * MIB, 200 * MIB)
    assert (defaults.auto_fetch_threshold_mb, defaults.auto_fetch_on_cellular, defaults.allow_plain) == (
        2,
        False,
        False,
    )


@pytest.mark.parametrize(("given", "kept"), [(1, 5), (5, 5), (60, 60), (100, 100), (1000, 100)])
def test_the_largest_attachment_is_clamped(given: int, kept: int) -> None:
    assert Preferences(max_inbound_mb=given).max_inbound_mb == kept


@pytest.mark.parametrize(("given", "kept"), [(-1, 0), (51, 50)])
def test_the_threshold_is_clamped(given: int, kept: int) -> None:
    assert Preferences(auto_fetch_threshold_mb=given).auto_fetch_threshold_mb == kept


@pytest.mark.parametrize(("given", "kept"), [(49, 50), (501, 500)])
def test_the_cache_is_clamped(given: int, kept: int) -> None:
    assert Preferences(cache_cap_mb=given).cache_cap_mb == kept


@pytest.mark.parametrize(
    ("url", "plain", "consented"),
    [
        ("wss://h", True, True),
        ("https://h", True, True),
        ("ws://h", False, True),
        ("HTTP://h", False, True),
        ("ftp://h", False, False),
    ],
)
def test_plain_addresses_are_saved_with_consent_only(url: str, plain: bool, consented: bool) -> None:
    assert Preferences().may_save(url) is plain
    assert Preferences(allow_plain=True).may_save(url) is consented
