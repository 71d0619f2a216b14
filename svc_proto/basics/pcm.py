"""PCM sound in the project's format: signed 16-bit little-endian, one channel (wire terminal-voice 0.3)."""

from __future__ import annotations

import struct
import sys
from array import array
from math import gcd, hypot, sqrt
from typing import NamedTuple

__all__ = ["SAMPLE_WIDTH", "Levels", "duration", "levels", "resample", "wav_head", "whole_samples"]

SAMPLE_WIDTH = 2  # bytes
FULL_SCALE = 32_767
MAX_LEVELS = 64  # samples that `levels` uses: for a meter that is enough, and all took half of the work on a piece
WAV_HEAD = struct.Struct("<4sI4s4sIHHIIHH4sI")
MAX_WAV = 0xFFFFFFFF - WAV_HEAD.size + 8  # bytes of sound that its head can declare
_SWAPPED = sys.byteorder == "big"


class Levels(NamedTuple):
    """Loudness of a piece, 0 to 1 with four decimals."""

    peak: float
    rms: float


def levels(pcm: bytes) -> Levels:
    """Return the peak and the root mean square; 0 for an empty piece. Of a long piece only some samples count."""
    found = _samples(pcm)
    samples = found[:: len(found) // MAX_LEVELS + 1].tolist()  # three passes over a list cost less than over an array
    if not samples:
        return Levels(0.0, 0.0)
    loudest, quietest = max(samples), min(samples)
    return Levels(_share(max(loudest, -quietest)), _share(hypot(*samples) / sqrt(len(samples))))


def resample(pcm: bytes, source: int, target: int) -> bytes:
    """Convert 16-bit mono sound to another rate (Hz), without interpolation (wire 6.11)."""
    if source == target:
        return whole_samples(pcm)
    samples = array("h", whole_samples(pcm))
    common = gcd(source, target)
    stride, period = source // common, target // common  # the pattern of picked samples repeats after `period` outputs
    picked = array("h", bytes(len(samples) * target // source * SAMPLE_WIDTH))
    for first in range(min(period, len(picked))):
        place, places = first * source // target, len(range(first, len(picked), period))
        picked[first::period] = samples[place : place + places * stride : stride]
    return picked.tobytes()


def whole_samples(pcm: bytes) -> bytes:
    """Return the sound without half a sample at the end."""
    return pcm[: len(pcm) - len(pcm) % SAMPLE_WIDTH]


def duration(size: int, rate: int) -> float:
    """Return the seconds that `size` bytes last at a rate in Hz."""
    return size / SAMPLE_WIDTH / rate


def wav_head(size: int, rate: int) -> bytes:
    """Return the 44 bytes before `size` bytes of sound in a WAV file. It can declare 4 GiB at most."""
    size = min(size, MAX_WAV)
    return WAV_HEAD.pack(
        b"RIFF",
        size + WAV_HEAD.size - 8,
        b"WAVE",
        b"fmt ",
        16,  # bytes of the format that follow
        1,  # PCM
        1,  # channel
        rate,
        rate * SAMPLE_WIDTH,
        SAMPLE_WIDTH,
        8 * SAMPLE_WIDTH,
        b"data",
        size,
    )


def _samples(pcm: bytes) -> array[int]:
    samples = array("h", whole_samples(pcm))
    if _SWAPPED:
        samples.byteswap()
    return samples


def _share(value: float) -> float:
    return round(value / FULL_SCALE, 4)
