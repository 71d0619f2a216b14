"""Responses of a server as h11 events: reason phrases, `Connection: close`, lengths, and malformed fields."""

import pytest

from svc_proto.basics.errors import LocalProtocolError
from svc_proto.wire.http1_responses import build_informational, build_response

CLOSE = (b"connection", b"close")


@pytest.mark.parametrize(
    ("status", "phrase"), [(200, b"OK"), (431, b"Request Header Fields Too Large"), (299, b"Unknown")]
)
def test_the_reason_phrase_is_never_empty(status: int, phrase: bytes) -> None:
    assert build_response(status, [], closing=False).reason == phrase
    assert [build_informational(interim, []).reason for interim in (100, 199)] == [b"Continue", b"Unknown"]


def test_connection_close_is_added_once() -> None:
    assert list(build_response(200, [], closing=True).headers) == [CLOSE]
    assert list(build_response(200, [CLOSE], closing=True).headers) == [CLOSE]


def test_a_204_has_no_length() -> None:
    assert list(build_response(204, [(b"Content-Length", b"0"), (b"x", b"1")], closing=False).headers) == [(b"x", b"1")]


def test_malformed_fields_are_local_errors_without_quotes() -> None:
    with pytest.raises(LocalProtocolError) as caught:
        build_response(200, [(b"set-cookie", b"s3cret\n")], closing=False)
    assert "s3cret" not in str(caught.value)
    with pytest.raises(LocalProtocolError):
        build_informational(200, [])
