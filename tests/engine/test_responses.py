"""Responses: the common header fields, the date, and output after which further requests wait."""

import pytest
from attrs import evolve

from svc_proto.commands import PauseReading
from svc_proto.engine.responses import http_date
from svc_proto.facts import Received, Sent
from svc_proto.wire.limits import DEFAULT_LIMITS
from tests.engine.toy_service import get, open_book, plain
from tests.support.playbook import CH, SendMatcher, wire_bytes


def test_fields_of_the_service_are_on_every_answer() -> None:
    book = open_book()
    book.toy.extra_fields = ((b"x-extra", b"1"),)
    for path in (b"/hello", b"/nowhere", b"/teapot", b"/private"):
        book.get(path) << [SendMatcher(CH, contains=b"\r\nx-extra: 1\r\n")]


def test_the_date_is_that_of_rfc_9110() -> None:
    assert http_date(784_111_777) == b"Sun, 06 Nov 1994 08:49:37 GMT"
    assert http_date(0) == b"Thu, 01 Jan 1970 00:00:00 GMT"


@pytest.mark.parametrize(("size", "answers"), [(16 * 1024 - 1, 2), (16 * 1024, 1)])
def test_requests_after_16_kib_of_output_wait_for_the_socket(size: int, answers: int) -> None:
    book = open_book(evolve(DEFAULT_LIMITS, high_water=16 * 1024))
    book >> Received(CH, get(b"/park") + get(b"/hello")) << [PauseReading(CH)]
    book.act(lambda: book.engine.resume(book.toy.ticket, b"x" * size))
    assert wire_bytes(book.drain_commands(), CH).count(b"HTTP/1.1 200") == answers


def test_a_connection_with_16_kib_of_unsent_output_is_not_idle() -> None:
    book = open_book(evolve(DEFAULT_LIMITS, high_water=16 * 1024, low_water=0))
    book.toy.answer = lambda request: plain(b"x" * 16 * 1024)
    book.get(b"/answer").drain_commands()
    for _ in range(3):
        book.after(DEFAULT_LIMITS.idle_timeout / 2) << []
        book >> Sent(CH, 1) << []
