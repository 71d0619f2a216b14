"""Route table as data, and its lookup: exact paths by one dictionary, patterns by their number of segments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from attrs import field, frozen

from svc_proto.basics.errors import Refused
from svc_proto.basics.fast_frozen import fast_frozen
from svc_proto.engine.flow import Deferred, Flow
from svc_proto.engine.message import Request, Response, StreamedResponse
from svc_proto.wire.events import Headers
from svc_proto.wire.urls import decode_segment, split_target

if TYPE_CHECKING:
    from svc_proto.engine.websocket import WebSocketHandler

__all__ = ["BODY_LIMIT", "HandlerResult", "Handler", "RouteKind", "RouteMatch", "Route", "Router", "path_of_label"]

ANY_PATH = "*"
BODY_LIMIT = 2 * 1024 * 1024  # bytes of a buffered request body, wire core 0.2

HandlerResult: TypeAlias = "Response | StreamedResponse | WebSocketHandler"
HandlerFlow: TypeAlias = "Flow[Response] | Flow[Response | StreamedResponse] | Flow[HandlerResult]"
Handler: TypeAlias = "Callable[[Request], HandlerResult | Deferred | HandlerFlow]"


class RouteKind(Enum):
    """Protocol that a route serves: HTTP or WebSocket."""

    HTTP = "http"
    WEBSOCKET = "websocket"


@fast_frozen(kw_only=True)
class Route:
    """A row of a service's route table.

    `access` is the name of a policy of the service, which is checked before the handler is called. `pattern` is a path;
    segments in braces match any one segment that is not empty and become `request.params`. A GET route answers HEAD as
    well. With `body_limit` 0 no body is accepted: a small one is discarded, since some clients send one with a GET, and
    a large one is refused. With `streamed` the handler starts when the head has arrived and reads `request.stream`.
    With `stops_with_client` the request is cancelled when the peer closes its end before the response is complete,
    unless its producer sends probes (`ResponseWriter.on_half_close`). On other routes a peer may close its end and
    still read the response, unless the handler has called `Request.stop_with_client`.
    """

    method: str
    pattern: str
    access: Enum
    handler: Handler
    kind: RouteKind = RouteKind.HTTP
    body_limit: int = BODY_LIMIT
    streamed: bool = False
    stops_with_client: bool = False
    label: str = field(init=False)  # in metrics and in the log, HEAD with GET

    @label.default
    def _name(self) -> str:
        return f"{self.method} {self.pattern}"


def path_of_label(label: str) -> str:
    """Return the path in a route's label, such as `/health` of `GET /health`."""
    return label.partition(" ")[2]


class RouteMatch(NamedTuple):
    """A route and its path parameters."""

    route: Route
    params: dict[str, str]


NO_PARAMS: dict[str, str] = {}


@frozen
class _Pattern:
    """Routes of one pattern by method.

    `words` has the index and text of its literal segments, the last first; `names` has those of its path parameters.
    """

    words: tuple[tuple[int, str], ...]
    names: tuple[tuple[int, str], ...]
    methods: dict[str, RouteMatch] = field(factory=dict)


@cache
def _words_and_names(segments: tuple[str, ...]) -> tuple[tuple[tuple[int, str], ...], tuple[tuple[int, str], ...]]:
    """Return `words` and `names` of a pattern with these segments."""
    places = list(enumerate(segments))
    words = tuple((place, each) for place, each in reversed(places) if not each.startswith("{"))
    return words, tuple((place, each[1:-1]) for place, each in places if each.startswith("{"))


class Router:
    """All routes of a service.

    `prefix` is the path under which a proxy serves them, such as `/relay`; empty: none. `public_access` is the
    policy for all callers, which enables `OPTIONS *`. `later` makes all the routes under a path prefix when such a path
    is first looked up, or `routes` is read, so that their imports are deferred. No other route has a path with that
    prefix.
    """

    def __init__(
        self,
        routes: Iterable[Route],
        prefix: str = "",
        public_access: Enum | None = None,
        later: Mapping[str, Callable[[], Iterable[Route]]] = {},
    ) -> None:
        self._prefix = prefix
        self._later = dict(later)
        self._routes: list[Route] = []
        self.exact: dict[str, dict[str, RouteMatch]] = {}  # by path and method
        # By the number of segments, then by the segments.
        self._patterns: dict[int, dict[tuple[str, ...], _Pattern]] = {}
        self._add(routes)
        if public_access is not None:
            row = Route(
                method="OPTIONS", pattern=ANY_PATH, access=public_access, handler=self._about_the_server, body_limit=0
            )
            self.exact[ANY_PATH] = {row.method: RouteMatch(row, NO_PARAMS)}

    @property
    def routes(self) -> tuple[Route, ...]:
        """All routes but `OPTIONS *`, including those of `later`, which are made now."""
        for begin in [*self._later]:
            self._add(self._later.pop(begin)())
        return tuple(self._routes)

    def inner(self, path: str) -> str:
        """Return a path without the prefix; unchanged if it lacks the prefix or a route has it as it is."""
        prefix = self._prefix
        if not prefix or not path.startswith(prefix) or path[len(prefix) :][:1] not in ("", "/"):
            return path
        return path if self._find(path) is not None else "/" + path[len(prefix) :].lstrip("/")

    def split(self, target: str) -> tuple[str, str]:
        """Return the path for the lookup, as `inner` does, and the raw query.

        Several slashes at the start count as one: a proxy that replaces `/relay` by `/` makes `//health`. Raise
        `RemoteProtocolError` for an invalid target.
        """
        if target in self.exact:
            return target, ""
        path, query = split_target(target)
        if path.startswith("//"):
            path = "/" + path.lstrip("/")
        return self.inner(path), query

    def match(self, method: str, path: str) -> RouteMatch:
        """Find the route of a request, or raise `Refused` (404, or 405 with `Allow`). Literal paths win over braces.

        Slashes at the end do not count unless a route has them: people and proxies add some to an address. Raise
        `RemoteProtocolError` for a path parameter that cannot be decoded.
        """
        found = self._find(path)
        if found is None and path.endswith("/"):
            found = self._find(path.rstrip("/"))
        if found is None:
            raise Refused(404, "not_found", "there is nothing at this path")
        methods, params = found
        match = methods.get(method)
        if match is None:
            allowed = ",".join(sorted(methods))
            fields = ((b"allow", allowed.encode("ascii")),)
            raise Refused(405, "method_not_allowed", f"this path takes {allowed}", headers=fields)
        return RouteMatch(match.route, params) if params else match

    def methods(self, path: str) -> tuple[str, ...]:
        """Return the methods that a path has, sorted, with HEAD if it has GET; none if no route matches the path."""
        found = self._find(path)
        return () if found is None else tuple(sorted(found[0]))

    def _add(self, routes: Iterable[Route]) -> None:
        for route in routes:
            self._routes.append(route)
            if "{" in route.pattern:
                segments = tuple(route.pattern.split("/"))
                patterns = self._patterns.setdefault(len(segments), {})
                if segments not in patterns:
                    patterns[segments] = _Pattern(*_words_and_names(segments))
                methods = patterns[segments].methods
            else:
                methods = self.exact.setdefault(route.pattern, {})
            methods[route.method] = match = RouteMatch(route, NO_PARAMS)
            if route.method == "GET":
                methods.setdefault("HEAD", match)

    def _find(self, path: str) -> tuple[dict[str, RouteMatch], dict[str, str]] | None:
        """Return the routes at a path by method, and the decoded path parameters; None if no route has the path."""
        exact = self.exact.get(path)
        if exact is not None:
            return exact, NO_PARAMS
        for prefix in self._later:
            if path.startswith(prefix):
                self._add(self._later.pop(prefix)())
                return self._find(path)
        segments = path.split("/")
        for pattern in self._patterns.get(len(segments), {}).values():
            for place, word in pattern.words:
                if segments[place] != word:
                    break
            else:
                if "" not in [segments[place] for place, _ in pattern.names]:
                    return pattern.methods, {name: decode_segment(segments[place]) for place, name in pattern.names}
        return None

    def _about_the_server(self, request: Request) -> Response:
        """Respond to `OPTIONS *` with 204 (RFC 9110, 9.3.7); `Allow` has all routes' methods, HEAD and OPTIONS."""
        methods = ",".join(sorted({route.method for route in self.routes} | {"HEAD", "OPTIONS"}))
        return Response(204, Headers([(b"allow", methods.encode("ascii"))]))
