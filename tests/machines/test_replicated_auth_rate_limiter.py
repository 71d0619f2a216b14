from collections.abc import Mapping

from svc_proto.machines.auth_rate_limiter import BLOCK_DURATION, MAX_FAILURES, LimiterState
from svc_proto.machines.replicated_auth_rate_limiter import ReplicatedAuthRateLimiter
from tests.machines.fixed_inputs import at

WHO = "203.0.113.9"


class Nodes:
    """Two limiters: `there` applies the messages that `here` broadcasts."""

    def __init__(self) -> None:
        self.told: list[tuple[str, Mapping[str, object]]] = []
        self.here, self.there = ReplicatedAuthRateLimiter(self.hear), ReplicatedAuthRateLimiter(lambda word, body: None)

    def hear(self, word: str, body: Mapping[str, object]) -> None:
        self.told.append((word, body))
        self.there.apply_remote(word, str(body.get("address", "")), at(0))


def test_failures_successes_and_clears_count_on_both_nodes() -> None:
    nodes = Nodes()
    blocked = [nodes.here.failure(WHO, at(0)) for _ in range(MAX_FAILURES)]
    assert blocked == [False] * 4 + [True]
    assert nodes.told == [("failed", {"address": WHO})] * 5
    assert nodes.there.blocked_for(WHO, at(0)) == BLOCK_DURATION
    nodes = Nodes()
    nodes.here.success(WHO, at(0))
    assert nodes.told == []
    nodes.here.failure(WHO, at(0))
    assert nodes.there.state(WHO, at(0)) is LimiterState.COUNTING
    nodes.here.success(WHO, at(0))
    assert nodes.told[1:] == [("succeeded", {"address": WHO})]
    assert nodes.here.state(WHO, at(0)) is nodes.there.state(WHO, at(0)) is LimiterState.CLEAR
    nodes = Nodes()
    for _ in range(MAX_FAILURES):
        nodes.here.failure(WHO, at(0))
    nodes.here.clear()
    assert nodes.told[5:] == [("cleared", {})]
    assert nodes.here.blocked_for(WHO, at(0)) == nodes.there.blocked_for(WHO, at(0)) == 0
    for word in ("failed", "succeeded", "cleared"):
        before = len(nodes.told)
        nodes.here.apply_remote(word, WHO, at(0))
        assert len(nodes.told) == before  # a message is not sent on
    nodes = Nodes()
    nodes.there.apply_remote("forgiven", WHO, at(0))
    assert nodes.there.state(WHO, at(0)) is LimiterState.CLEAR
