"""Allowances: a burst, a rate, and time that only the owner knows."""

from __future__ import annotations

from svc_proto.wire.token_bucket import TokenBucket


def spent(allowance: TokenBucket) -> int:
    """How many there were left."""
    n = 0
    while allowance.consume():
        n += 1
    return n


def test_a_burst_is_all_there_is_without_time() -> None:
    allowance = TokenBucket(3, 10)
    assert spent(allowance) == 3
    assert not allowance.consume()


def test_time_fills_it_up_again_to_the_burst() -> None:
    allowance = TokenBucket(10, 2)
    allowance.refill(100.0)  # the first time says nothing about how much has passed
    assert spent(allowance) == 10
    allowance.refill(103.0)
    assert spent(allowance) == 5  # one was owed
    allowance.refill(1000.0)
    assert spent(allowance) == 10


def test_what_is_given_back_counts() -> None:
    allowance = TokenBucket(2, 0)
    assert allowance.consume()
    allowance.refund(100.0)
    assert spent(allowance) == 2
