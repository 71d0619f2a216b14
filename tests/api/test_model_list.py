from __future__ import annotations

import json
from typing import Any

import pytest

from svc_proto.agent.contract import ModelRoute
from svc_proto.commands import Connect, Level
from svc_proto.engine.message import Request, Response
from svc_proto.engine.router import Route, Router
from svc_proto.wire.events import Headers
from tests.api.world import ApiBook
from tests.peers.api import ScriptedApi
from tests.peers.service import Access

ROUTE = ModelRoute(base_url="http://127.0.0.1:9000/v1", model="m", api_key="sesame")


class Upstream(ScriptedApi):
    """Lists its models; notes who asked with which key."""

    def __init__(self, body: object, status: int = 200) -> None:
        super().__init__()
        self.body = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.status = status
        self.keys: list[bytes | None] = []
        self.router = Router([Route(method="GET", pattern="/v1/models", access=Access.ANYBODY, handler=self.models)])

    def models(self, request: Request) -> Response:
        self.keys.append(request.headers.get(b"authorization"))
        return Response(self.status, Headers([(b"content-type", b"application/json")]), self.body)


def listed(book: ApiBook, route: ModelRoute = ROUTE) -> Any:
    (found,) = book.spawn(book.api.model_list.of(route))
    return found


def test_a_list_is_kept_for_a_minute() -> None:
    upstream = Upstream({"object": "list", "data": [{"id": "b"}, {"id": "a"}, {"id": 7}, {}, "x", {"id": ""}]})
    book = ApiBook(upstreams={9000: upstream})
    book.secrets.add("sesame")
    assert listed(book) == ("b", "a")
    book.after(59.0)
    assert listed(book) == ("b", "a")
    assert upstream.keys == [b"Bearer sesame"]
    book.after(1.0)
    assert listed(book) == ("b", "a")
    assert len(upstream.keys) == 2
    assert listed(book, ModelRoute(base_url=ROUTE.base_url, model="m")) == ("b", "a")
    assert upstream.keys[2:] == [None]
    assert not book.leaks()


def test_the_longest_name_and_the_longest_list() -> None:
    rows = [{"id": "x" * 256}, {"id": "y" * 257}, *({"id": str(number)} for number in range(999))]
    book = ApiBook(upstreams={9000: Upstream({"data": rows})})
    assert listed(book) == ("x" * 256, *map(str, range(998)))


@pytest.mark.parametrize(
    ("body", "status"),
    [({"data": []}, 401), (b"", 200), (b"{", 200), ([], 200), ({}, 200), ({"data": {}}, 200), ({"data": []}, 302)],
)
def test_an_upstream_that_does_not_say(body: object, status: int) -> None:
    upstream = Upstream(body, status)
    book = ApiBook(upstreams={9000: upstream})
    assert listed(book) is None
    assert listed(book) is None
    assert len(upstream.keys) == 1
    assert book.events(Level.WARNING) == ["models not listed"]
    book.after(5.0)
    listed(book)
    assert len(upstream.keys) == 2


def test_nobody_is_there() -> None:
    book = ApiBook()
    assert listed(book) is None


def test_an_upstream_that_never_answers() -> None:
    book = ApiBook()
    book.hold = (Connect,)
    first, second = book.spawn(book.api.model_list.of(ROUTE)), book.spawn(book.api.model_list.of(ROUTE))
    book.after(5.0)
    assert (first, second) == ([None], [None])
    assert sum(isinstance(command, Connect) for command in book.commands) == 1
