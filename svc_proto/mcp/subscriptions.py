"""Subscriptions of a session or listening request to resource changes, with a limited rate of notifications.

Each sends at most one notification per resource and second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from attrs import frozen

from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Deferred, Flow
from svc_proto.schema.json_rpc import INVALID_PARAMS, RpcError
from svc_proto.schema.mcp_messages import TOO_MANY

__all__ = ["ListenRequest", "Resource", "Subscriptions"]

UPDATE_INTERVAL = 1.0  # s between two rounds of notifications
MAX_LISTENING = 32  # `subscriptions/listen` requests of one client


@frozen(kw_only=True)
class Resource:
    """A resource that is read by its URI.

    `read` returns text or bytes; it may raise `ToolError` or `Refused`. `watch` registers a callback for changes, and
    returns a function that ends the watch; None: changes are not detected.
    """

    uri: str
    name: str
    description: str
    media_type: str
    read: Callable[[], Flow[str | bytes]]
    watch: Callable[[Callable[[], None]], Callable[[], None]] | None = None


class Subscriptions:
    """Subscriptions of one session or listening request; `notify` gets the URI of a changed resource."""

    __slots__ = ("_changed", "_engine", "_is_watching", "_notify", "_stops", "_timer")

    def __init__(self, engine: Engine, notify: Callable[[str], None]) -> None:
        self._engine = engine
        self._notify = notify
        self._stops: dict[str, Callable[[], None]] = {}  # end functions by URI
        self._changed: dict[str, None] = {}  # changes that are not sent yet
        self._is_watching = False
        self._timer = engine.timers.timer(self._round)

    def add(self, resource: Resource) -> None:
        """Subscribe to a resource. Raises `RpcError` if its changes are not detected."""
        if resource.watch is None:
            raise RpcError(INVALID_PARAMS, "this resource does not say when it changes: read it again")
        if resource.uri not in self._stops:
            self._stops[resource.uri] = resource.watch(partial(self._change, resource.uri))

    def remove(self, uri: str) -> None:
        """Unsubscribe from a resource, and drop its change that is not sent yet; do nothing if not subscribed."""
        if uri in self._stops:
            self._stops.pop(uri)()
            self._changed.pop(uri, None)

    def set_paused(self, holding: bool) -> None:
        """Pause or resume notifications: the client's transport is full, or has room again."""
        self._is_watching = holding
        if self._timer.when is None:
            self._round()

    def close(self) -> None:
        """Unsubscribe from all resources, and retire the timer."""
        for uri in list(self._stops):
            self.remove(uri)
        self._timer.retire()

    def _change(self, uri: str) -> None:
        self._changed[uri] = None
        if self._timer.when is None:
            self._round()

    def _round(self) -> None:
        if self._is_watching or not self._changed:
            return
        changed, self._changed = self._changed, {}
        self._timer.set(self._engine.now.mono + UPDATE_INTERVAL)
        for uri in changed:
            self._notify(uri)


class ListenRequest(Deferred):
    """Request that gets notifications until it is cancelled, or until `stop`, which answers it with `last`.

    `among` holds the client's listening requests. Raises `RpcError` at their limit.
    """

    __slots__ = ("_among", "_last", "_subscriptions")

    def __init__(
        self,
        engine: Engine,
        resources: Iterable[Resource],
        notify: Callable[[str], None],
        last: str,
        among: dict[ListenRequest, None],
    ) -> None:
        if len(among) >= MAX_LISTENING:
            raise RpcError(TOO_MANY, f"{MAX_LISTENING} requests listen")
        super().__init__()
        self._last = last
        self._among = among
        self._subscriptions = Subscriptions(engine, notify)
        among[self] = None
        for resource in resources:
            self._subscriptions.add(resource)

    def set_paused(self, holding: bool) -> None:
        """Pause or resume notifications."""
        self._subscriptions.set_paused(holding)

    def stop(self) -> None:
        """End the notifications, and answer the request."""
        self._close()
        self.resolve(self._last)

    def cancel(self) -> None:
        """Unsubscribe, and cancel the request: it gets no answer."""
        self._close()
        super().cancel()

    def _close(self) -> None:
        self._among.pop(self, None)
        self._subscriptions.close()
