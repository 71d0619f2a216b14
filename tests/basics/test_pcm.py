"""PCM sound: levels, other rates, WAV heads."""

import struct
import wave
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_proto.basics.pcm import duration, levels, resample, wav_head, whole_samples


def pcm(*samples: int) -> bytes:
    return struct.pack(f"<{len(samples)}h", *samples)


@pytest.mark.parametrize(
    ("sound", "expected"),
    [
        (b"", (0.0, 0.0)),
        (b"\x01", (0.0, 0.0)),
        (pcm(0, 0), (0.0, 0.0)),
        (pcm(32_767, -32_767), (1.0, 1.0)),
        (pcm(-32_768), (1.0, 1.0)),
        (pcm(8000, 0, 0, 0), (0.2441, 0.1221)),
        (pcm(100, -300), (0.0092, 0.0068)),
        (pcm(*[8000, -8000] * 4000), (0.2441, 0.2441)),
    ],
)
def test_levels(sound: bytes, expected: tuple[float, float]) -> None:
    assert levels(sound) == expected


@given(
    st.binary(max_size=200), st.sampled_from([8000, 16_000, 24_000, 48_000]), st.sampled_from([8000, 24_000, 44_100])
)
def test_another_rate(sound: bytes, source: int, target: int) -> None:
    count = len(sound) // 2
    changed = resample(sound, source, target)
    assert len(changed) == 2 * (count * target // source)
    assert set(struct.unpack(f"<{len(changed) // 2}h", changed)) <= set(struct.unpack(f"<{count}h", sound[: 2 * count]))


def test_the_nearest_neighbour() -> None:
    assert resample(pcm(1, 2, 3, 4), 24_000, 12_000) == pcm(1, 3)
    assert resample(pcm(1, 2), 8000, 16_000) == pcm(1, 1, 2, 2)
    assert resample(pcm(1, 2) + b"\x00", 8000, 8000) == pcm(1, 2)
    assert whole_samples(b"abc") == b"ab"
    assert duration(48_000, 24_000) == 1.0


def test_a_wav_file() -> None:
    sound = pcm(1, -2, 3)
    with wave.open(BytesIO(wav_head(len(sound), 16_000) + sound)) as file:
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth(), file.getnframes()) == (16_000, 1, 2, 3)
        assert file.readframes(3) == sound
    assert len(wav_head(1 << 40, 8000)) == 44


def test_a_big_endian_host(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = pcm(1, 3), levels(pcm(256))
    monkeypatch.setattr("svc_proto.basics.pcm._SWAPPED", True)
    assert resample(pcm(1, 2, 3, 4), 24_000, 12_000) == expected[0]
    assert levels(pcm(1)) == expected[1]
