"""The table of what is read of HTTP/1.1."""

from __future__ import annotations

from itertools import product

from svc_proto.wire.http1_read_state import READING, Reading, ReadingTrigger


def test_reading_can_stop_anywhere_and_never_starts_again() -> None:
    assert all(READING[state, ReadingTrigger.STOP] is Reading.OVER for state in Reading)
    assert not [
        key
        for key in product([Reading.OVER, Reading.SOCKET], ReadingTrigger)
        if READING.get(key, key[0]) is Reading.HEAD
    ]
