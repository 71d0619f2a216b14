"""The reader of chunked bodies alone; most of its refusals are in `test_http1_strict`."""

import pytest

from svc_proto.basics.errors import RemoteProtocolError
from svc_proto.wire.http1_chunks import CHUNK_TABLE, LARGE, ChunkedBodyReader, ChunkState, ChunkTrigger
from svc_proto.wire.limits import DEFAULT_LIMITS, Limits


def chunk(piece: bytes, extension: bytes) -> bytes:
    return b"%x%s\r\n%s\r\n" % (len(piece), extension, piece)


@pytest.fixture
def chunks() -> ChunkedBodyReader:
    return ChunkedBodyReader(DEFAULT_LIMITS)


def test_every_state_but_the_last_is_left() -> None:
    assert {state for state, _ in CHUNK_TABLE} == set(ChunkState) - {ChunkState.OVER}
    assert {trigger for _, trigger in CHUNK_TABLE} == set(ChunkTrigger)


@pytest.mark.parametrize(("size", "joined"), [(LARGE - 1, LARGE), (LARGE, LARGE)])
def test_the_size_of_a_large_chunk(chunks: ChunkedBodyReader, size: int, joined: int) -> None:
    chunks.receive_data(chunk(bytes(size), b"") + chunk(b"x", b""))
    assert len(chunks.read()) == joined


@pytest.mark.parametrize(("data", "begun"), [(b"", False), (b"2;a\r", False), (b"2;a\r\n", True), (b"0\r\n", True)])
def test_a_body_begins_with_its_first_line(chunks: ChunkedBodyReader, data: bytes, begun: bool) -> None:
    chunks.receive_data(data)
    assert chunks.read() == b""
    assert chunks.begun is begun


def test_data_before_an_error_is_returned_first(chunks: ChunkedBodyReader) -> None:
    chunks.receive_data(b"2\r\nok\r\nx")
    assert chunks.read() == b"ok"
    for _ in range(2):
        with pytest.raises(RemoteProtocolError):
            chunks.read()


def test_the_limit_of_extensions_covers_all_of_them() -> None:
    limits = Limits(max_head=100)
    line = b"1;" + b"x" * 49 + b"\r\na\r\n"
    chunks = ChunkedBodyReader(limits)
    chunks.receive_data(line * 2)
    assert chunks.read() == b"aa"
    chunks.receive_data(b"1;x\r\na\r\n")
    with pytest.raises(RemoteProtocolError, match="100 bytes") as caught:
        chunks.read()
    assert caught.value.status == 431


def test_a_long_line_is_searched_once(chunks: ChunkedBodyReader) -> None:
    chunks.receive_data(b"1;")
    for _ in range(DEFAULT_LIMITS.max_head - 3):
        chunks.receive_data(b"x")
        assert chunks.read() == b""
    assert chunks.trailing_data.startswith(b"1;x")
    chunks.receive_data(b"x")
    with pytest.raises(RemoteProtocolError):
        chunks.read()


@pytest.mark.parametrize(
    ("data", "body", "left"),
    [
        (b"2\r\nok\r\n3\r\nabc\r\n", b"okabc", b""),
        (b"00002\r\nok\r\n", b"ok", b""),
        (b"000002\r\nok\r\n", b"ok", b""),
        (b"2\r\nok\r\n2;a\r\nok\r\n2\r\nok\r\n", b"okokok", b""),
        (b"2\r\nok\r\n2\r\no", b"oko", b""),
        (b"2\r\nok\r\n2\r\nok\r", b"okok", b"\r"),
        (b"2\r\nok\r\n2\r", b"ok", b"2\r"),
    ],
)
def test_whole_chunks_are_read_at_once(chunks: ChunkedBodyReader, data: bytes, body: bytes, left: bytes) -> None:
    chunks.receive_data(data)
    assert chunks.read() == body
    assert chunks.trailing_data == left
    assert chunks.begun


def test_a_split_line_does_not_affect_the_next_search(chunks: ChunkedBodyReader) -> None:
    for part in (b"2\r\nok\r\n000", b"2\r\nok\r\n0000000", b"2\r\nok\r\n0\r\n\r\n"):
        chunks.receive_data(part)
        assert chunks.read() == b"ok"
    assert chunks.read() == b""
    assert chunks.finished


@pytest.mark.parametrize(
    ("cases", "piece"),
    [
        ([b"5\r\nhello\r\n", b"0005\r\nhello\r\n"], b"hello"),
        ([b"5\r\nhello\r", b"5\r\nhello", b"5\r\nhell\r\n", b"4\r\nhello\r\n", b"5\r\nhello\r\n5\r\nhello\r\n"], None),
        ([b"5;x\r\nhello\r\n", b"000005\r\nhello\r\n", b"+5\r\nhello\r\n", b"\r\nhello\r\n", b"0\r\n\r\n"], None),
        ([b"hello", b""], None),
    ],
)
def test_whole_recognizes_a_single_chunk(cases: list[bytes], piece: bytes | None) -> None:
    for data in cases:
        body = ChunkedBodyReader(DEFAULT_LIMITS)
        assert body.whole(data) == piece
        assert (body.trailing_data, body.read(), body.begun) == (b"", b"", False)


@pytest.mark.parametrize("before", [b"5", b"5\r\nhe", b"5\r\nhello", b"0\r\n", b"0\r\n\r\n"])
def test_a_chunk_after_half_of_another_is_not_whole(before: bytes) -> None:
    body = ChunkedBodyReader(DEFAULT_LIMITS)
    body.receive_data(before)
    body.read()
    assert body.whole(b"5\r\nhello\r\n") is None
