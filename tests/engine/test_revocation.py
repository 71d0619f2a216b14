"""Effects of a revoked credential on an exchange, and a second policy check after a slow body."""

from collections.abc import Callable

import pytest
from attrs import define, field

from svc_proto.basics.errors import Refused
from svc_proto.commands import Abort, Command
from svc_proto.engine.body_streams import ResponseWriter
from svc_proto.engine.flow import Flow
from svc_proto.engine.message import Request, Response, StreamedResponse
from svc_proto.facts import Received
from svc_proto.wire.events import NO_HEADERS
from tests.engine.toy_service import ToyPlaybook, get, open_book, plain, post
from tests.support.playbook import CH, SendMatcher, accepted

GONE = Refused(401, "unauthorized", "gone")


@define(eq=False)
class Note:
    told: list[Refused] = field(factory=list)
    with_it: Callable[[], None] = lambda: None

    def revoke(self, refused: Refused) -> None:
        self.told.append(refused)
        self.with_it()


@pytest.mark.parametrize("alone", [True, False], ids=["the first clears the table", "each on its own"])
def test_revocation_reaches_all_revocables_of_a_credential(alone: bool) -> None:
    engine, mine, more, yours = open_book().engine, Note(), Note(), Note()
    engine.revocables.update({mine: "me", more: "me", yours: "you"})
    if alone:
        mine.with_it = engine.revocables.clear
    engine.revoke_credential("me", GONE)
    engine.revoke_credential("absent", GONE)
    assert (mine.told, more.told, yours.told) == ([GONE], [GONE], [])


# --- the credential is revoked ---------------------------------------------------------------------------------------


def held_book() -> ToyPlaybook:
    book = open_book()
    book.toy.holder = "me"
    book.toy.on["accepted"] = lambda: book.engine.revoke_credential("me", GONE)
    return book


def end(book: ToyPlaybook) -> ToyPlaybook:
    """Accept a connection: the service of `held_book` then revokes the credential."""
    return book >> accepted(4)


def refused(book: ToyPlaybook) -> list[Command | Callable[[Command], bool]]:
    return [book.says(401, b"unauthorized: gone", b"www-authenticate: Bearer")]


def test_revocation_refuses_a_request_before_its_body() -> None:
    book = held_book()
    book >> Received(CH, post(b"/echo", b"ab", length=4)) << []
    end(book) << refused(book)
    book >> Received(CH, b"cd") << []
    assert (book.toy.seen, len(book.engine.revocables)) == ([], 0)
    book.get(b"/hello") << [book.says(200, b"hello")]


def test_handlers_that_wait_or_read_are_cancelled() -> None:
    book = held_book()
    book.get(b"/park") << []
    end(book) << refused(book)
    assert book.toy.cleaned == ["park"]
    book = held_book()
    book.toy.answer = gather
    book >> Received(CH, post(b"/stream", b"ab", length=4)) << []
    end(book) << refused(book)
    book >> Received(CH, b"cd") << []
    assert len(book.engine.revocables) == 0


def test_an_answer_that_has_begun_is_cut() -> None:
    book = held_book()

    def endless(writer: ResponseWriter) -> Flow[None]:
        writer.write(b"word")
        yield from book.toy._park(Request("GET", "/", "", NO_HEADERS, accepted().peer, False, {}))

    book.toy.answer = lambda request: StreamedResponse(200, NO_HEADERS, endless)
    book.get(b"/answer") << [SendMatcher(CH, contains=b"word")]
    end(book) << [Abort(CH)]
    assert book.toy.cleaned == ["park"]


@pytest.mark.parametrize("streamed", [False, True])
def test_a_handler_that_revokes_its_own_credential_may_answer(streamed: bool) -> None:
    book = held_book()

    def last(request: Request) -> Response:
        book.engine.revoke_credential("me", GONE)
        return plain(b"done")

    def last_later(request: Request) -> Flow[Response | StreamedResponse]:
        yield from request.stream.read()
        return last(request)

    if streamed:
        book.toy.answer = last_later
        book >> Received(CH, post(b"/stream", b"", length=2)) << []
        book >> Received(CH, b"ab") << [book.says(200, b"done")]
    else:
        book.toy.answer = last
        book.get(b"/answer") << [book.says(200, b"done")]
    assert len(book.engine.revocables) == 0


def test_revocation_leaves_answered_requests_alone() -> None:
    book = held_book()
    book >> Received(CH, post(b"/small", b"", length=11)) << [SendMatcher(CH, startswith=b"HTTP/1.1 413")]
    end(book) << []
    book >> Received(CH, b"x" * 11 + get(b"/hello")) << [book.says(200, b"hello")]


# --- the policy is checked again -------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [b"/echo", b"/stream"])
def test_the_policy_is_checked_again_after_a_slow_body(book: ToyPlaybook, path: bytes) -> None:
    book.toy.answer = gather
    book >> Received(CH, post(path, b"ab", length=4)) << []
    book.toy.barred = True
    book.after(1) << []
    book >> Received(CH, b"cd") << [book.says(403, b"barred: no more")]
    assert book.toy.seen == []


def test_a_request_read_at_once_and_an_asynchronous_policy_are_checked_once(book: ToyPlaybook) -> None:
    book >> Received(CH, post(b"/echo", b"ab")) << [book.says(200, b"ab")]
    assert book.toy.asked == 1
    book.toy.known = True
    book >> Received(CH, post(b"/slow", b"ab", length=4)) << []
    book.after(1) << []
    book >> Received(CH, b"cd") << [book.says(200, b"abcd")]
    assert book.toy.cleaned == []


def gather(request: Request) -> Flow[Response | StreamedResponse]:
    body = b""
    while data := (yield from request.stream.read()):
        body += data
    return plain(body)
