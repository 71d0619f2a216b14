"""Whether the API server takes a bearer: asked of it, and remembered for a minute (wire terminal-voice 7).

A redirect proves nothing about a bearer, so only an answer of 2xx counts. Failures are not remembered. An API server
without a key says yes to anybody: `keyed` finds out, by asking without a bearer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc_proto.basics.entropy import sha256_hex
from svc_proto.basics.errors import Refused
from svc_proto.basics.expiring import ExpiringMap
from svc_proto.engine.client import bearer as shown
from svc_proto.engine.client import fetch
from svc_proto.engine.flow import Flow
from svc_proto.facts import Failure

if TYPE_CHECKING:
    from svc_proto.engine.core import Engine

__all__ = ["CACHE_SECONDS", "MAX_CACHED", "MAX_PROBES", "ApiProbe"]

PROBE_TIMEOUT = 5.0  # s, connection included
CACHE_SECONDS = 60.0  # s
MAX_CACHED = 1_000  # bearers: the oldest is forgotten
MAX_PROBES = 64  # at the same time: a further one is refused with 503


class ApiProbe:
    """Asks `GET /v1/models` of one API server."""

    def __init__(self, engine: Engine, api_url: str) -> None:
        self._engine = engine
        self._url = f"{api_url}/v1/models"
        self._known: ExpiringMap[str, bool] = ExpiringMap(MAX_CACHED)  # by the hash of the bearer
        self._keyed_until = 0.0  # monotonic s
        self._under_way = 0

    def accepts(self, bearer: str, *, afresh: bool = False) -> Flow[bool]:
        """Whether the API server takes this bearer; one that cannot be reached takes none.

        `afresh`: as it is now, whatever it said before, and not to be remembered.
        """
        digest, now = sha256_hex(bearer), self._engine.now.mono
        if not afresh and self._known.get(digest, now):
            return True
        fields = shown(bearer)
        if not fields or not (yield from self._ask(fields)):
            return False
        if afresh:
            return True
        now = self._engine.now.mono
        self._known.purge(now)
        self._known.put(digest, True, now + CACHE_SECONDS)
        return True

    def keyed(self) -> Flow[bool]:
        """Whether the API server refuses callers without a bearer."""
        if self._engine.now.mono < self._keyed_until:
            return True
        if (yield from self._ask(())):
            return False
        self._keyed_until = self._engine.now.mono + CACHE_SECONDS
        return True

    def _ask(self, headers: tuple[tuple[bytes, bytes], ...]) -> Flow[bool]:
        if self._under_way >= MAX_PROBES:
            raise Refused(503, "busy", "too many bearers are being checked: try again in a few seconds")
        self._under_way += 1
        try:
            answer = yield from fetch(self._engine, "GET", self._url, headers=headers, within=PROBE_TIMEOUT)
        finally:
            self._under_way -= 1
        return not isinstance(answer, Failure) and 200 <= answer.status < 300
