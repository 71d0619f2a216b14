"""Speech from a file in place of a microphone: `say FILE.wav` of the reference phone."""

from __future__ import annotations

import wave
from array import array
from pathlib import Path

from runtimes.failures import HostError
from svc_proto.basics.resampler import Resampler
from svc_proto.facts import FailureKind

__all__ = ["read_speech"]


def read_speech(path: str, rate: int, longest: float) -> bytes:
    """Return the first channel of a WAV file (PCM of 16 bits) at `rate` Hz; `longest` is in seconds.

    Raises `HostError`, whose text is for the user.
    """
    try:
        with Path(path).expanduser().open("rb") as file, wave.open(file) as sound:
            of = sound.getparams()
            if of.sampwidth != 2:
                raise HostError(FailureKind.INVALID, f"it has {8 * of.sampwidth} bits a sample; 16 are understood")
            if not 0 < of.nframes <= longest * of.framerate:
                raise HostError(FailureKind.INVALID, f"it has to hold speech, of {longest:.0f} s at most")
            samples = array("h", sound.readframes(of.nframes))[:: of.nchannels]
    except OSError as error:
        raise HostError(FailureKind.NOT_FOUND, (error.strerror or "it cannot be read").lower()) from error
    except (wave.Error, EOFError, ValueError) as error:
        raise HostError(FailureKind.INVALID, "it is no WAV file of plain PCM, or ends too early") from error
    return Resampler(of.framerate, rate).feed(samples.tobytes())
