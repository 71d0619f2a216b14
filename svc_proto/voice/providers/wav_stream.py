"""Incremental parser of a WAV file: the head, then PCM of unknown length."""

from struct import Struct

__all__ = ["NotWavError", "WavStream"]

MAX_HEAD = 4_096  # bytes before the sound
PCM = 1  # WAVE_FORMAT_PCM
_FORMAT = Struct("<HHI6xH")  # format, channels, rate in Hz, bits of a sample


class NotWavError(ValueError):
    """Bytes that are not a WAV file of one channel and 16 bits."""


class WavStream:
    """Parser that is fed bytes and returns PCM; `rate` (Hz) is set from the first PCM on."""

    def __init__(self) -> None:
        self.rate = 0
        self._head: bytearray | None = bytearray()

    def feed(self, data: bytes) -> bytes:
        """Return the sound in this piece; empty while the head is incomplete. Raise `NotWavError` for a bad head."""
        if self._head is None:
            return data
        self._head += data
        begin = self._sound_begins(self._head)
        if begin is None:
            if len(self._head) > MAX_HEAD:
                raise NotWavError("no sound in sight")
            return b""
        sound, self._head = bytes(self._head[begin:]), None
        return sound

    def finish(self) -> None:
        """End the stream; raise `NotWavError` if its head is incomplete, unless it was empty."""
        if self._head:
            raise NotWavError("it ends in its head")

    def _sound_begins(self, head: bytearray) -> int | None:
        if not head.startswith(b"RIFF"[: len(head)]) or (len(head) >= 12 and head[8:12] != b"WAVE"):
            raise NotWavError("it is no RIFF WAVE")
        place = 12
        while place + 8 <= len(head):
            name, size = bytes(head[place : place + 4]), int.from_bytes(head[place + 4 : place + 8], "little")
            begin = place + 8
            if name == b"data":
                if not self.rate:
                    raise NotWavError("its format is not told")
                return begin
            if name == b"fmt ":
                if begin + 16 > len(head):
                    return None
                kind, channels, self.rate, bits = _FORMAT.unpack_from(head, begin)
                if (kind, channels, bits) != (PCM, 1, 16) or not self.rate:
                    raise NotWavError("it is not PCM of one channel and 16 bits")
            place = begin + size + size % 2
        return None
