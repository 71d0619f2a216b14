import pytest

from svc_proto.commands import Abort, CloseWrite, Exit, Level, OpenedFile, OpenFile, ReadFile, Send
from svc_proto.engine.flow import Deferred
from svc_proto.engine.server_channel import ServerChannel
from svc_proto.facts import Closed, Done, Failed, Failure, FailureKind, ReadClosed, Received
from svc_proto.wire.limits import Limits
from tests.engine.toy_service import HANDSHAKE, ToyPlaybook, get, open_book, plain, post
from tests.support.playbook import CH, SendMatcher, wire_bytes

CLOSE = b"connection: close"


# --- plain handlers ---


def test_a_plain_handler(book: ToyPlaybook) -> None:
    book.get(b"/hello") << [book.says(200, b"hello")]
    book.get(b"/item/a%20b") << [SendMatcher(CH, contains=b'{"name":"a b"}')]
    book.get(b"/empty") << [SendMatcher(CH, startswith=b"HTTP/1.1 204 No Content\r\n")]


def test_the_body_arrives_whole_however_it_was_cut(book: ToyPlaybook) -> None:
    book >> Received(CH, post(b"/echo", b"abc")) << [book.says(200, b"abc")]
    book >> Received(CH, post(b"/echo", b"ab", length=4)) << []
    book >> Received(CH, b"c") << []
    book >> Received(CH, b"d") << [book.says(200, b"abcd")]
    assert [request.body for request in book.toy.seen] == [b"abc", b"abcd"]
    assert book.toy.seen[0].principal == "a client"


def test_a_request_is_logged_only_on_demand() -> None:
    book = open_book(log_level=Level.DEBUG)
    book.get(b"/item/1").drain_commands()
    who = {"peer": "127.0.0.1", "ms": 0}
    assert book.logs[-1].fields == {"method": "GET", "route": "/item/{name}", "status": 200, **who}
    book.get(b"/nowhere").drain_commands()
    assert book.logs[-1].fields == {"method": "GET", "route": "none", "status": 404, **who}


@pytest.mark.fast_path
def test_no_request_record_is_made_above_its_level(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ServerChannel, "log_request", None)
    open_book().get(b"/item/1") << [SendMatcher(CH, startswith=b"HTTP/1.1 200")]


# --- refusals ---


def test_refused_by_route_policy_and_handler(book: ToyPlaybook) -> None:
    book.get(b"/nowhere") << [book.says(404, b"not_found: there is nothing at this path")]
    book.get(b"/echo") << [book.says(405, b"method_not_allowed: this path takes POST", b"allow: POST")]
    book.get(b"/private") << [book.says(401, b"unauthorized: no client may", b"www-authenticate: Bearer")]
    book.get(b"/teapot") << [book.says(418, b"teapot: short and stout")]
    book >> Received(CH, get(b"/teapot")[:10]) << []
    book >> Received(CH, get(b"/teapot")[10:]) << [book.says(418, b"teapot: short and stout")]
    book.get(b"/blame") << [book.says(422, b"bad_request: the parts do not fit")]
    book.get(b"/item/%zz") << [book.says(400, b"bad_request: the path has a malformed escape")]
    book.get(b"/ws") << [book.says(400, b"upgrade_required: this path speaks WebSocket")]
    book >> Received(CH, (HANDSHAKE % b"/ws").replace(b"Version: 13", b"Version: 8"))
    book << [SendMatcher(CH, startswith=b"HTTP/1.1 426", contains=b"sec-websocket-version: 13")]
    book >> Received(CH, HANDSHAKE % b"/hello") << [book.says(200, b"hello")]  # an upgrade is ignored on other routes
    book.get(b"/hello") << [book.says(200, b"hello")]


def test_a_body_over_the_limit_is_refused_by_its_length_or_when_it_comes(book: ToyPlaybook) -> None:
    text = b"body_too_large: the body may have at most 10 bytes"
    book >> Received(CH, post(b"/small", b"", length=11)) << [book.says(413, text)]
    book >> Received(CH, b"x" * 11) << []
    book.get(b"/hello") << [book.says(200, b"hello")]
    book >> Received(CH, post(b"/small", b"x", length=10)) << []
    book >> Received(CH, b"x" * 9) << [book.says(200, b"x" * 10)]
    head = b"POST /small HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    book >> Received(CH, head + b"6\r\nabcdef\r\n") << []
    book >> Received(CH, b"6\r\nabcdef\r\n") << [book.says(413, text, CLOSE), CloseWrite(CH)]


@pytest.mark.parametrize("path", [b"/nowhere", b"/hello", b"/stream", b"/slow"])
def test_an_early_response_to_a_chunked_body_announces_the_close(book: ToyPlaybook, path: bytes) -> None:
    book.toy.answer = lambda request: plain(b"no", 401)
    book.toy.known = True
    book >> Received(CH, b"POST %s HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" % path)
    if path == b"/slow":
        book >> Received(CH, b"b\r\nhello world\r\n")
    said, end = book.drain_commands()
    assert b"\r\nconnection: close\r\n" in wire_bytes([said])
    assert end == CloseWrite(CH)
    book >> Received(CH, b"5\r\nhello\r\n0\r\n\r\n" + get(b"/hello")) << []  # discarded in the linger


def test_an_undrained_body_gets_a_fin() -> None:
    book = open_book(Limits(max_drain=100))
    book >> Received(CH, post(b"/nowhere", b"", length=101))
    book << [book.says(404, b"not_found: there is nothing at this path", CLOSE), CloseWrite(CH)]
    assert [statuses[404] for statuses in book.engine.counts.answers.values()] == [1]
    book.sent() << []
    book >> Received(CH, b"x" * 101) << []
    book.after(2.0) << [Abort(CH)]  # a peer that waits for our FIN before its own gets it before the deadline


@pytest.mark.parametrize("coding", [b"gzip", b"deflate", b"br, gzip", b"x\x80y"])
@pytest.mark.parametrize("path", [b"/echo", b"/stream"])
@pytest.mark.parametrize("size", [0, 3])
def test_an_encoded_body_is_refused(book: ToyPlaybook, path: bytes, coding: bytes, size: int) -> None:
    book >> Received(CH, post(path, b"x" * size, b"Content-Encoding: " + coding, length=3))
    text = b"unsupported_media_type: the body has the coding '%s', which is not supported: send it without " % (
        coding.replace(b"\x80", b" ")
    )
    book << [book.says(415, text + b"Content-Encoding", b"accept-encoding: identity")]
    book >> Received(CH, b"x" * (3 - size) + get(b"/hello")) << [book.says(200, b"hello")]


def test_an_identity_coding_is_no_coding(book: ToyPlaybook) -> None:
    book >> Received(CH, post(b"/echo", b"abc", b"Content-Encoding: Identity")) << [book.says(200, b"abc")]
    book >> Received(CH, get(b"/hello", b"Content-Encoding: gzip")) << [book.says(200, b"hello")]
    head = b"GET /open HTTP/1.1\r\nHost: x\r\nContent-Encoding: gzip\r\nContent-Length: 1\r\n\r\nx"
    book >> Received(CH, head) << [book.says(200, b"")]  # no body is read here


def test_unexpected_bodies_are_discarded() -> None:
    book = open_book(Limits(max_skipped=100))
    body = b"Content-Length: 100\r\n\r\n" + b"x" * 100
    book >> Received(CH, b"GET /open HTTP/1.1\r\nHost: x\r\n" + body) << [book.says(200, b"")]
    assert [request.body for request in book.toy.seen] == [b""]
    answer = book.says(413, b"body_too_large: the body may have at most 100 bytes")
    book >> Received(CH, b"GET /open HTTP/1.1\r\nHost: x\r\nContent-Length: 101\r\n\r\n") << [answer]
    book >> Received(CH, b"x" * 101) << []
    chunked = b"GET /open HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n64\r\n" + b"x" * 100 + b"\r\n"
    book >> Received(CH, chunked) << []
    answer = book.says(413, b"body_too_large: the body may have at most 100 bytes", CLOSE)
    book >> Received(CH, b"1\r\nx\r\n0\r\n\r\n") << [answer, CloseWrite(CH)]


def test_expect_continue_is_answered_or_refused_for_good(book: ToyPlaybook) -> None:
    book >> Received(CH, post(b"/echo", b"", b"Expect: 100-continue", length=2))
    book << [Send(CH, b"HTTP/1.1 100 Continue\r\n\r\n")]
    book >> Received(CH, b"ab") << [book.says(200, b"ab")]
    book >> Received(CH, post(b"/small", b"", b"Expect: 100-continue", length=12))
    book << [book.says(413, b"body_too_large: the body may have at most 10 bytes", CLOSE), CloseWrite(CH)]


# --- flows ---


def test_a_flow_answers_after_its_operations(book: ToyPlaybook) -> None:
    opening = book.get(b"/file").order(OpenFile)
    book >> Done(opening.op, OpenedFile(7, "/f", 5, 0.0))
    reading = book.order(ReadFile)
    assert reading.handle == 7
    book.answer(reading, b"12345") << [book.says(200, b"12345")]
    assert book.toy.cleaned == ["file"]
    book.fail(book.get(b"/file").order(OpenFile), FailureKind.DENIED) << [book.says(502, b"denied")]
    opening = book.get(b"/file").order(OpenFile)
    book >> Done(opening.op, "nonsense") << [book.says(502, b"internal")]  # an answer of the wrong type is a failure
    book >> Done(opening.op, "again") << []
    book >> Failed(opening.op, Failure(FailureKind.DENIED)) << []
    assert [log.event for log in book.logs] == ["answer without a waiting operation"] * 2


def test_a_deferred_response_is_sent_when_resolved(book: ToyPlaybook) -> None:
    later = Deferred()
    book.toy.answer = lambda request: later
    book.get(b"/answer") << []
    book.act(lambda: later.resolve(plain(b"given"))) << [book.says(200, b"given")]
    assert not later.resolve(plain(b"again"))


def test_a_flow_that_refuses_and_one_with_a_bug(book: ToyPlaybook) -> None:
    book.get(b"/teapot-later") << []
    book.after(20.0) << [book.says(418, b"teapot: short and stout")]
    book.get(b"/boom-later") << []
    book.after(20.0) << [book.says(500, b"internal_error: internal error, reference bug-1", CLOSE), CloseWrite(CH)]
    assert [log.fields["error"] for log in book.logs] == ["RuntimeError"]
    assert "secret" not in repr(book.logs)


@pytest.mark.parametrize("path", [b"/boom", b"/access-bug", b"/header", b"/header-later"])
def test_a_bug_in_a_handler_closes_the_connection_and_nothing_else(book: ToyPlaybook, path: bytes) -> None:
    book.logs.bugs = True
    book.get(path)
    if path.endswith(b"later"):
        book << []
        book.after(20.0)
    book << [book.says(500, b"internal_error: internal error, reference bug-1", CLOSE), CloseWrite(CH)]
    assert "secret" not in repr(book.logs)
    assert book.logs[-1].fields["reference"] == "bug-1"
    book >> Closed(CH) << []
    book.engine.handle(Received(CH, get(b"/hello")), book.now)


def test_a_bug_in_the_refusal_itself(book: ToyPlaybook) -> None:
    book.toy.refusal_fails = True
    book.get(b"/teapot") << [Abort(CH)]
    assert [log.fields["error"] for log in book.logs] == ["ZeroDivisionError", "ZeroDivisionError"]
    book >> Closed(CH) << []


def test_a_handler_that_returns_no_answer(book: ToyPlaybook) -> None:
    book.logs.bugs = True
    object.__setattr__(book.toy.router.match("GET", "/hello").route, "handler", lambda request: None)
    book.get(b"/hello") << [SendMatcher(CH, startswith=b"HTTP/1.1 500"), CloseWrite(CH)]


def test_a_disconnected_peer_cancels_a_flow(book: ToyPlaybook) -> None:
    opening = book.get(b"/file").order(OpenFile)
    book >> Closed(CH, "reset")
    (cancel,) = book.drain_commands()
    assert repr(cancel).startswith("Cancel")
    book >> Done(opening.op, OpenedFile(7, "/f", 5, 0.0))
    (release,) = book.drain_commands()
    assert repr(release) == "ReleaseFile(handle=7)"


def test_a_half_closed_peer_gets_all_its_answers(book: ToyPlaybook) -> None:
    (book >> Received(CH, get(b"/park") + get(b"/hello"))).drain_commands()
    book >> ReadClosed(CH) << []
    book.engine.resume(book.toy.ticket, b"yes")
    both = book.says(200, b"yes").data + book.says(200, b"hello", CLOSE).data
    book.after(0.0)
    assert [c for c in book.drain_commands() if not repr(c).startswith("ResumeReading")] == [
        Send(CH, both),
        CloseWrite(CH),
    ]


def test_a_flow_that_ends_the_process_is_stopped_by_that(book: ToyPlaybook) -> None:
    book.get(b"/quit") << [Exit(3, "as asked")]
    assert book.toy.cleaned == ["quit"]
    assert book.logs == []
    book >> Received(CH, get(b"/hello")) << []
    assert book.core.next_deadline() is None
