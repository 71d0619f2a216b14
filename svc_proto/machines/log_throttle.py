"""Which addresses the log has mentioned lately: one line a minute for each will do, whatever they try."""

from __future__ import annotations

from svc_proto.basics.expiring_map import ExpiringMap

__all__ = ["LogThrottle"]

LOG_INTERVAL = 60.0  # s
MAX_ADDRESSES = 1_000  # addresses; over it the oldest may be mentioned again


class LogThrottle:
    """See the module. Times are monotonic seconds."""

    def __init__(self) -> None:
        self._said: ExpiringMap[str, None] = ExpiringMap(MAX_ADDRESSES)

    def is_due(self, address: str, mono: float) -> bool:
        """Whether it is to be mentioned now; it counts as done then."""
        self._said.purge(mono)
        if address in self._said:
            return False
        self._said.put(address, None, mono + LOG_INTERVAL)
        return True
