"""The same sound at another rate, piece by piece: linear interpolation that goes on across pieces.

What a provider gives at its own rate becomes the rate that was asked for. Odd bytes at the end of a piece wait for
the next one, so that a piece always holds whole samples.
"""

from __future__ import annotations

import sys
from array import array

__all__ = ["Resampler"]

_SWAPPED = sys.byteorder == "big"


class Resampler:
    """From `source` to `target`, both in Hz. One for each stream of sound."""

    __slots__ = ("_last", "_odd", "_offset", "_source", "_target")

    def __init__(self, source: int, target: int) -> None:
        self._source = source
        self._target = target
        self._odd = b""
        self._last: int | None = None  # the sample before the next piece
        self._offset = 0  # of the next output sample from `_last`, in steps of 1/target of an input sample

    def feed(self, pcm: bytes) -> bytes:
        """What this piece adds."""
        if self._odd:
            pcm = self._odd + pcm
        whole = len(pcm) & ~1
        self._odd = pcm[whole:]
        if self._source == self._target:
            return pcm[:whole] if whole < len(pcm) else pcm
        samples = array("h", pcm[:whole])
        if not samples:
            return b""
        if _SWAPPED:
            samples.byteswap()
        if self._last is None:
            samples.insert(0, samples[0])
            self._offset = self._target  # the first output is the first input
        else:
            samples.insert(0, self._last)
        return self._between(samples)

    def _between(self, samples: array[int]) -> bytes:
        """Every output sample that lies before the last of these."""
        source, target = self._source, self._target
        end = (len(samples) - 1) * target
        out = array(
            "h",
            [
                ((target - part) * samples[place] + part * samples[place + 1]) // target
                for place, part in (divmod(at, target) for at in range(self._offset, end, source))
            ],
        )
        self._offset += len(out) * source - end
        self._last = samples[-1]
        if _SWAPPED:
            out.byteswap()
        return out.tobytes()
