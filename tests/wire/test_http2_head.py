"""Functions for HTTP/2 heads; errors of a peer are in `test_http2_hostile`."""

import pytest
from hpack import NeverIndexedHeaderTuple

from svc_proto.basics.errors import RemoteProtocolError
from svc_proto.wire.events import Headers, RequestHead, ResponseHead, StreamId
from svc_proto.wire.http2_head import (
    MAX_LENGTH,
    parse_length,
    parse_trailers,
    request_fields,
    response_fields,
    trailer_fields,
)
from svc_proto.wire.limits import Limits

LIMITS = Limits(max_fields=9)


def test_secrets_stay_out_of_compression_tables() -> None:
    fields = trailer_fields([(b"Authorization", b"Bearer x"), (b"set-cookie", b"a"), (b"b", b"c")])
    assert [isinstance(field, NeverIndexedHeaderTuple) for field in fields] == [True, True, False]
    assert fields[0] == (b"authorization", b"Bearer x")


def test_trailers_have_no_pseudo_headers_and_long_white_space_is_judged_quickly() -> None:
    assert parse_trailers([(b"a", b"b")], LIMITS) == Headers(((b"a", b"b"),))
    for field in ((b":status", b"200"), (b"a", b"x" + b" " * 30_000)):
        with pytest.raises(RemoteProtocolError):
            parse_trailers([field], LIMITS)


def test_the_host_of_a_request_is_sent_as_its_authority_only() -> None:
    head = RequestHead(StreamId(1), "GET", "/", Headers(((b"host", b"a"),)))
    names = [name for name, _ in request_fields(head, secure=True, deflate=False)]
    assert names == [b":method", b":scheme", b":path", b":authority"]


def test_the_longest_length_and_the_greatest_status() -> None:
    assert parse_length(Headers(((b"content-length", b"9" * MAX_LENGTH),))) == int("9" * MAX_LENGTH)
    assert response_fields(ResponseHead(StreamId(1), 999)) == [(b":status", b"999")]


def test_the_limit_of_a_header_list() -> None:
    size = 2 * (32 + 3)
    assert len(parse_trailers([(b"a", b"bc")] * 2, Limits(max_head=size, max_fields=2))) == 2
    with pytest.raises(RemoteProtocolError, match="more than 69 bytes") as caught:
        parse_trailers([(b"a", b"bc")] * 2, Limits(max_head=size - 1))
    assert caught.value.status == 431
