"""One download, apart from who wants it."""

from __future__ import annotations

from svc_proto.commands import Connect, Connected, Ready
from svc_proto.engine.channel import Channel
from svc_proto.engine.client import Fetched, bearer, fetch, whole
from svc_proto.engine.core import Engine
from svc_proto.facts import Accepted, Failure, FailureKind, Started
from svc_proto.wire.events import Headers, ResponseData, ResponseEnd, ResponseHead
from tests.device.rig import RELAY, STREAM, RelayEnd
from tests.playbook import Playbook, counting_entropy


class Wanting:
    """A service that wants one file."""

    def __init__(self, url: str, most: int) -> None:
        self.url = url
        self.most = most
        self.got: list[Fetched | Failure] = []

    def bind(self, engine: Engine) -> None:
        self.engine = engine

    def on_started(self) -> None:
        self.engine.emit(Ready())
        flow = fetch(self.engine, "GET", self.url, into=whole(self.most), headers=bearer("T"), within=120.0)
        self.engine.spawn(flow, on_done=self.got.append)

    def on_accepted(self, fact: Accepted) -> Channel | None:
        return None

    def on_stopping(self) -> None: ...


def get(url: str, most: int, body: bytes, *, announced: bytes | None) -> Fetched | Failure:
    service = Wanting(url, most)
    book = Playbook(Engine(service, entropy=counting_entropy()))
    book >> Started()
    order = book.order(Connect)
    assert isinstance(order, Connect)
    book.answer(order, Connected(RELAY))
    end = RelayEnd(order.ch)
    end.hear(book.take())
    head = (b"transfer-encoding", b"chunked") if announced is None else (b"content-length", announced)
    book >> end.say(ResponseHead(STREAM, 200, Headers((head,))), ResponseData(STREAM, body), ResponseEnd(STREAM))
    book.take()
    (got,) = service.got
    return got


def test_exactly_as_much_as_may_be() -> None:
    for announced in (b"4", None):
        got = get("http://h/media/x", 4, b"1234", announced=announced)
        assert isinstance(got, Fetched)
        assert got.body == b"1234"


def test_one_byte_more() -> None:
    for announced in (b"5", None):
        got = get("http://h/media/x", 4, b"12345", announced=announced)
        assert isinstance(got, Failure)
        assert got.kind is FailureKind.TOO_LARGE


def test_an_address_that_is_none() -> None:
    service = Wanting("http://", 4)
    book = Playbook(Engine(service, entropy=counting_entropy()))
    book >> Started() << [Ready()]
    (got,) = service.got
    assert isinstance(got, Failure)
    assert got.kind is FailureKind.INVALID
