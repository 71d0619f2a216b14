"""The transition table of reading HTTP/1.1."""

from itertools import product

from svc_proto.wire.http1_read_state import READ_TABLE, ReadState, ReadTrigger


def test_reading_can_stop_anywhere_and_never_starts_again() -> None:
    assert all(READ_TABLE[state, ReadTrigger.STOP] is ReadState.OVER for state in ReadState)
    assert not [
        key
        for key in product([ReadState.OVER, ReadState.SOCKET], ReadTrigger)
        if READ_TABLE.get(key, key[0]) is ReadState.HEAD
    ]
