"""Fast path for whole requests: its commands, compared with the reference implementation, and its cost."""

import inspect
from collections.abc import Callable

import pytest

from fuzz.reference_parsers import ReferenceServerConnection
from svc_proto.commands import Command, Level, PauseReading
from svc_proto.engine import server_channel
from svc_proto.engine.body_streams import ResponseWriter
from svc_proto.engine.exchange import Exchange
from svc_proto.engine.message import Request, Response, StreamedResponse
from svc_proto.facts import Closed, Done, OperationId, ReadClosed, Received, Sent, Stopping
from svc_proto.wire.events import NO_HEADERS, Headers
from svc_proto.wire.http1_fast_path_server import FastPathServerConnection
from svc_proto.wire.limits import Limits
from tests.engine.toy_service import ToyPlaybook, get, open_book, post
from tests.support.playbook import CH, wire_bytes

Story = Callable[[ToyPlaybook], None]


def told(story: Story, monkeypatch: pytest.MonkeyPatch, *, reference: bool, limits: Limits) -> list[object]:
    """Run a story, a function that drives a playbook; return what it caused: commands, logs and other effects.

    With `reference` the server channel uses `Http1Connection` alone.
    """
    monkeypatch.setattr(
        server_channel, "FastPathServerConnection", ReferenceServerConnection if reference else FastPathServerConnection
    )
    book = open_book(limits, log_level=Level.DEBUG)
    book.logs.bugs = True
    commands: list[Command] = []
    handle = book.core.handle

    def heard(*args: object) -> list[Command]:
        out = handle(*args)  # type: ignore[arg-type]  # whatever it takes
        commands.extend(out)
        return out

    book.core.handle = heard  # type: ignore[method-assign, assignment]
    story(book)
    return [commands, [*book.logs], book.core.next_deadline(), [*book.toy.cleaned], book.toy.asked]


def same(story: Story, monkeypatch: pytest.MonkeyPatch, limits: Limits | None = None) -> None:
    """Check that a story causes the same with the fast path and with h11."""
    limits = limits or Limits()
    stream_channel, reference = (
        told(story, monkeypatch, reference=reference, limits=limits) for reference in (False, True)
    )
    assert stream_channel == reference


PATHS = """
/hello /empty /big /item/a%20b /item/%zz /nowhere#x /nowhere /echo /open /private /access-bug /boom /teapot /blame
/header /park /file /quit /ws
"""
REQUESTS = [
    *(get(path.encode()) for path in PATHS.split()),
    get(b"/hello").replace(b"GET", b"HEAD"),
    get(b"/open", b"Content-Length: 3") + b"abc",
    get(b"/open", b"Content-Length: 70000") + b"x" * 70_000,
    *(post(path, b"abc") for path in (b"/echo", b"/slow", b"/stream", b"/private", b"/keyless")),
    post(b"/echo", b""),
    post(b"/small", b"0123456789"),
    post(b"/small", b"0123456789a"),
    post(b"/nowhere", b"x" * 300_000),
]


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda each: each.partition(b" HTTP")[0].decode())
def test_every_kind_of_request(request_: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    def story(book: ToyPlaybook) -> None:
        book.toy.extra_fields = ((b"x-extra", b"1"),)
        book.toy.holder = "h"
        for _ in range(2):
            book >> Received(CH, request_)
            sent = len(wire_bytes(book.drain_commands()))
            (book >> Sent(CH, sent)).drain_commands()
            book.after(1.0).drain_commands()
        (book >> Done(OperationId(1), "a client")).drain_commands()
        book.after(21.0).drain_commands()
        (book >> Received(CH, get(b"/hello"))).drain_commands()
        book.after(80.0).drain_commands()
        (book >> Closed(CH)).drain_commands()

    same(story, monkeypatch)


@pytest.mark.parametrize("later", [get(b"/hello"), get(b"/hello")[:9], b"x", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"])
def test_bytes_after_a_pending_request(later: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    def story(book: ToyPlaybook) -> None:
        book.get(b"/park").drain_commands()
        (book >> Received(CH, later)).drain_commands()
        book.after(20.0).drain_commands()
        (book >> ReadClosed(CH)).drain_commands()

    same(story, monkeypatch)


def test_a_stream_and_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    def produce(writer: ResponseWriter):  # type: ignore[no-untyped-def]  # a flow
        writer.write(b"a")
        yield from writer.drained()

    def story(book: ToyPlaybook) -> None:
        book.toy.answer = lambda request: StreamedResponse(200, NO_HEADERS, produce)
        book.get(b"/answer").drain_commands()
        (book >> Received(CH, post(b"/stream", b"abc"))).drain_commands()
        book.get(b"/hello").drain_commands()

    same(story, monkeypatch)


def test_responses_while_stopping_close_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    def story(book: ToyPlaybook) -> None:
        book.get(b"/park").drain_commands()
        (book >> Stopping(5.0)).drain_commands()
        book.after(4.0).drain_commands()

    def late(book: ToyPlaybook) -> None:
        (book >> Received(CH, get(b"/hello")[:-1])).drain_commands()
        (book >> Stopping(5.0)).drain_commands()
        (book >> Received(CH, b"\n")).drain_commands()

    def handler_stops(book: ToyPlaybook) -> None:
        def stop(request: object) -> Response:
            book.engine.stopping = True
            return Response(200, Headers(), b"last")

        book.toy.answer = stop
        book.get(b"/answer").drain_commands()

    for each in (story, late, handler_stops):
        same(each, monkeypatch)


def test_a_peer_that_does_not_read_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    def story(book: ToyPlaybook) -> None:
        book.get(b"/big").drain_commands()
        book >> Received(CH, get(b"/hello"))
        assert book.drain_commands() == []
        (book >> Sent(CH, 500_000)).drain_commands()
        (book >> Sent(CH, 100_000)).drain_commands()
        (book >> Received(CH, get(b"/hello"))).drain_commands()

    same(story, monkeypatch, Limits(high_water=100_000, low_water=50_000))


def test_a_paused_unauthenticated_request(monkeypatch: pytest.MonkeyPatch) -> None:
    def story(book: ToyPlaybook) -> None:
        book >> Received(CH, post(b"/keyless", b"x" * 900, length=1000))
        assert PauseReading(CH) in book.drain_commands()
        (book >> Received(CH, b"x" * 100)).drain_commands()
        (book >> Received(CH, get(b"/hello"))).drain_commands()

    same(story, monkeypatch, Limits(unauthenticated_budget=800))


def test_a_post_that_starts_like_the_http2_preface(monkeypatch: pytest.MonkeyPatch) -> None:
    def story(book: ToyPlaybook) -> None:
        request = post(b"/echo", b"abc")
        for piece in (request[:1], request[1:], request):
            (book >> Received(CH, piece)).drain_commands()

    same(story, monkeypatch)


def test_a_handler_is_five_calls_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_channel, "FastPathServerConnection", FastPathServerConnection)
    book = open_book()
    hops: list[str] = []

    def handler(request: Request) -> Response:
        frame = inspect.currentframe()
        while frame is not None and (not hops or hops[-1] != "Engine.handle"):
            hops.append(frame.f_code.co_qualname)
            frame = frame.f_back
        return Response(204)

    object.__setattr__(book.toy.router.match("GET", "/hello").route, "handler", handler)
    book.get(b"/hello")
    book.drain_commands()
    assert hops[::-1][:-1] == [
        *("Engine.handle", "HttpChannel.received", "ServerChannel.parse", "ServerChannel._handle_request")
    ]


def test_no_exchange_is_made_for_an_answer_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []
    init = Exchange.__init__

    def counted(self: Exchange, *args: object) -> None:
        made.append(args)
        init(self, *args)  # type: ignore[arg-type]  # whatever it takes

    monkeypatch.setattr(server_channel, "FastPathServerConnection", FastPathServerConnection)
    monkeypatch.setattr(Exchange, "__init__", counted)
    book = open_book()
    book.get(b"/hello") << [book.says(200, b"hello")]
    book >> Received(CH, post(b"/echo", b"abc")) << [book.says(200, b"abc")]
    book.get(b"/item/a")  # a JSON response
    book.drain_commands()
    assert not made
    book.get(b"/teapot") << [book.says(418, b"teapot: short and stout")]
    assert len(made) == 1
