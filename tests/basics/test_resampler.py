"""Conversion of sample rates, piece by piece."""

from array import array
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_proto.basics import resampler
from svc_proto.basics.resampler import Resampler

RATES = st.sampled_from([8_000, 16_000, 22_050, 24_000, 44_100, 48_000, 24_001])


def whole(pcm: bytes, source: int, target: int) -> bytes:
    return Resampler(source, target).feed(pcm)


def pcm(*samples: int) -> bytes:
    return array("h", samples).tobytes()


def test_interpolation_is_linear() -> None:
    assert whole(pcm(0, 100, 200), 24_000, 48_000) == pcm(0, 50, 100, 150)
    assert whole(pcm(0, 100, 200, 300, 400), 48_000, 24_000) == pcm(0, 200)
    stream = Resampler(48_000, 24_000)
    assert stream.feed(pcm(0, 100)) + stream.feed(pcm(200, 300, 400)) == pcm(0, 200)
    assert whole(pcm(-32_768, 32_767), 16_000, 48_000) == pcm(-32_768, -10_923, 10_922)


def test_half_a_sample_waits_for_the_rest_and_the_same_rate_changes_nothing() -> None:
    converter = Resampler(8_000, 16_000)
    assert converter.feed(b"\x01") == b""
    assert converter.feed(b"\x00") == whole(b"\x01\x00", 8_000, 16_000)
    sound = pcm(1, 2, 3)
    assert whole(sound, 24_000, 24_000) is sound
    stream = Resampler(24_000, 24_000)
    assert [stream.feed(sound[place : place + 1]) for place in range(4)] == [b"", sound[:2], b"", sound[2:4]]


def test_a_host_of_the_other_byte_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resampler, "_SWAPPED", True)
    sound, wanted = array("h", [0, 256, 512]), array("h", [0, 128, 256, 384])
    sound.byteswap()
    wanted.byteswap()
    assert whole(sound.tobytes(), 24_000, 48_000) == wanted.tobytes()


@given(st.lists(st.integers(-32_768, 32_767), max_size=200), st.lists(st.integers(0, 400), max_size=8), RATES, RATES)
def test_the_result_does_not_depend_on_cuts(samples: list[int], cuts: list[int], source: int, target: int) -> None:
    sound = pcm(*samples)
    stream = Resampler(source, target)
    edges = sorted({0, len(sound), *(min(cut, len(sound)) for cut in cuts)})
    pieces = [stream.feed(sound[begin:end]) for begin, end in pairwise(edges)]
    assert b"".join(pieces) == whole(sound, source, target)
    assert all(len(piece) % 2 == 0 for piece in pieces)


@given(st.integers(2, 400), RATES, RATES)
def test_the_duration_is_kept(count: int, source: int, target: int) -> None:
    made = len(whole(bytes(2 * count), source, target)) // 2
    assert abs(made / target - count / source) <= 1 / source + 1 / target
