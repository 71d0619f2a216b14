from __future__ import annotations

from svc_proto.basics.errors import Refused
from svc_proto.voice.errors import PlainRefused, plainly


def test_a_refusal_in_text() -> None:
    refused = PlainRefused(404, "no such vöice", code="not_found")
    answer = refused.response()
    assert (answer.status, answer.body) == (404, "no such vöice".encode())
    assert answer.headers.get(b"content-type") == b"text/plain; charset=utf-8"
    assert (refused.code, refused.message) == ("not_found", "no such vöice")


def test_any_text_can_be_said() -> None:
    assert PlainRefused(400, "\ud800").response().body == b"?"


def test_the_same_refusal() -> None:
    again = plainly(Refused(413, "too_large", "too much"))
    assert (again.status, again.code, again.message) == (413, "too_large", "too much")
