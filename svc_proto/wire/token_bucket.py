"""Token bucket for work that a peer causes besides requests, such as HTTP/2 frames that cost their sender nothing."""

__all__ = ["TokenBucket"]


class TokenBucket:
    """Bucket with `burst` units at first and `rate` more in each second, never more than `burst`."""

    __slots__ = ("_burst", "_rate", "_since", "_tokens")

    def __init__(self, burst: float, rate: float) -> None:
        self._burst = burst
        self._rate = rate
        self._tokens = burst
        self._since: float | None = None

    def refill(self, mono: float) -> None:
        """Add the units of the time until `mono` (seconds). Without such calls the bucket has only its burst."""
        if self._since is not None:
            self.refund((mono - self._since) * self._rate)
        self._since = mono

    def refund(self, units: float) -> None:
        """Add units to the bucket, up to its burst."""
        self._tokens = min(self._burst, self._tokens + units)

    def consume(self) -> bool:
        """Take one unit; return False when less than one was left. The bucket then owes the rest."""
        self._tokens -= 1
        return self._tokens >= 0
