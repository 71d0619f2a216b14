"""What is the same of every answer. How each kind is said: `test_turn`, `test_exchange`, `test_stream_answers`."""

from __future__ import annotations

from tests.engine.service import open_book
from tests.playbook import CH, sends


def test_fields_of_the_service_are_on_every_answer() -> None:
    book = open_book()
    book.toy.extra_fields = ((b"x-extra", b"1"),)
    for path in (b"/hello", b"/nowhere", b"/teapot", b"/private"):
        book.get(path) << [sends(CH, contains=b"\r\nx-extra: 1\r\n")]
