"""Log throttle: at most one line per address and minute, for a bounded number of addresses."""

from svc_proto.basics.expiring_map import ExpiringMap

__all__ = ["LogThrottle"]

LOG_INTERVAL = 60.0  # s
MAX_ADDRESSES = 1_000  # addresses; above the limit the oldest is dropped


class LogThrottle:
    """Limiter of log lines by address: at most one a minute, for the last `MAX_ADDRESSES` addresses.

    Times are monotonic seconds.
    """

    def __init__(self) -> None:
        self._said: ExpiringMap[str, None] = ExpiringMap(MAX_ADDRESSES)

    def is_due(self, address: str, mono: float) -> bool:
        """Report whether a line about the address may be logged now; if so, count it as logged."""
        self._said.purge(mono)
        if address in self._said:
            return False
        self._said.put(address, None, mono + LOG_INTERVAL)
        return True
