"""Limits of this room as numbers: those that documents name, as they stand there, and those that tests call by name.

A test that uses a constant passes with any value of it.
"""

from __future__ import annotations

import pytest

from tests.limits import value_of

LIMITS = {
    # its own, which other tests call by name
    "deflate.MAX_FRAGMENTS": 65_536,
    "frames.MAX_CONTROL": 125,
    "http2_lean.MAX_BLOCK": 256,
    "http2_lean.MAX_BLOCKS": 8,
    "http2_lean.MAX_BLOCK_FIELDS": 32,
    "http2_setup.CONNECTION_WINDOW": 1024 * 1024,
    "http2_setup.MAX_STREAMS": 100,
    "http2_setup.STREAM_WINDOW": 256 * 1024,
    "limits.MAX_TEXT": 5_000,
    "websocket.MAX_PONGS": 64,
    # its own, of which no other test knows the number
    "deflate.INFLATER": 8 * 1024,
    "deflate.MAX_WINDOW_BITS": 15,
    "deflate.MEMORY_LEVEL": 5,
    "deflate.MIN_ZLIB_BITS": 9,
}


@pytest.mark.parametrize(("name", "value"), LIMITS.items())
def test_a_limit_is_what_it_is_said_to_be(name: str, value: float) -> None:
    assert value_of("wire", name) == value
