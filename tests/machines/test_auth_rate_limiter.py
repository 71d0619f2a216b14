import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from svc_proto.machines.auth_rate_limiter import (
    LIMITER_TABLE,
    AuthRateLimiter,
    LimiterState,
    LimiterTrigger,
    address_key,
)
from tests.machines.fixed_inputs import at
from tests.machines.specified_tables import check_table

# SPEC.md "Rate limiting of WebSocket authentication" and wire core 5, sentence by sentence.
ROWS = [
    # "Failed WebSocket authentication attempts are counted per IP address."
    ("clear", (LimiterTrigger.FAILURE,), "counting"),
    ("counting", (LimiterTrigger.FAILURE,), "counting"),
    # "After 5 failures within 60 seconds the IP is blocked for 5 minutes"
    ("counting", (LimiterTrigger.FIFTH_FAILURE,), "blocked"),
    ("counting", (LimiterTrigger.MINUTE_PASSED,), "clear"),
    ("blocked", (LimiterTrigger.FIVE_MINUTES_PASSED,), "clear"),
    # "attempts while blocked do not extend it"
    ("blocked", (LimiterTrigger.FAILURE,), "blocked"),
    # "Success clears that address's counters, not a block."
    ("counting", (LimiterTrigger.SUCCESS,), "clear"),
    ("blocked", (LimiterTrigger.SUCCESS,), "blocked"),
    # "A successful `POST /pairing/register` clears all blocks."
    ("counting", (LimiterTrigger.REGISTERED,), "clear"),
    ("blocked", (LimiterTrigger.REGISTERED,), "clear"),
]
HOME = "192.0.2.1"


def fail(limiter: AuthRateLimiter, *times: float, address: str = HOME) -> bool:
    blocked = False
    for time in times:
        blocked = limiter.failure(address, at(time))
    return blocked


def test_table_matches_the_documents() -> None:
    check_table(LIMITER_TABLE, LimiterState, LimiterTrigger, ROWS)


def test_the_fifth_failure_blocks_for_five_minutes() -> None:
    limiter = AuthRateLimiter()
    assert limiter.state(HOME, at(0)) is LimiterState.CLEAR
    assert not fail(limiter, 0, 1, 2, 3)
    assert (limiter.state(HOME, at(3)), limiter.blocked_for(HOME, at(3))) == (LimiterState.COUNTING, 0.0)
    assert fail(limiter, 59.5)
    assert (limiter.state(HOME, at(60)), limiter.blocked_for(HOME, at(60))) == (LimiterState.BLOCKED, 299.5)
    for seconds, retry_after in ((59.5, b"300"), (60, b"300"), (359.4, b"1")):
        refused = limiter.refusal(HOME, at(seconds), "rate_limited", "try again later")
        assert refused is not None
        assert (refused.status, refused.headers) == (429, ((b"retry-after", retry_after),))
    assert limiter.refusal(HOME, at(359.5), "rate_limited", "try again later") is None


def test_failures_count_for_a_minute_by_network() -> None:
    limiter = AuthRateLimiter()
    assert not fail(limiter, 0, 20, 40, 59, 60)  # the first is 60 s old
    assert fail(limiter, 61)
    limiter = AuthRateLimiter()
    assert not fail(limiter, 0, 0, 0, 0, 60, 60, 60, 60)
    limiter = AuthRateLimiter()
    for number in range(5):
        limiter.failure(f"2001:db8::{number}", at(number))
    assert limiter.blocked_for("2001:db8::ffff", at(5)) == 299.0
    assert limiter.blocked_for("2001:db8:0:1::1", at(5)) == 0.0


def test_counts_end_with_success_or_registration_and_blocks_with_the_latter() -> None:
    limiter = AuthRateLimiter()
    fail(limiter, 0, 0, 0, 0, 0)
    assert fail(limiter, 100, 200)
    limiter.success(HOME, at(250))
    assert limiter.blocked_for(HOME, at(250)) == 50.0
    assert limiter.blocked_for(HOME, at(300)) == 0.0
    limiter = AuthRateLimiter()
    limiter.success(HOME, at(0))
    fail(limiter, 0, 0, 0, 0)
    fail(limiter, 0, 0, 0, 0, address="192.0.2.2")
    limiter.success(HOME, at(1))
    assert not fail(limiter, 1)
    assert fail(limiter, 1, address="192.0.2.2")
    limiter = AuthRateLimiter()
    fail(limiter, 0, 0, 0, 0, 0)
    fail(limiter, 0, 0, 0, 0, address="192.0.2.2")
    limiter.clear()
    assert limiter.blocked_for(HOME, at(1)) == 0.0
    assert not fail(limiter, 1, address="192.0.2.2")


def test_at_the_cap_counters_and_the_earliest_block_are_evicted() -> None:
    limiter = AuthRateLimiter(cap=3)
    fail(limiter, 0, 0, 0, 0, 0)
    for number in range(100):
        fail(limiter, 1, address=f"198.51.100.{number}")
    assert limiter.blocked_for(HOME, at(1)) == 299.0
    # The stalest counter was evicted.
    assert limiter.state("198.51.100.96", at(1)) is LimiterState.CLEAR
    assert limiter.state("198.51.100.97", at(1)) is LimiterState.COUNTING
    limiter = AuthRateLimiter(cap=2)
    for second, address in enumerate(("192.0.2.1", "192.0.2.2", "192.0.2.3")):
        fail(limiter, *[second] * 5, address=address)
    assert [limiter.blocked_for(f"192.0.2.{n}", at(2)) for n in (1, 2, 3)] == [0.0, 299.0, 300.0]


@pytest.mark.parametrize(
    ("address", "key"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:DB8:1:2::", "2001:db8:1:2::/64"),
        ("::1", "::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("box.local", "box.local"),
        ("x" * 500, "x" * 64),
        ("", ""),
    ],
)
def test_address_keys(address: str, key: str) -> None:
    assert address_key(address) == key


class LimiterAgainstAModel(RuleBasedStateMachine):
    """The rate limiter beside a model of the failures and the block of each address."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.limiter = AuthRateLimiter()
        self.failures: dict[str, list[float]] = {}
        self.blocked_until: dict[str, float] = {}

    addresses = st.sampled_from(("192.0.2.1", "192.0.2.2"))

    def left(self, address: str) -> float:
        return max(0.0, self.blocked_until.get(address, 0.0) - self.now)

    @rule(address=addresses)
    def failure(self, address: str) -> None:
        expected = self.left(address) > 0
        if not expected:
            times = self.failures.setdefault(address, [])
            times.append(self.now)
            if len([time for time in times if self.now - time < 60.0]) >= 5:
                expected = True
                self.blocked_until[address] = self.now + 300.0
                times.clear()
        assert self.limiter.failure(address, at(self.now)) is expected

    @rule(address=addresses)
    def success(self, address: str) -> None:
        self.failures.pop(address, None)
        self.limiter.success(address, at(self.now))

    @rule(address=addresses)
    def look(self, address: str) -> None:
        assert self.limiter.blocked_for(address, at(self.now)) == self.left(address)

    @rule(seconds=st.sampled_from((0.5, 15.0, 20.0, 59.5, 60.0, 150.0, 300.0)))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule(certain=st.integers(0, 9))
    def clear(self, certain: int) -> None:
        if certain == 0:
            self.failures.clear()
            self.blocked_until.clear()
            self.limiter.clear()


LimiterAgainstAModel.TestCase.settings = settings(max_examples=25, stateful_step_count=50, deadline=None)
TestLimiterAgainstAModel = LimiterAgainstAModel.TestCase
