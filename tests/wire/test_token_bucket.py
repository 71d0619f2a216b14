"""Token bucket: a burst, a rate, and the owner's clock."""

from svc_proto.wire.token_bucket import TokenBucket


def spent(allowance: TokenBucket) -> int:
    n = 0
    while allowance.consume():
        n += 1
    return n


def test_without_time_only_the_burst_and_refunded_tokens_are_available() -> None:
    allowance = TokenBucket(3, 10)
    assert spent(allowance) == 3
    assert not allowance.consume()
    allowance = TokenBucket(2, 0)
    assert allowance.consume()
    allowance.refund(100.0)
    assert spent(allowance) == 2


def test_time_refills_up_to_the_burst() -> None:
    allowance = TokenBucket(10, 2)
    allowance.refill(100.0)  # the first refill has no earlier time to compare with
    assert spent(allowance) == 10
    allowance.refill(103.0)
    assert spent(allowance) == 5  # one was owed
    allowance.refill(1000.0)
    assert spent(allowance) == 10
