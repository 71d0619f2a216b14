"""Sound at another rate, piece by piece: linear interpolation that continues across pieces.

Sound at a provider's own rate is converted to the requested rate. Odd bytes at the end of a piece wait for the next
one, so that a piece always holds whole samples.
"""

from __future__ import annotations

import sys
from array import array
from math import gcd

__all__ = ["Resampler"]

_SWAPPED = sys.byteorder == "big"


class Resampler:
    """Converter from `source` to `target`, both in Hz. Each stream of sound has its own."""

    __slots__ = ("_common", "_last", "_odd", "_offset", "_source", "_target")

    def __init__(self, source: int, target: int) -> None:
        self._source = source
        self._target = target
        self._common = gcd(source, target)
        self._odd = b""
        self._last: int | None = None  # the sample before the next piece
        self._offset = 0  # of the next output sample from `_last`, in steps of 1/target of an input sample

    def feed(self, pcm: bytes) -> bytes:
        """Convert the next piece of sound; return the samples that are complete now."""
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
        """Return every output sample before the last of these input samples.

        The weights of two neighbours repeat after `period` outputs, so that whole slices have the same weights.
        """
        source, target = self._source, self._target
        end = (len(samples) - 1) * target
        count = -(-(end - self._offset) // source) if self._offset < end else 0
        stride, period = source // self._common, target // self._common
        out = array("h", bytes(2 * count))
        for first in range(min(period, count)):
            place, part = divmod(self._offset + first * source, target)
            here = samples[place:-1:stride]
            if part:
                rest = target - part
                mixed = zip(here, samples[place + 1 :: stride], strict=True)
                here = array("h", [(rest * one + part * two) // target for one, two in mixed])
            out[first::period] = here
        self._offset += count * source - end
        self._last = samples[-1]
        if _SWAPPED:
            out.byteswap()
        return out.tobytes()
