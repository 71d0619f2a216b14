"""Allowances: a burst, a rate, and time that only the owner knows."""

from __future__ import annotations

from svc_proto.wire.token_bucket import Allowance


def spent(allowance: Allowance) -> int:
    """How many there were left."""
    n = 0
    while allowance.spend():
        n += 1
    return n


def test_a_burst_is_all_there_is_without_time() -> None:
    allowance = Allowance(3, 10)
    assert spent(allowance) == 3
    assert not allowance.spend()


def test_time_fills_it_up_again_to_the_burst() -> None:
    allowance = Allowance(10, 2)
    allowance.at(100.0)  # the first time says nothing about how much has passed
    assert spent(allowance) == 10
    allowance.at(103.0)
    assert spent(allowance) == 5  # one was owed
    allowance.at(1000.0)
    assert spent(allowance) == 10


def test_what_is_given_back_counts() -> None:
    allowance = Allowance(2, 0)
    assert allowance.spend()
    allowance.refund(100.0)
    assert spent(allowance) == 2
