import pytest

from svc_proto.basics.errors import Refused, RemoteProtocolError
from svc_proto.engine.message import Request, refusal_of
from svc_proto.wire.events import Headers
from tests.support.playbook import PEER


def request(body: bytes = b"", query: str = "") -> Request:
    return Request(
        method="GET", path="/", raw_query=query, headers=Headers(), peer=PEER, secure=False, params={}, body=body
    )


def test_query_and_fields_are_decoded_once_and_the_first_field_of_a_name_counts() -> None:
    asked = request(query="a=1&b=%20+&a=2")
    assert asked.query == {"a": "1", "b": "  "}
    assert asked.query is asked.query
    assert request().query == {}
    asked.headers = Headers([(b"a", b"1"), (b"b", b"2"), (b"a", b"3")])
    assert asked.fields == {b"a": b"1", b"b": b"2"}
    assert asked.fields is asked.fields


def test_json() -> None:
    assert request(b"[1]").json() == [1]
    assert request(b'{"a":1}').json_object() == {"a": 1}
    with pytest.raises(Refused) as refused:
        request(b'{"token":"secret"').json()
    assert (refused.value.status, refused.value.code) == (400, "invalid_json")
    assert "secret" not in refused.value.message
    with pytest.raises(Refused) as refused:
        request(b"[" + b"{}," * 100_000 + b"0]").json()
    assert (refused.value.status, refused.value.code) == (413, "body_too_large")
    with pytest.raises(Refused) as refused:
        request(b"[1]").json_object()
    assert (refused.value.status, refused.value.code) == (400, "invalid_body")


def test_refusals_of_protocol_errors() -> None:
    for status, code in ((400, "bad_request"), (408, "request_timeout"), (431, "head_too_large"), (422, "bad_request")):
        refused = refusal_of(RemoteProtocolError("not so", status=status))
        assert (refused.status, refused.code, refused.message) == (status, code, "not so")
    assert refusal_of(RemoteProtocolError("not so", code="invalid_content_length")).code == "invalid_content_length"


def test_a_byte_order_mark_before_a_body_is_dropped() -> None:
    assert request(b'\xef\xbb\xbf{"a":1}').json() == {"a": 1}
    with pytest.raises(Refused):
        request(b"\xef\xbb\xbf\xef\xbb\xbf{}").json()
