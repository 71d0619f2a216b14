"""Limits of this room as numbers. See `tests/client/test_limits_in_numbers.py`."""

from __future__ import annotations

import pytest

from tests.limits import value_of


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("host_api.MAX_PORT", 65_535),
        ("link.SIGN_IN_WITHIN", 15.0),  # wire core 1.6
        ("link.CLOSE_WITHIN", 1.0),
        ("local_secret.READ_WITHIN", 1.0),
        ("mcp.MAX_ROWS", 1_024),
        ("pairing.WITHIN", 10.0),
        ("phone.QUICK", 2.0),
        ("phone.WITHIN", 35.0),
        ("peer.PATIENCE", 10.0),  # wire terminal-voice 6.7
        ("reach.LAN_WITHIN", 1.0),
        ("vitals.EVERY", 15.0),  # decision 149
        ("vitals.SPAN", 3600.0),
    ],
)
def test_a_limit_is_what_it_is_said_to_be(name: str, value: float) -> None:
    assert value_of("peers", name) == value
