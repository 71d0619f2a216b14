import pytest

from svc_proto.basics.errors import Refused, RemoteProtocolError
from svc_proto.engine.message import Request, Response, empty_response
from svc_proto.engine.router import Route, Router
from svc_proto.wire.events import Headers
from tests.engine.toy_service import ToyAccess
from tests.support.playbook import PEER


def answer(request: Request) -> Response:
    return empty_response()


def route(method: str, pattern: str) -> Route:
    return Route(method=method, pattern=pattern, access=ToyAccess.ANY, handler=answer)


TABLE = Router(
    [
        *(route("GET", "/a"), route("POST", "/a"), route("GET", "/a/{x}"), route("DELETE", "/a/{x}")),
        *(route("GET", "/a/me"), route("GET", "/{x}/b/{y}"), route("GET", "/c/{x}/{y}"), route("PUT", "/c/{x}/{y}")),
        *(route("HEAD", "/h"), route("GET", "/h")),
    ]
)


@pytest.mark.parametrize(
    ("method", "path", "pattern", "params"),
    [
        ("GET", "/a", "/a", {}),
        ("HEAD", "/a", "/a", {}),
        ("POST", "/a", "/a", {}),
        ("GET", "/a/1", "/a/{x}", {"x": "1"}),
        ("DELETE", "/a/%C3%A9%2F", "/a/{x}", {"x": "é/"}),
        ("GET", "/a/me", "/a/me", {}),
        ("PUT", "/c/1/2", "/c/{x}/{y}", {"x": "1", "y": "2"}),
        ("GET", "/q/b/z", "/{x}/b/{y}", {"x": "q", "y": "z"}),
    ],
)
def test_found(method: str, path: str, pattern: str, params: dict[str, str]) -> None:
    match = TABLE.match(method, path)
    assert (match.route.pattern, match.params) == (pattern, params)


@pytest.mark.parametrize("path", ["", "*", "/", "/b", "/a/1/2", "/q/c/z", "/%61", "//b/z"])
def test_not_found(path: str) -> None:
    with pytest.raises(Refused) as refused:
        TABLE.match("GET", path)
    assert (refused.value.status, refused.value.code) == (404, "not_found")


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [("PUT", "/a", b"GET,HEAD,POST"), ("POST", "/a/1", b"DELETE,GET,HEAD"), ("DELETE", "/a/me", b"GET,HEAD")],
)
def test_wrong_method(method: str, path: str, allow: bytes) -> None:
    with pytest.raises(Refused) as refused:
        TABLE.match(method, path)
    assert (refused.value.status, refused.value.headers) == (405, ((b"allow", allow),))


BEHIND = Router(TABLE.routes, "/q")


@pytest.mark.parametrize(
    ("path", "inner"),
    [
        ("/q/a", "/a"),
        ("/q/a/1", "/a/1"),
        ("/q", "/"),
        ("/q/", "/"),
        ("/q/nothing/at/all", "/nothing/at/all"),
        ("/a", "/a"),  # a client beside the proxy, or behind one that removes the prefix
        ("/q/b/z", "/q/b/z"),  # a route without prefix
        ("/qa", "/qa"),
        ("", ""),
    ],
)
def test_a_prefix(path: str, inner: str) -> None:
    assert BEHIND.inner(path) == inner
    assert TABLE.inner(path) == path


@pytest.mark.parametrize("target", ["/q//a?x=1", "//a?x=1", "///a?x=1", "/a?x=1"])
def test_slashes_that_a_proxy_left_at_the_start(target: str) -> None:
    assert BEHIND.split(target) == ("/a", "x=1")


def test_a_head_route_of_its_own_and_a_segment_that_cannot_be_decoded() -> None:
    assert TABLE.match("HEAD", "/h").route.method == "HEAD"
    with pytest.raises(RemoteProtocolError):
        TABLE.match("GET", "/a/%FF")


def test_options_of_the_whole_server() -> None:
    with pytest.raises(Refused, match="nothing at this path"):
        TABLE.match("OPTIONS", "*")
    found, params = Router([route("GET", "/a"), route("PUT", "/b")], public_access=ToyAccess.OPEN).match("OPTIONS", "*")
    assert (found.access, params) == (ToyAccess.OPEN, {})
    said = found.handler(Request("OPTIONS", "*", "", Headers(), PEER, secure=False, params={}))
    assert said == Response(204, Headers([(b"allow", b"GET,HEAD,OPTIONS,PUT")]))


def test_slashes_at_the_end_do_not_count() -> None:
    router = Router([route("GET", "/ws"), route("GET", "/"), route("GET", "/a/"), route("GET", "/{x}/c")])
    for path, pattern in (("/ws/", "/ws"), ("/ws//", "/ws"), ("/a/", "/a/"), ("/", "/"), ("/1/c/", "/{x}/c")):
        assert router.match("GET", path).route.pattern == pattern
    for path in ("/none/", "/a", "/1//"):
        with pytest.raises(Refused, match="nothing at this path"):
            router.match("GET", path)
    with pytest.raises(Refused, match="takes GET"):
        router.match("POST", "/ws/")


def test_late_routes_are_built_on_demand() -> None:
    made: list[str] = []

    def make() -> list[Route]:
        made.append("v")
        return [route("GET", "/v/a"), route("GET", "/v/{x}/b")]

    def table() -> Router:
        made.clear()
        return Router([route("GET", "/a"), route("GET", "/{x}/c")], public_access=ToyAccess.OPEN, later={"/v/": make})

    router = table()
    assert router.match("GET", "/a").route.pattern == "/a"
    with pytest.raises(Refused):
        router.match("GET", "/v")
    assert not made
    assert router.match("GET", "/v/a").route.pattern == "/v/a"
    assert router.match("GET", "/v/1/b").params == {"x": "1"}
    assert made == ["v"]
    router = table()
    assert router.match("GET", "/v/1/b").params == {"x": "1"}
    with pytest.raises(Refused):
        table().match("GET", "/v/none")
    assert [each.pattern for each in table().routes] == ["/a", "/{x}/c", "/v/a", "/v/{x}/b"]
    assert made == ["v"]
