"""`Headers`: look-ups in pairs of names and values."""

import pytest

from svc_proto.basics.entropy import sha256_hex
from svc_proto.wire.events import NO_HEADERS, Headers


def test_headers() -> None:
    headers = Headers(((b"a", b"1"), (b"b", b"X , y,,"), (b"a", b"2"), (b"b", b"Z")))
    assert headers.get(b"a") == b"1"
    assert headers.get(b"c") is None
    assert headers.get(b"c", b"d") == b"d"
    assert headers.all(b"a") == [b"1", b"2"]
    assert headers.tokens(b"b") == [b"x", b"y", b"z"]
    assert NO_HEADERS.all(b"a") == []


@pytest.mark.parametrize(
    ("value", "token"),
    [(b"Bearer abc", "abc"), (b"bEARER  a\xe9 ", "a\xe9"), (b"Basic abc", ""), (b"Bearer", ""), (b"", "")],
)
def test_the_bearer(value: bytes, token: str) -> None:
    headers = Headers(((b"authorization", value), (b"authorization", b"Bearer second")))
    assert (headers.bearer, headers.bearer_hash) == (token, sha256_hex(token))
    assert headers == Headers(tuple(headers))
    assert NO_HEADERS.bearer == ""
