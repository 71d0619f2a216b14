"""Lines come out whole, for every chunking, and not without a limit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_proto.basics.errors import RemoteProtocolError
from svc_proto.machines.lines import LineBuffer


def test_ends_are_cut_off_and_the_rest_is_kept() -> None:
    lines = LineBuffer()
    assert lines.feed(b"one\ntwo\r\nthr") == [b"one", b"two"]
    assert lines.feed(b"") == []
    assert lines.feed(b"ee\n\n") == [b"three", b""]


@pytest.mark.parametrize("pieces", [(b"", b"12345"), (b"123", b"45"), (b"", b"12345\n"), (b"123", b"45\n")])
def test_a_line_over_the_limit_is_an_error(pieces: tuple[bytes, bytes]) -> None:
    lines = LineBuffer(limit=4)
    assert lines.feed(pieces[0]) == []
    with pytest.raises(RemoteProtocolError):
        lines.feed(pieces[1])


@given(st.lists(st.binary(max_size=8)))
def test_chunking_makes_no_difference(pieces: list[bytes]) -> None:
    whole, cut = LineBuffer(), LineBuffer()
    assert [line for piece in pieces for line in cut.feed(piece)] == whole.feed(b"".join(pieces))
