"""Child program for speech synthesis with the espeak-ng library, for hosts without the espeak-ng program.

    python -I speak_program.py -v VOICE -s WORDS_PER_MINUTE -p PITCH < TEXT > WAV

Its output has the form of that of `espeak-ng --stdin --stdout`: a WAV head of unknown length, then samples as they are
made.
"""

import contextlib
import ctypes
import os
import struct
import sys
from collections.abc import Sequence

__all__ = ["main"]

OUTPUT = 1  # file descriptor
SYNCHRONOUS = 2  # AUDIO_OUTPUT_SYNCHRONOUS of speak_lib.h
BUFFER = 100  # ms of sound in one callback
DONT_EXIT = 0x8000  # espeakINITIALIZE_DONT_EXIT
UTF8 = 1  # espeakCHARS_UTF8
CHARACTERS = 1  # POS_CHARACTER
RATE, PITCH = 1, 3  # espeakRATE, espeakPITCH
UNKNOWN = 0x7FFFF000  # bytes; in a WAV head instead of the length, which is not known yet
OPTIONS = {"-v": "en", "-s": "175", "-p": "50"}


def main(arguments: Sequence[str]) -> int:
    """Synthesize the text on standard input, and write WAV to standard output.

    Return 0, also if the reader has closed the output, 1 if the engine does not start or has no such voice, or 2 for
    wrong options. A rate or pitch that is no number raises `ValueError`.
    """
    options = dict(OPTIONS)
    if len(arguments) % 2 or any(name not in OPTIONS for name in arguments[::2]):
        return _fail("usage: speak_program.py [-v VOICE] [-s WORDS_PER_MINUTE] [-p PITCH]", 2)
    options.update(zip(arguments[::2], arguments[1::2], strict=True))
    text = sys.stdin.buffer.read()
    import espeakng_loader  # noqa: PLC0415, RUF100 - only here

    library = ctypes.CDLL(espeakng_loader.get_library_path())
    rate = library.espeak_Initialize(SYNCHRONOUS, BUFFER, espeakng_loader.get_data_path().encode(), DONT_EXIT)
    if rate <= 0:
        return _fail("the espeak-ng library does not start", 1)
    if library.espeak_SetVoiceByName(options["-v"].encode()) != 0:
        return _fail("the specified espeak-ng voice does not exist", 1)
    library.espeak_SetParameter(RATE, int(options["-s"]), 0)
    library.espeak_SetParameter(PITCH, int(options["-p"]), 0)

    callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)(_on_samples)
    if _write(_wav_head(rate)):
        return 0
    library.espeak_SetSynthCallback(callback)
    size = ctypes.c_size_t(len(text) + 1)
    library.espeak_Synth(ctypes.c_char_p(text), size, 0, CHARACTERS, 0, UTF8, None, None)
    library.espeak_Synchronize()
    return 0


def _on_samples(samples: int | None, count: int, events: int | None) -> int:
    """Write samples; a result other than 0 stops the synthesis."""
    return _write(ctypes.string_at(samples, 2 * count)) if samples and count else 0


def _wav_head(rate: int) -> bytes:
    wave = struct.pack("<4sI4s", b"RIFF", UNKNOWN + 36, b"WAVE")
    sound = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, rate, 2 * rate, 2, 16)
    return wave + sound + struct.pack("<4sI", b"data", UNKNOWN)


def _write(data: bytes) -> int:
    """Write to standard output; return 0, or 1 if that fails, as after its reader has closed it."""
    rest = memoryview(data)
    try:
        while rest:
            rest = rest[os.write(OUTPUT, rest) :]
    except OSError:
        return 1
    return 0


def _fail(words: str, status: int) -> int:
    with contextlib.suppress(OSError):
        sys.stderr.write(f"{words}\n")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
