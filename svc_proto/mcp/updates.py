"""What a client has subscribed to: it is told of changes at most once a second, and once however many there were."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from svc_proto.schema.json_rpc import INVALID_PARAMS, RpcError

if TYPE_CHECKING:
    from svc_proto.engine.core import Engine
    from svc_proto.mcp.answers import Resource

__all__ = ["Subscriptions"]

EVERY = 1.0  # s between two rounds of telling


class Subscriptions:
    """Of one client; `tell` takes the URI of what has changed. `close` when the client has gone."""

    __slots__ = ("_changed", "_engine", "_held", "_stops", "_tell", "_timer")

    def __init__(self, engine: Engine, tell: Callable[[str], None]) -> None:
        self._engine = engine
        self._tell = tell
        self._stops: dict[str, Callable[[], None]] = {}  # by URI
        self._changed: dict[str, None] = {}  # and not told yet
        self._held = False
        self._timer = engine.timers.timer(self._round)

    def add(self, resource: Resource) -> None:
        """Tell of its changes from now on. `RpcError` where nobody knows of them."""
        if resource.watch is None:
            raise RpcError(INVALID_PARAMS, "this resource does not say when it changes: read it again")
        if resource.uri not in self._stops:
            self._stops[resource.uri] = resource.watch(partial(self._change, resource.uri))

    def remove(self, uri: str) -> None:
        """Tell of its changes no more."""
        if uri in self._stops:
            self._stops.pop(uri)()
            self._changed.pop(uri, None)

    def hold(self, holding: bool) -> None:
        """The client does not read as fast as it is told, or does again."""
        self._held = holding
        if self._timer.when is None:
            self._round()

    def close(self) -> None:
        """Nobody is told any more."""
        for uri in list(self._stops):
            self.remove(uri)
        self._timer.retire()

    def _change(self, uri: str) -> None:
        self._changed[uri] = None
        if self._timer.when is None:
            self._round()

    def _round(self) -> None:
        if self._held or not self._changed:
            return
        changed, self._changed = self._changed, {}
        self._timer.set(self._engine.now.mono + EVERY)
        for uri in changed:
            self._tell(uri)
