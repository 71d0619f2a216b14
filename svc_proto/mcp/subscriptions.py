"""What a client has subscribed to: it is told of changes at most once a second, and once however many there were."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING

from attrs import frozen

from svc_proto.engine.flow import Deferred, Flow
from svc_proto.schema.json_rpc import INVALID_PARAMS, RpcError
from svc_proto.schema.mcp_messages import TOO_MANY

if TYPE_CHECKING:
    from svc_proto.engine.core import Engine

__all__ = ["ListenRequest", "Resource", "Subscriptions"]

UPDATE_INTERVAL = 1.0  # s between two rounds of telling
MAX_LISTENING = 32  # `subscriptions/listen` of one caller


@frozen(kw_only=True)
class Resource:
    """Something to be read by its URI; `read` gives its text, or its bytes. Raises `ToolError`, or
    `Refused` where it cannot be said what is there.

    `watch` has a function called with each change, until what it returns is called; None: nobody knows of changes.
    """

    uri: str
    name: str
    description: str
    media_type: str
    read: Callable[[], Flow[str | bytes]]
    watch: Callable[[Callable[[], None]], Callable[[], None]] | None = None


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

    def set_paused(self, holding: bool) -> None:
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
        self._timer.set(self._engine.now.mono + UPDATE_INTERVAL)
        for uri in changed:
            self._tell(uri)


class ListenRequest(Deferred):
    """What a request is told until it is cancelled, or we have nothing to tell any more: that is its answer (`last`).

    `among` are those of its caller. `RpcError` where they are too many.
    """

    __slots__ = ("_among", "_last", "_subscriptions")

    def __init__(
        self,
        engine: Engine,
        resources: Iterable[Resource],
        tell: Callable[[str], None],
        last: str,
        among: dict[ListenRequest, None],
    ) -> None:
        if len(among) >= MAX_LISTENING:
            raise RpcError(TOO_MANY, f"{MAX_LISTENING} requests listen")
        super().__init__()
        self._last = last
        self._among = among
        self._subscriptions = Subscriptions(engine, tell)
        among[self] = None
        for resource in resources:
            self._subscriptions.add(resource)

    def set_paused(self, holding: bool) -> None:
        """The client does not read as fast as it is told, or does again."""
        self._subscriptions.set_paused(holding)

    def stop(self) -> None:
        """There is nothing to tell any more."""
        self._close()
        self.resolve(self._last)

    def cancel(self) -> None:
        """Nobody listens any more."""
        self._close()
        super().cancel()

    def _close(self) -> None:
        self._among.pop(self, None)
        self._subscriptions.close()
