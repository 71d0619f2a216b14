import struct
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_proto.basics.pcm import wav_head
from svc_proto.voice.providers.wav_stream import MAX_HEAD, NotWavError, WavStream

SOUND = bytes(range(200))
FILE = wav_head(0x7FFF0000, 22_050) + SOUND
LONG_HEAD = FILE[:12] + b"LIST" + struct.pack("<I", 0xFFFFFFF0) + bytes(MAX_HEAD - 20)


@given(st.lists(st.integers(0, len(FILE)), max_size=6))
def test_file_cut_anywhere(cuts: list[int]) -> None:
    stream = WavStream()
    edges = [0, *sorted(cuts), len(FILE)]
    stream.finish()  # an empty stream is no error
    assert b"".join(stream.feed(FILE[a:b]) for a, b in pairwise(edges)) == SOUND
    assert (stream.rate, stream.feed(b"more")) == (22_050, b"more")
    stream.finish()


def test_other_chunks_are_skipped_and_the_header_must_be_whole() -> None:
    extra = b"LIST" + struct.pack("<I", 3) + b"abc\0"
    stream = WavStream()
    assert stream.feed(FILE[:12] + extra + FILE[12:]) == SOUND
    assert WavStream().feed(LONG_HEAD) == b""
    stream = WavStream()
    assert stream.feed(FILE[:30]) == b""
    with pytest.raises(NotWavError):
        stream.finish()


@pytest.mark.parametrize(
    "data",
    [
        b"OggS",
        b"R!",
        b"RIFF\0\0\0\0AVI ",
        FILE[:12] + FILE[36:],  # no format chunk
        FILE[:20] + struct.pack("<HHI", 3, 1, 22_050) + FILE[28:],  # floats
        FILE[:20] + struct.pack("<HHI", 1, 2, 22_050) + FILE[28:36],  # stereo: refused as soon as the format is parsed
        FILE[:20] + struct.pack("<HHI", 1, 1, 0) + FILE[28:],  # no sample rate
        LONG_HEAD + b"\0",
    ],
)
def test_invalid_files_are_refused(data: bytes) -> None:
    with pytest.raises(NotWavError):
        WavStream().feed(data)
