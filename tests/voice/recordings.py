"""Recordings for tests, made here: speech by the host's engine, and audio in the formats of uploads."""

import shutil
import subprocess
import sys
from functools import cache
from importlib.util import find_spec
from io import BytesIO

import pytest

from runtimes.speech import speak_program
from svc_proto.basics.pcm import wav_head

CLEAR_VOICE = "en-us+robosoft2"  # the voice that pocketsphinx recognizes best
SENTENCE = "Turn off the lights in the living room."
FORMATS = {
    ".mp3": "mp3",
    ".m4a": "aac",
    ".webm": "libopus",
    ".ogg": "libopus",
    ".flac": "flac",
    ".aac": "aac",
    ".aiff": "pcm_s16be",
    ".caf": "pcm_s16le",
    ".w64": "pcm_s16le",
    ".au": "pcm_s16be",
    ".wma": "wmav2",
    ".ts": "aac",
}
CONTAINERS = {".m4a": "mp4", ".aac": "adts", ".wma": "asf", ".ts": "mpegts"}

needs_engines = pytest.mark.needs(
    "svc-relay[voice]",
    find_spec("pocketsphinx") is None
    or find_spec("lameenc") is None
    or (shutil.which("espeak-ng") is None and find_spec("espeakng_loader") is None),
)
needs_decoder = pytest.mark.needs("PyAV", find_spec("av") is None)


@cache
def spoken(text: str = SENTENCE, voice: str = CLEAR_VOICE) -> bytes:
    """Return a WAV file with this text as speech."""
    program = shutil.which("espeak-ng")
    argv = [program, "--stdin", "--stdout"] if program else [sys.executable, "-I", speak_program.__file__]
    done = subprocess.run([*argv, "-v", voice, "-s", "140"], input=text.encode(), capture_output=True, check=True)
    pcm = done.stdout[44:]
    return wav_head(len(pcm), 22_050) + pcm


def container(suffix: str, wav: bytes, rate: int = 48_000) -> bytes:
    """Return a WAV file converted to another format, at a rate in Hz."""
    import av

    out = BytesIO()
    with av.open(BytesIO(wav)) as source, av.open(out, "w", format=CONTAINERS.get(suffix, suffix[1:])) as target:
        stream = target.add_stream(FORMATS[suffix], rate=rate)
        stream.layout = "mono"
        stream.bit_rate = 64_000
        resampler = av.AudioResampler(format=stream.format, layout="mono", rate=rate)
        for frame in source.decode(audio=0):
            for piece in resampler.resample(frame):
                target.mux(stream.encode(piece))
        target.mux(stream.encode(None))
    return out.getvalue()


def understood(heard: str, text: str = SENTENCE) -> bool:
    """Report whether at least three fifths of the words were recognized."""
    said, there = ({word.strip(".,?!").lower() for word in each.split()} for each in (text, heard))
    return len(said & there) >= 0.6 * len(said)
