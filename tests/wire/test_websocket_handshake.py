"""Functions of the opening handshake: valid requests, problems, and fields given twice."""

import pytest

from svc_proto.wire.events import Headers, RequestHead, StreamId
from svc_proto.wire.websocket_handshake import handshake_problem, is_handshake

GOOD: dict[bytes, bytes] = {
    b"host": b"a",
    b"upgrade": b"WebSocket",
    b"connection": b"keep-alive, Upgrade",
    b"sec-websocket-key": b"dGhlIHNhbXBsZSBub25jZQ==",
    b"sec-websocket-version": b"13",
}


def head(changes: dict[bytes, bytes | None], method: str = "GET", version: str = "1.1") -> RequestHead:
    fields = {**GOOD, **changes}
    headers = Headers((name, value) for name, value in fields.items() if value is not None)
    return RequestHead(StreamId(1), method, "/ws", headers, http_version=version)


def test_a_valid_handshake() -> None:
    assert handshake_problem(head({})) is None
    assert is_handshake(head({}))


@pytest.mark.parametrize(
    "request_head", [head({b"upgrade": None}), head({b"upgrade": b"h2c"}), head({b"upgrade": b"h2c"}, version="1.0")]
)
def test_requests_that_are_no_handshake(request_head: RequestHead) -> None:
    assert handshake_problem(request_head) is None
    assert not is_handshake(request_head)


@pytest.mark.parametrize(
    ("request_head", "status", "word"),
    [
        (head({}, version="1.0"), 400, "HTTP/1.1"),
        (head({}, method="POST"), 400, "GET"),
        (head({b"connection": b"keep-alive"}), 400, "Connection"),
        (head({b"connection": None}), 400, "Connection"),
        (head({b"content-length": b"5"}), 400, "body"),
        (head({b"transfer-encoding": b"chunked"}), 400, "body"),
        (head({b"sec-websocket-version": None}), 400, "Version"),
        (head({b"sec-websocket-version": b"8"}), 426, "13"),
        (head({b"sec-websocket-key": None}), 400, "Key"),
        (head({b"sec-websocket-key": b"c2hvcnQ="}), 400, "Key"),
        (head({b"sec-websocket-key": b"not base64!"}), 400, "Key"),
    ],
)
def test_problems(request_head: RequestHead, status: int, word: str) -> None:
    problem = handshake_problem(request_head)
    assert problem is not None
    assert problem[0] == status
    assert word in problem[1]
    assert ((b"sec-websocket-version", b"13") in problem[2]) is (status == 426)
    assert not is_handshake(request_head)


@pytest.mark.parametrize(("name", "status"), [(b"sec-websocket-key", 400), (b"sec-websocket-version", 426)])
def test_a_field_given_twice(name: bytes, status: int) -> None:
    twice = Headers((*head({}).headers, (name, GOOD[name])))
    problem = handshake_problem(RequestHead(StreamId(1), "GET", "/", twice))
    assert problem is not None
    assert problem[0] == status
