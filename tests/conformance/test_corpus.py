"""Test of the judgement of a corpus in memory: which cases pass, and which fail."""

from pathlib import Path

from tests.conformance.requests_suite import in_memory

GET = "GET /a HTTP/1.1\\r\\n\nX-Tab:\\tb\\x21\\r\\n\n\\r\\n\n"
GET_PY = """
from gunicorn.config import Config
cfg = Config()
request = {"method": "GET", "uri": uri("/a"), "version": (1, 1), "headers": [("X-TAB", "b!")], "body": b""}
"""
BAD_PY = "from gunicorn.http.errors import InvalidHeader\nrequest = InvalidHeader\n"


def write(folder: Path, kind: str, name: str, data: str, description: str) -> None:
    (folder / kind).mkdir(exist_ok=True)
    (folder / kind / f"{name}.http").write_text(data)
    (folder / kind / f"{name}.py").write_text(description)


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
