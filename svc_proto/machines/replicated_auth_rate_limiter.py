"""A limiter of wrong guesses that the nodes of a service have in common: each hears what the others count.

A block of one node is so a block of all, some milliseconds later. While a node reaches nobody it counts by itself.

| word        | to  |                                  |
|-------------|-----|----------------------------------|
| `failed`    | all | an address has failed to sign in |
| `succeeded` | all | one that had failed has signed in |
| `cleared`   | all | every block is lifted            |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from svc_proto.basics.moment import Moment
from svc_proto.machines.auth_rate_limiter import AuthRateLimiter, LimiterState

__all__ = ["ReplicatedAuthRateLimiter"]


class ReplicatedAuthRateLimiter(AuthRateLimiter):
    """See the module. `tell_all` tells every other node."""

    def __init__(self, tell_all: Callable[[str, Mapping[str, object]], object]) -> None:
        super().__init__()
        self._tell_all = tell_all

    def failure(self, address: str, now: Moment) -> bool:
        """Here and elsewhere."""
        self._tell_all("failed", {"address": address})
        return super().failure(address, now)

    def success(self, address: str, now: Moment) -> None:
        """The same, where there is something to forget."""
        if self.state(address, now) is not LimiterState.CLEAR:
            self._tell_all("succeeded", {"address": address})
        super().success(address, now)

    def clear(self) -> None:
        """The same."""
        self._tell_all("cleared", {})
        super().clear()

    def apply_remote(self, word: str, address: str, now: Moment) -> None:
        """As the limiter of another node did; this tells nobody."""
        match word:
            case "failed":
                super().failure(address, now)
            case "succeeded":
                super().success(address, now)
            case "cleared":
                super().clear()
            case _:
                pass  # of a later version
