"""Static assets in memory: sent once, then validated by their ETag."""

from __future__ import annotations

from svc_proto.engine.message import Request
from svc_proto.engine.static_asset import StaticAsset
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
