"""`Idempotency-Key`: the same request again is not run again (wire api 2.3).

Same key and same fingerprint: the run of the first request answers, over or not. Same key and another fingerprint:
it is run, and replaces the entry. A run that failed answers nobody else. In memory, 1000 keys, 300 seconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import frozen

from svc_proto.api.run import Run
from svc_proto.basics.entropy import sha256_hex
from svc_proto.basics.expiring import ExpiringMap
from svc_proto.basics.moment import Moment
from svc_proto.basics.strict_json import canonical

__all__ = ["KEEP", "MAX_KEYS", "IdempotencyKeys", "fingerprint"]

KEEP = 300.0  # s, wire api 2.3
MAX_KEYS = 1_000  # the same; one too many drops the oldest


@frozen
class _Entry:
    fingerprint: str
    run: Run


class IdempotencyKeys:
    """The runs that were begun with a key."""

    def __init__(self) -> None:
        self._entries: ExpiringMap[str, _Entry] = ExpiringMap(MAX_KEYS)

    def find(self, key: str, mark: str, now: Moment) -> Run | None:
        """The run that answers this request as well, if there is one."""
        entry = self._entries.get(sha256_hex(key), now.mono)
        if entry is None or entry.fingerprint != mark:
            return None
        ended = entry.run.ended
        return None if ended is not None and not ended.completed else entry.run

    def keep(self, key: str, mark: str, run: Run, now: Moment) -> None:
        """A run was begun with this key."""
        self._entries.purge(now.mono)
        self._entries.put(sha256_hex(key), _Entry(mark, run), now.mono + KEEP)


def fingerprint(body: Mapping[str, object], names: Sequence[str], *more: str | None) -> str:
    """What two requests must have in common to be the same."""
    return sha256_hex(canonical([[body.get(name) for name in names], list(more)]))
