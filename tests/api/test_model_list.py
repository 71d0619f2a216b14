from typing import Any

import pytest

from svc_proto.agent.interface import ModelEndpoint
from svc_proto.commands import Connect, Level
from tests.api.harness import ApiHarness
from tests.support.http_harness import as_json

ROUTE = ModelEndpoint(base_url="http://127.0.0.1:9000/v1", model="m", api_key="sesame")


def beside(answer: tuple[int, bytes]) -> ApiHarness:
    """Return an API harness whose model server gives this answer."""
    book = ApiHarness()
    book.http = lambda asked: answer
    return book


def listed(book: ApiHarness, route: ModelEndpoint = ROUTE) -> Any:
    (found,) = book.spawn(book.api.model_list.list_models(route))
    return found


def test_a_list_is_kept_for_a_minute() -> None:
    book = beside(as_json({"object": "list", "data": [{"id": "b"}, {"id": "a"}, {"id": 7}, {}, "x", {"id": ""}]}))
    book.secrets.add("sesame")
    assert listed(book) == ("b", "a")
    book.after(59.0)
    assert listed(book) == ("b", "a")
    assert [asked.headers.get(b"authorization") for asked in book.asked] == [b"Bearer sesame"]
    book.after(1.0)
    assert listed(book) == ("b", "a")
    assert len(book.asked) == 2
    assert listed(book, ModelEndpoint(base_url=ROUTE.base_url, model="m")) == ("b", "a")
    assert [asked.headers.get(b"authorization") for asked in book.asked[2:]] == [None]
    assert not book.leaks()


def test_the_longest_name_and_the_longest_list() -> None:
    rows = [{"id": "x" * 256}, {"id": "y" * 257}, *({"id": str(number)} for number in range(999))]
    book = beside(as_json({"data": rows}))
    assert listed(book) == ("x" * 256, *map(str, range(998)))


EMPTY = b'{"data": []}'


@pytest.mark.parametrize(
    "answer", [*((200, body) for body in (b"", b"{", b"[]", b"{}", b'{"data": {}}')), (302, EMPTY), (401, EMPTY)]
)
def test_upstream_without_a_list(answer: tuple[int, bytes]) -> None:
    book = beside(answer)
    assert listed(book) is None
    assert listed(book) is None
    assert len(book.asked) == 1
    assert book.events(Level.WARNING) == ["models not listed"]
    book.after(5.0)
    listed(book)
    assert len(book.asked) == 2


def test_unreachable_and_silent_upstream() -> None:
    assert listed(ApiHarness()) is None
    book = ApiHarness()
    book.hold = (Connect,)
    first, second = (book.spawn(book.api.model_list.list_models(ROUTE)) for _ in range(2))
    book.after(5.0)
    assert (first, second) == ([None], [None])
    assert sum(isinstance(command, Connect) for command in book.commands) == 1
