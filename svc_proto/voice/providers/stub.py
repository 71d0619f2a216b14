"""Provider `stub`: a tone in place of speech, without key or network, deterministic (wire terminal-voice 8)."""

import sys
from array import array
from collections.abc import Iterator
from functools import lru_cache
from math import gcd, pi, sin

from svc_proto.engine.flow import Flow
from svc_proto.voice.provider_interface import AudioChunk, AudioSink, ProviderError, RenderResult, SpeechRequest
from svc_proto.voice.settings import MAX_RATE, MIN_RATE

__all__ = ["MODEL", "VOICE", "StubRenderer", "tone"]

MODEL = "local-tone"
VOICE = "sine"
PEAK = 8_000  # of 32767
CHUNKS = 8  # 9 when the frames do not divide
SHORTEST, LONGEST = 0.25, 1.5  # s
PER_SECOND = 120  # characters
HIGH, MIDDLE, LOW = 660, 440, 330  # Hz
_SWAPPED = sys.byteorder == "big"
FREQUENCIES = dict.fromkeys(("urgent", "energetic", "playful"), HIGH) | dict.fromkeys(
    ("calm", "warm", "empathetic"), LOW
)


class StubRenderer:
    """`Renderer` of a tone in place of speech."""

    def render(self, request: SpeechRequest, sink: AudioSink) -> Flow[RenderResult]:
        """Render a tone of 0.25 to 1.5 s, by the length of the text; raise `ProviderError` for an invalid rate."""
        rate = request.sample_rate
        if not MIN_RATE <= rate <= MAX_RATE:
            raise ProviderError(f"the sample rate must be from {MIN_RATE} to {MAX_RATE} Hz")
        seconds = min(max(len(request.text.strip()) / PER_SECOND, SHORTEST), LONGEST)
        frequency = FREQUENCIES.get(str(request.expression.get("emotion", "")).strip().lower(), MIDDLE)
        for first, last, pcm in tone(frequency, int(rate * seconds), rate):
            yield from sink.chunk(AudioChunk(pcm, rate, f"frames:{first}-{last}"))
        metadata = {"sample_rate": rate, "duration_seconds": round(seconds, 3), "frequency_hz": frequency}
        return RenderResult(provider="stub", model=MODEL, voice=VOICE, metadata=metadata)


def tone(frequency: int, frames: int, rate: int) -> Iterator[tuple[int, int, bytes]]:
    """Yield pieces of a sine: the first frame, the one after the last, and the PCM between them."""
    step = max(1, frames // CHUNKS)
    period = rate // gcd(rate, frequency)  # frames after which the wave repeats itself
    samples = array("h", _wave(frequency, min(period, frames), rate))
    if _SWAPPED:
        samples.byteswap()
    samples *= frames // period + 1
    for first in range(0, frames, step):
        last = min(first + step, frames)
        yield first, last, samples[first:last].tobytes()


@lru_cache(maxsize=8)
def _wave(frequency: int, frames: int, rate: int) -> list[int]:
    turn = 2 * pi * frequency / rate
    return [round(PEAK * sin(turn * frame)) for frame in range(frames)]
