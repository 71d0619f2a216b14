"""The limits fit each other."""

from __future__ import annotations

import attrs

from svc_proto.wire.limits import DEFAULT_LIMITS


def test_every_limit_is_positive() -> None:
    assert all(value > 0 for value in attrs.astuple(DEFAULT_LIMITS))


def test_marks_are_in_order() -> None:
    limits = DEFAULT_LIMITS
    assert limits.low_water < limits.high_water <= limits.max_unsent
    assert limits.ping_patience < limits.ping_interval
