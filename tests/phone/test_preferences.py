from typing import Any

import pytest

from svc_proto.phone.preferences import Preferences


@pytest.mark.parametrize(
    ("name", "given", "kept"),
    [
        *(("max_inbound_mb", given, kept) for given, kept in ((1, 5), (5, 5), (100, 100), (1000, 100))),
        *(("auto_fetch_threshold_mb", given, kept) for given, kept in ((-1, 0), (51, 50))),
        *(("cache_cap_mb", given, kept) for given, kept in ((49, 50), (501, 500))),
    ],
)
def test_numbers_are_clamped(name: str, given: Any, kept: int) -> None:
    assert getattr(Preferences(**{name: given}), name) == kept


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
