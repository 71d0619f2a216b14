"""Static assets in memory: ETags, security policies and compression."""

import gzip

import pytest

from svc_proto.engine.message import Request
from svc_proto.engine.static_asset import StaticAsset, accepts_gzip
from svc_proto.facts import Address
from svc_proto.wire.events import Headers


def asked(*fields: tuple[bytes, bytes]) -> Request:
    return Request("GET", "/", "", Headers(fields), Address("127.0.0.1", 1), False, {})


def test_a_matching_etag_gets_304() -> None:
    file = StaticAsset(b"text/plain", b"hello")
    answer = file.answer(asked())
    assert not answer.only_these_headers
    assert (answer.status, answer.body) == (200, b"hello")
    assert answer.headers.get(b"content-type") == b"text/plain"
    assert answer.headers.get(b"cache-control") == b"no-cache"
    tag = answer.headers.get(b"etag")
    assert tag == file.tag != StaticAsset(b"text/plain", b"hello!").tag
    for form in (b"W/" + file.tag, b"*", b'"a,b",W/"x" , ' + file.tag):  # proxies that compress weaken a tag
        assert file.answer(asked((b"if-none-match", form))).status == 304
    for other in (b'"other"', file.tag[1:-1], b"W/", b"", file.tag[:-1] + b'x"'):
        assert file.answer(asked((b"if-none-match", other))).status == 200
    again = file.answer(asked((b"if-none-match", b'"other", ' + file.tag)))
    assert (again.status, again.body, again.headers.get(b"etag")) == (304, b"", tag)


def test_a_page_has_its_own_security_policy() -> None:
    policy = (b"content-security-policy", b"default-src 'none'")
    page = StaticAsset(b"text/html", b"<p>", (policy,))
    for answer in (page.answer(asked()), page.answer(asked((b"if-none-match", page.tag)))):
        assert answer.only_these_headers
        assert policy in list(answer.headers)


@pytest.mark.parametrize(
    ("cases", "accepted"),
    [
        ([(), (b"gzip;q=0",), (b"gzip;q=0.000, *",), (b"*", b"identity")], False),
        ([(b"gzip, deflate, br",), (b"br, GZIP ; q=0.5",), (b"br", b"x-gzip"), (b"gzip;q=0.001",)], True),
    ],
)
def test_clients_that_accept_gzip(cases: list[tuple[bytes, ...]], accepted: bool) -> None:
    for fields in cases:
        assert accepts_gzip(Headers((b"accept-encoding", field) for field in fields)) is accepted


def test_text_is_compressed_for_clients_that_accept_it() -> None:
    file = StaticAsset(b"text/css; charset=utf-8", b"a{}" * 100)
    gzipped = (b"accept-encoding", b"gzip")
    plain, packed = file.answer(asked()), file.answer(asked(gzipped))
    for answer in (plain, packed):
        assert answer.body == gzip.compress(file.body, mtime=0) if answer is packed else answer.body == file.body
        assert answer.headers.get(b"vary") == b"accept-encoding"
    assert plain.headers.get(b"content-encoding") is None
    assert packed.headers.get(b"content-encoding") == b"gzip"
    tags = [answer.headers.get(b"etag") or b"" for answer in (plain, packed)]
    assert len({*tags}) == 2  # the codings are two representations: RFC 9110 section 8.8.3.3
    assert file.answer(asked(gzipped, (b"if-none-match", tags[1]))).status == 304
    assert file.answer(asked(gzipped, (b"if-none-match", tags[0]))).status == 200
    image = StaticAsset(b"image/png", b"x" * 300).answer(asked(gzipped))
    assert (image.body, image.headers.get(b"vary")) == (b"x" * 300, None)
