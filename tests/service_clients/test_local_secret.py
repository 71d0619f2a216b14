from collections.abc import Callable

import pytest

from svc_proto.commands import ReadConfig, WriteConfig
from svc_proto.engine.core import Engine
from svc_proto.engine.flow import Flow
from svc_proto.facts import Done, Failed, Failure, FailureKind, OperationId
from svc_proto.service_clients.local_secret import (
    HEADER,
    LOCAL_SECRET,
    OPERATOR,
    create_secret,
    forwarded_secret_headers,
    has_secret,
    operator_headers,
    secret_headers,
)
from svc_proto.wire.events import Headers
from tests.engine.test_flow import Owner
from tests.engine.toy_service import ToyPlaybook, open_book

ONE = OperationId(1)
FULL = Failure(FailureKind.NO_SPACE)
SECRET = "0123456789abcdef" * 4


def asking(flow: Callable[[Engine], Flow[object]]) -> tuple[ToyPlaybook, Owner]:
    """Start a flow up to its first operation; return the playbook, and the owner that gets the result."""
    book = open_book()
    owner = Owner(book)

    def begin() -> None:
        owner.spawn(flow(book.engine))

    book.engine.timers.timer(begin).set(book.now.mono)
    return book.after(0.0), owner


@pytest.mark.parametrize("problem", [None, FULL])
def test_secret_is_created_and_stored(problem: Failure | None) -> None:
    book, owner = asking(create_secret)
    (order,) = book.drain_commands()
    assert isinstance(order, WriteConfig)
    assert (order.name, len(order.text)) == (LOCAL_SECRET, 64)
    book >> (Done(ONE, None) if problem is None else Failed(ONE, problem)) << []
    assert owner.told == [(order.text.encode(), problem)]


@pytest.mark.parametrize(
    ("found", "shown"),
    [
        (SECRET, ((HEADER, SECRET.encode()),)),
        (Failure(FailureKind.NOT_FOUND), ()),
        (Failure(FailureKind.DENIED), ()),
        ("", ()),
        (SECRET[:-1], ()),
        (SECRET + "\r\nx: y", ()),
    ],
)
def test_secret_is_read_for_each_call(found: str | Failure, shown: object) -> None:
    book, owner = asking(secret_headers)
    book << [ReadConfig(ONE, LOCAL_SECRET)]
    book >> (Failed(ONE, found) if isinstance(found, Failure) else Done(ONE, found)) << []
    assert owner.told == [shown]


def test_secret_header_is_compared_and_forwarded() -> None:
    secret = SECRET.encode()
    assert has_secret(Headers([(HEADER, secret)]), secret)
    for headers in (Headers(), Headers([(HEADER, b"")]), Headers([(HEADER, b"\xff")]), Headers([(b"x", secret)])):
        assert not has_secret(headers, secret)
    assert forwarded_secret_headers(Headers()) == ()
    assert forwarded_secret_headers(Headers([(b"x", b"y"), (HEADER, b"5ec")])) == ((HEADER, b"5ec"),)


@pytest.mark.parametrize("url", ["http://127.0.0.1:8642", "https://localhost:8642", "http://[::1]:1"])
def test_operator_headers_on_loopback(url: str) -> None:
    book, owner = asking(lambda engine: operator_headers(engine, url))
    book << [ReadConfig(ONE, LOCAL_SECRET)]
    book >> Done(ONE, SECRET) << []
    assert owner.told == [(OPERATOR, (HEADER, SECRET.encode()))]
    book, owner = asking(lambda engine: operator_headers(engine, url, secret=False))
    book << []
    assert owner.told == [(OPERATOR,)]


@pytest.mark.parametrize("url", ["http://192.0.2.7:8642", "https://localhost.example", "nonsense"])
def test_no_operator_headers_elsewhere(url: str) -> None:
    book, owner = asking(lambda engine: operator_headers(engine, url))
    book << []
    assert owner.told == [()]
