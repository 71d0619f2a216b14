"""A WAV file as it is made."""

from __future__ import annotations

import struct
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_proto.basics.pcm import wav_head
from svc_proto.voice.providers.wav_stream import MAX_HEAD, NotWavError, WavStream

SOUND = bytes(range(200))
FILE = wav_head(0x7FFF0000, 22_050) + SOUND
FORMAT = FILE[12:36]


def test_its_sound_without_its_head() -> None:
    stream = WavStream()
    assert stream.feed(FILE) == SOUND
    assert stream.rate == 22_050
    assert stream.feed(b"more") == b"more"
    stream.finish()


@given(st.lists(st.integers(0, len(FILE)), max_size=6))
def test_cut_anywhere(cuts: list[int]) -> None:
    stream = WavStream()
    edges = [0, *sorted(cuts), len(FILE)]
    assert b"".join(stream.feed(FILE[a:b]) for a, b in pairwise(edges)) == SOUND
    assert stream.rate == 22_050


def test_other_chunks_are_passed_over() -> None:
    extra = b"LIST" + struct.pack("<I", 3) + b"abc\0"
    stream = WavStream()
    assert stream.feed(FILE[:12] + extra + FILE[12:]) == SOUND


def test_nothing_at_all_is_no_error_here() -> None:
    WavStream().finish()


@pytest.mark.parametrize(
    "data",
    [
        b"OggS",
        b"R!",
        b"RIFF\0\0\0\0AVI \0\0",
        FILE[:12] + FILE[36:],  # no format
        FILE[:20] + struct.pack("<HHI", 3, 1, 22_050) + FILE[28:],  # floats
        FILE[:20] + struct.pack("<HHI", 1, 2, 22_050) + FILE[28:],  # stereo
        FILE[:20] + struct.pack("<HHI", 1, 1, 0) + FILE[28:],  # no rate
        FILE[:12] + b"LIST" + struct.pack("<I", 0xFFFFFFF0) + bytes(MAX_HEAD),
    ],
)
def test_what_is_none(data: bytes) -> None:
    with pytest.raises(NotWavError):
        WavStream().feed(data)


def test_a_format_is_judged_as_soon_as_it_is_told() -> None:
    with pytest.raises(NotWavError):
        WavStream().feed(FILE[:20] + struct.pack("<HHI", 1, 2, 22_050) + FILE[28:36])


def test_an_end_in_its_head() -> None:
    stream = WavStream()
    assert stream.feed(FILE[:30]) == b""
    with pytest.raises(NotWavError):
        stream.finish()
