"""Authentication rate limiter that the nodes of a service share: each node counts the failures at all nodes.

While a node is disconnected it counts alone.

| message     | to  |                                  |
|-------------|-----|----------------------------------|
| `failed`    | all | failed authentication of an address |
| `succeeded` | all | success of an address that had failed |
| `cleared`   | all | all counts and blocks are cleared |
"""

from collections.abc import Callable, Mapping

from svc_proto.basics.moment import Moment
from svc_proto.machines.auth_rate_limiter import AuthRateLimiter, LimiterState

__all__ = ["ReplicatedAuthRateLimiter"]


class ReplicatedAuthRateLimiter(AuthRateLimiter):
    """Authentication rate limiter that broadcasts its changes with `broadcast`."""

    def __init__(self, broadcast: Callable[[str, Mapping[str, object]], object]) -> None:
        super().__init__()
        self._broadcast = broadcast

    def failure(self, address: str, now: Moment) -> bool:
        """Count a failed attempt at all nodes, unless blocked there; return whether the address is blocked here now."""
        self._broadcast("failed", {"address": address})
        return super().failure(address, now)

    def success(self, address: str, now: Moment) -> None:
        """Clear the failures of an address here and at the other nodes; send nothing without failures."""
        if self.state(address, now) is not LimiterState.CLEAR:
            self._broadcast("succeeded", {"address": address})
        super().success(address, now)

    def clear(self) -> None:
        """Clear all counts and blocks, here and at the other nodes."""
        self._broadcast("cleared", {})
        super().clear()

    def apply_remote(self, word: str, address: str, now: Moment) -> None:
        """Apply a change of another node, without a broadcast; ignore an unknown word."""
        match word:
            case "failed":
                super().failure(address, now)
            case "succeeded":
                super().success(address, now)
            case "cleared":
                super().clear()
            case _:
                pass  # of a later version
