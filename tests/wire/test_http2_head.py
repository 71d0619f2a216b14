"""Functions for HTTP/2 heads; errors of a peer are in `test_http2_hostile`."""

import pytest
from attrs import evolve
from hpack import NeverIndexedHeaderTuple

from svc_proto.basics.errors import LocalProtocolError, RemoteProtocolError
from svc_proto.wire.events import AcceptWebSocket, Headers, RequestHead, ResponseHead, StreamId
from svc_proto.wire.http2_head import (
    accept_fields,
    declared_length,
    parse_length,
    parse_request,
    parse_response,
    parse_trailers,
    request_fields,
    response_fields,
    trailer_fields,
)
from svc_proto.wire.limits import Limits
from svc_proto.wire.websocket_handshake import parse_acceptance

ONE = StreamId(1)
LIMITS = Limits(max_fields=9)
PSEUDO = [(b":method", b"GET"), (b":scheme", b"https"), (b":path", b"/a"), (b":authority", b"[::1]:80")]


def test_a_request_there_and_back() -> None:
    head = RequestHead(ONE, "GET", "/a", Headers(((b"host", b"[::1]:80"), (b"a", b"b"))), http_version="2")
    fields = request_fields(head, secure=True, deflate=True)
    assert fields == [*PSEUDO, (b"a", b"b")]
    assert parse_request(ONE, fields, LIMITS, ended=True) == head


@pytest.mark.parametrize("deflate", [True, False])
def test_a_websocket_there_and_back(deflate: bool) -> None:
    asked = RequestHead(ONE, "GET", "/ws", Headers(((b"host", b"a"),)), websocket=True)
    fields = request_fields(asked, secure=False, deflate=deflate)
    head = parse_request(ONE, fields, LIMITS, ended=False)
    assert (head.method, head.websocket, head.expects_continue) == ("GET", True, False)
    answer, agreed = accept_fields(head, AcceptWebSocket(ONE), deflate=True)
    assert (agreed is not None) is deflate
    status, headers = parse_response(answer, LIMITS)
    assert status == 200
    seen = agreed and evolve(agreed, server_max_window_bits=15)  # the server's smaller window was not offered
    assert parse_acceptance(asked.headers, headers, deflate=deflate) == (None, seen)


def test_secrets_stay_out_of_compression_tables() -> None:
    fields = trailer_fields([(b"Authorization", b"Bearer x"), (b"set-cookie", b"a"), (b"b", b"c")])
    assert [isinstance(field, NeverIndexedHeaderTuple) for field in fields] == [True, True, False]
    assert fields[0] == (b"authorization", b"Bearer x")


def test_http1_fields_are_omitted() -> None:
    headers = Headers(((b"connection", b"close"), (b"transfer-encoding", b"chunked"), (b"a", b"")))
    assert response_fields(ResponseHead(ONE, 200, headers)) == [(b":status", b"200"), (b"a", b"")]


@pytest.mark.parametrize("cookie_fields", [[b"a=1"], [b"a=1", b"b=2"], [b"a=1", b"b=2", b"c=3"]])
def test_a_cookie_in_parts_and_a_host_beside_the_authority(cookie_fields: list[bytes]) -> None:
    fields = [*PSEUDO, (b"host", b"[::1]:80"), *((b"cookie", cookie_field) for cookie_field in cookie_fields)]
    head = parse_request(ONE, fields, LIMITS, ended=True)
    assert head.headers.all(b"cookie") == [b"; ".join(cookie_fields)]
    assert head.headers.all(b"host") == [b"[::1]:80"]


@pytest.mark.parametrize("status", [200, 999])
def test_the_first_and_the_last_status(status: int) -> None:
    assert response_fields(ResponseHead(ONE, status, Headers())) == [(b":status", b"%d" % status)]


def test_lengths() -> None:
    assert parse_length(Headers(((b"content-length", b"10"),))) == 10
    assert parse_length(Headers(((b"content-length", b"9" * 18),))) == 10**18 - 1
    assert parse_length(Headers()) is None
    assert declared_length([(b"a", b"1"), (b"content-length", b"7")]) == 7
    assert declared_length([]) is None
    with pytest.raises(LocalProtocolError):
        declared_length([(b"content-length", b"-1")])
    with pytest.raises(RemoteProtocolError) as caught:
        parse_length(Headers(((b"content-length", b"1,1"),)))
    assert caught.value.code == "invalid_content_length"
    with pytest.raises(RemoteProtocolError):
        parse_length(Headers(((b"content-length", b"9" * 19),)))


def test_trailers_have_no_pseudo_headers_and_long_white_space_is_judged_quickly() -> None:
    assert parse_trailers([(b"a", b"b")], LIMITS) == Headers(((b"a", b"b"),))
    for field in ((b":status", b"200"), (b"a", b"x" + b" " * 30_000)):
        with pytest.raises(RemoteProtocolError):
            parse_trailers([field], LIMITS)


def test_the_limit_of_a_header_list() -> None:
    size = 2 * (32 + 3)
    assert len(parse_trailers([(b"a", b"bc")] * 2, Limits(max_head=size))) == 2
    with pytest.raises(RemoteProtocolError, match="more than 69 bytes") as caught:
        parse_trailers([(b"a", b"bc")] * 2, Limits(max_head=size - 1))
    assert caught.value.status == 431
