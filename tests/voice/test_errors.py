from __future__ import annotations

from svc_proto.basics.errors import Refused
from svc_proto.voice.errors import plain_refusal


def test_a_refusal_is_its_message() -> None:
    answer = plain_refusal(Refused(404, "not_found", "no such vöice"))
    assert (answer.status, answer.body) == (404, "no such vöice".encode())
    assert answer.headers.get(b"content-type") == b"text/plain; charset=utf-8"
    assert plain_refusal(Refused(401, "x", "\ud800")).body == b"?"
    assert plain_refusal(Refused(401, "x", "y")).headers.get(b"www-authenticate") == b"Bearer"
