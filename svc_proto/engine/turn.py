"""A request that came whole: route, policy, handler and answer in one go, as long as nobody has to wait.

What a request is asked, and what it may be told, is the same whether it came whole or in pieces: an `Exchange` is made
as soon as somebody has to wait, stream, refuse or fail, and goes on from there.
"""

from __future__ import annotations

from types import GeneratorType
from typing import TYPE_CHECKING, Any, TypeAlias

from svc_proto.engine.answers import say_at_once
from svc_proto.engine.exchange import Exchange
from svc_proto.engine.message import STRANGER, Request, Response
from svc_proto.engine.router import Kind, Match, Route
from svc_proto.wire.events import RequestHead

if TYPE_CHECKING:
    from svc_proto.engine.server import ServerChannel
    from svc_proto.wire.connection import ServerConnection

__all__ = ["Found", "identify", "take_turn"]

Found: TypeAlias = tuple[Route | None, Request | None, object]
"""How far the admission of a request came; last who asks, a flow that finds out, or the exception that ended it."""


_SOCKET = Kind.WEBSOCKET  # as in `machines.session`
NOTHING: dict[str, Match] = {}
STILL_OPEN = (Exception, GeneratorType)  # what `identify` may find in place of a principal


def identify(channel: ServerChannel, head: RequestHead) -> Found:
    """Find the route of a request and ask the policy, before a byte of the body is read."""
    route = request = None
    try:
        router, path, query = channel.app.router, head.target, ""
        match = router.exact.get(path, NOTHING).get(head.method)  # as mostly
        if match is None:
            path, query = router.split(path)
            match = router.match(head.method, path)
        route, params = match
        # In their order: by name they would go through a dictionary, which each request would pay for.
        request = Request(
            head.method, path, query, head.headers, channel.peer, channel.secure, params, head.http_version
        )
        if channel.behind is not None:
            channel.behind.named(request)
        return route, request, channel.app.authorize(route.access, request)
    except Exception as error:
        return route, request, error


def take_turn(channel: ServerChannel, alone: ServerConnection, head: RequestHead, body: bytes) -> None:
    """Serve a request that the connection, which is the channel's alone, has given as `plain`."""
    route, request, principal = identify(channel, head)
    if (
        route is None
        or request is None
        or isinstance(principal, STILL_OPEN)
        or route.streamed
        or route.kind is _SOCKET
        or len(body) > (route.body_limit or channel.limits.max_skipped)
    ):
        alone.retell()
        channel.exchange = exchange = Exchange(channel, head, route, request)
        exchange.begin(principal)
        channel.pump()
        return
    request.principal = principal
    if channel.visit is not None and principal is not STRANGER:
        channel.vouch()
    if route.body_limit:
        request.body = body
    result: Any
    try:
        result = route.handler(request)
    except Exception as error:
        result = error
    whole = type(result) is Response and result.file is None and not channel.engine.stopping
    if whole and say_at_once(channel, head, route.label, result):
        channel.turned()
        return
    channel.exchange = exchange = Exchange(channel, head, route, request)
    exchange.go_on(result)
    channel.began()
