"""`Idempotency-Key`: the runs of requests with a key, by which a repeated request is recognized (wire api 2.3).

Requests are equal if they have the same principal, key and fingerprint. Entries are in memory, expire after `KEY_TTL`,
and are limited to the newest `MAX_KEYS`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from svc_proto.api.runs.run import Run
from svc_proto.api.runs.run_manager import RunManager
from svc_proto.basics.entropy import sha256_hex
from svc_proto.basics.expiring_map import ExpiringMap
from svc_proto.basics.fast_frozen import fast_frozen
from svc_proto.basics.strict_json import canonical
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow

__all__ = ["KEY_TTL", "MAX_KEYS", "IdempotencyKeys", "IdempotentRequest", "fingerprint"]

KEY_TTL = 300.0  # s, wire api 2.3
MAX_KEYS = 1_000  # wire api 2.3; the oldest entry is dropped


@fast_frozen
class _StoredRun:
    fingerprint: str
    run: Run


class IdempotencyKeys:
    """The runs that were started with an idempotency key; `theme` names the group of routes that share the keys."""

    def __init__(self, theme: str) -> None:
        self._theme = theme
        self._entries: ExpiringMap[str, _StoredRun] = ExpiringMap(MAX_KEYS)

    def for_request(self, key: str, mark: str, engine: Engine, principal: object = None) -> IdempotentRequest:
        """Return the idempotent request for a key of a principal; an empty key counts as none."""
        own = key if principal is None else f"{principal}\n{key}"
        return IdempotentRequest(self._entries, engine, mark, f"{self._theme}:{sha256_hex(own)}" if key else "")


@fast_frozen
class IdempotentRequest:
    """A request that may repeat an earlier one."""

    _entries: ExpiringMap[str, _StoredRun]
    _engine: Engine
    _mark: str
    name: str  # of the key; empty: there is no key

    def find(self) -> Run | None:
        """Return the run of an equal earlier request with this key, live or completed; else None.

        A run that is being stopped is not returned, because it will not complete.
        """
        run = self._stored_run()
        if run is None or run.stopping:
            return None
        return None if run.ended is not None and not run.ended.completed else run

    def stop_earlier(self, runs: RunManager) -> Flow[None]:
        """Stop the run of an equal earlier request if it is live, and wait for its end, so that none queues.

        The run of another equal request that started during the wait is stopped too.
        """
        while (run := self._stored_run()) is not None and run.ended is None:
            runs.stop(run.record.id)
            yield from run.wait_ended()

    def wait_stopped(self) -> Flow[None]:
        """Wait for the end of an equal earlier request's run that is being stopped, so that its slot is free."""
        run = self._stored_run()
        if run is not None and run.stopping:
            yield from run.wait_ended()

    def remember(self, run: Run) -> None:
        """Store this run for repeated requests for `KEY_TTL`, unless it is the stored one; without a key do nothing."""
        if self.name and self.find() is not run:
            mono = self._engine.now.mono
            self._entries.purge(mono)
            self._entries.put(self.name, _StoredRun(self._mark, run), mono + KEY_TTL)

    def _stored_run(self) -> Run | None:
        entry = self._entries.get(self.name, self._engine.now.mono) if self.name else None
        return None if entry is None or entry.fingerprint != self._mark else entry.run


def fingerprint(body: Mapping[str, object], names: Sequence[str], *more: str | None) -> str:
    """Return a hash of the members `names` of a body and of the texts `more`."""
    return sha256_hex(canonical([[body.get(name) for name in names], list(more)]))
