from base64 import b64encode

import pytest

from svc_proto.api.gateway import attachment_content
from svc_proto.api.gateway.attachment_content import TextReader, decode_base64
from svc_proto.schema.json_rpc import RpcError


@pytest.fixture(autouse=True)
def short_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attachment_content, "PART", 8)


@pytest.mark.parametrize("size", [1, 5, 6, 7, 12, 13])
def test_base64_is_decoded_in_parts(size: int) -> None:
    data = bytes(range(size))
    parts = decode_base64("data:," + b64encode(data).decode(), 100, start=6)
    assert b"".join(parts) == data
    assert all(len(part) <= 6 for part in parts)


@pytest.mark.parametrize("content", ["", "%", "QUFBQQ==QUFB", "QUFBQUE=QUFB", "Q" * 137, "QUFBQUFBé===", "QQ"])
def test_what_is_no_base64_is_refused(content: str) -> None:
    with pytest.raises(RpcError, match="must be base64"):
        decode_base64(content, 100)


def test_a_content_over_the_limit_is_refused() -> None:
    for size in (6, 7, 8, 9):
        with pytest.raises(RpcError, match="more than 0 MB"):
            decode_base64(b64encode(b"a" * size).decode(), 5)
    assert b"".join(decode_base64(b64encode(b"a" * 5).decode(), 5)) == b"a" * 5


@pytest.mark.parametrize(
    ("parts", "found"),
    [
        ([b"\xef\xbb", b"\xbfab", b"c"], ("abc", 3)),
        ([b"abc", b"d\xc3", b"\xa9f"], ("abcd", 6)),
        ([b"abcdef", b"gh"], ("abcd", 8)),
        ([b"ab", b"c\xc3"], None),
        ([b"abcdef", b"\0"], None),
    ],
)
def test_a_text_is_decoded_in_parts(parts: list[bytes], found: tuple[str, int] | None) -> None:
    reader = TextReader(4)
    for part in parts:
        reader.receive(part)
    assert reader.finish() == found
