"""Tests of the corpus reader, and of the judgement of its cases in memory, with a corpus of the test."""

from pathlib import Path

import pytest

from tests.conformance.corpus import HOST, Expected, load, with_host
from tests.conformance.requests_suite import in_memory

GET = "GET /a HTTP/1.1\\r\\n\nX-Tab:\\tb\\x21\\r\\n\n\\r\\n\n"
GET_PY = """
from gunicorn.config import Config
cfg = Config()
cfg.set("limit_request_fields", 7)
request = {"method": "GET", "uri": uri("/a"), "version": (1, 1), "headers": [("X-TAB", "b!")], "body": b""}
"""
BAD_PY = "from gunicorn.http.errors import InvalidHeader\nrequest = InvalidHeader\n"


def write(folder: Path, kind: str, name: str, data: str, description: str) -> None:
    (folder / kind).mkdir(exist_ok=True)
    (folder / kind / f"{name}.http").write_text(data)
    (folder / kind / f"{name}.py").write_text(description)


def test_the_notation(tmp_path: Path) -> None:
    write(tmp_path, "valid", "1", GET, GET_PY)
    (case,) = load(tmp_path)
    assert case.name == "valid/1"
    assert case.data == b"GET /a HTTP/1.1\r\nX-Tab:\tb!\r\n\r\n"
    assert case.expected == (Expected("GET", "/a", "1.1", ((b"x-tab", b"b!"),), (), b""),)
    assert case.settings == {"limit_request_fields": 7}


def test_the_judgement(tmp_path: Path) -> None:
    write(tmp_path, "valid", "good", GET, GET_PY)
    write(tmp_path, "valid", "other", GET.replace("/a", "/b"), GET_PY)
    write(tmp_path, "valid", "refused", GET.replace("X-Tab", "X Tab"), GET_PY)
    write(tmp_path, "invalid", "bad", GET.replace("X-Tab", "X Tab"), BAD_PY)
    write(tmp_path, "invalid", "served", GET, BAD_PY)
    result = in_memory(tmp_path)
    assert result.passed == 2
    assert list(result.failed) == ["valid/other", "valid/refused", "invalid/served"]
    assert result.lines()[0] == "requests, in memory: 2 of 5 passed, 3 failed"


@pytest.mark.parametrize(
    ("data", "completed"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\nHost: corpus.example\r\n\r\n"),
        (b"GET / HTTP/1.1\r\nhost: a\r\n\r\n", b"GET / HTTP/1.1\r\nhost: a\r\n\r\n"),
        (b"GET / HTTP/1.0\r\n\r\n", b"GET / HTTP/1.0\r\n\r\n"),
        (b"GET / HTTP/1.1\r\nX", b"GET / HTTP/1.1\r\nX"),
        (
            b"\r\nA / HTTP/1.1\r\nContent-Length: 2\r\n\r\nabB / HTTP/1.1\r\n\r\n",
            b"\r\nA / HTTP/1.1\r\n%bContent-Length: 2\r\n\r\nabB / HTTP/1.1\r\n%b\r\n" % (HOST, HOST),
        ),
        (
            b"A / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nB / HTTP/1.1\r\n\r\n",
            b"A / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nB / HTTP/1.1\r\n%b\r\n" % HOST,
        ),
    ],
)
def test_a_missing_host_is_added(data: bytes, completed: bytes) -> None:
    assert with_host(data) == completed
