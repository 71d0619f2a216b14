"""Child program that transcribes one audio file, as files are untrusted and take seconds.

    python -I transcribe_program.py FILE                   ->  {"text": "turn on the light"}  or  {"error": "why not"}
    python -I transcribe_program.py --whisper MODEL FILE   ->  {"text": "Turn on the light."}

The recognizer is pocketsphinx, or Whisper with a model, which is a folder of CTranslate2.

The format follows from the file's first bytes, whatever its name. The decoder is given the format, because its own
detection accepts playlists, which name other files. WAV is decoded even without PyAV.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import resource
import sys
import wave
from array import array
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from io import BytesIO
from itertools import chain

__all__ = ["RecordingError", "check_wav", "decode_audio", "main", "recognize", "transcribe"]

RATE = 16_000  # Hz, of the acoustic model
MAX_SECONDS = 300  # of sound
MAX_FILE = 26 * 1024 * 1024  # bytes
WHOLE = 30  # s; a longer recording is cut into utterances at its pauses
QUIET = b"\0" * (RATE // 2)  # a quarter of a second: the model needs silence first
MIN_SPEECH_LEVEL = 100  # of 32767: a recording that is never louder has no speech
ENDLESS = 0x7FFFF000  # a length in a WAV head from here on means that it was not known when the head was written
NOISE_LEVEL = 300  # ratio of the loudest sample to the added noise
THREADS = 4  # most threads of Whisper
NO_SPEECH = 0.6  # Whisper's probability from which on a segment counts as noise
CPU_SECONDS, MEMORY, FILES = 600, 4 << 30, 64
NICE = 5
KINDS = {  # the decoder's names of formats, by the beginning of a file
    "wav": rb"RIFF.{4}WAVE",
    "mov": rb".{4}ftyp",
    "matroska": rb"\x1aE\xdf\xa3",
    "ogg": rb"OggS",
    "flac": rb"fLaC",
    "mp3": rb"ID3|\xff[\xfb\xf3\xf2\xfa]",
    "aac": rb"\xff[\xf1\xf9]",
}


class RecordingError(Exception):
    """The recording has no recognizable speech; the text is for people."""


def main(arguments: Sequence[str]) -> int:
    """Transcribe a file and print the result or error as JSON. Returns 0, or 2 for wrong arguments."""
    engine: Callable[[bytes], str]
    match list(arguments):
        case [name]:
            engine = recognize
        case ["--whisper", model, name]:
            engine = partial(transcribe, model=model)
        case _:
            sys.stderr.write("usage: transcribe_program.py [--whisper MODEL] FILE\n")
            return 2
    _limit()
    answer: dict[str, str]
    try:
        with open(name, "rb") as file:
            data = file.read(MAX_FILE)
        answer = {"text": engine(decode_audio(data))}
    except RecordingError as error:
        answer = {"error": str(error)}
    except OSError as error:
        answer = {"error": f"the recording cannot be read: {os.strerror(error.errno or 0)}"}
    except MemoryError:
        answer = {"error": "the recording needs too much memory"}
    sys.stdout.write(json.dumps(answer) + "\n")
    return 0


def decode_audio(data: bytes) -> bytes:
    """Decode a file to PCM at `RATE`. Raises `RecordingError`."""
    kind = next((name for name, begin in KINDS.items() if re.match(begin, data, re.DOTALL)), None)
    if kind is None:
        raise RecordingError("the recording is in no format that is known here (WAV, MP3, MP4, WebM, Ogg, FLAC, AAC)")
    if kind == "wav":
        check_wav(data)
    try:
        import av  # noqa: PLC0415, RUF100 - loaded when first needed
    except ImportError:
        if kind != "wav":
            raise RecordingError("only WAV can be decoded here: PyAV is not installed") from None
        return _plain_wav(data)
    pcm = bytearray()
    try:
        with av.open(BytesIO(data), format=kind) as container:
            if not container.streams.audio:
                raise RecordingError("there is no sound in the recording")
            stream = container.streams.audio[0]
            stream.thread_count = 1
            resampler = av.AudioResampler(format="s16", layout="mono", rate=RATE)
            for frame in chain(container.decode(stream), (None,)):  # None: flush the resampler
                for piece in resampler.resample(frame):
                    pcm += bytes(piece.planes[0])[: 2 * piece.samples]
                _require_short(pcm)
    except av.FFmpegError:
        if not pcm:  # samples before the damage are used
            raise RecordingError("the recording cannot be decoded") from None
    if not pcm:
        raise RecordingError("there is no sound in the recording")
    return bytes(pcm)


def check_wav(data: bytes) -> None:
    """Raise `RecordingError` for a WAV file that is shorter than its head states."""
    place = 12
    while place + 8 <= len(data):
        name, size = data[place : place + 4], int.from_bytes(data[place + 4 : place + 8], "little")
        begin = place + 8
        if name == b"data":
            if size < ENDLESS and size > len(data) - begin:
                raise RecordingError("the WAV file is cut short")
            return
        place = begin + size + size % 2
    raise RecordingError("the WAV file is cut short")


def transcribe(pcm: bytes, model: str) -> str:
    """Return the words in PCM at `RATE`, by Whisper. Raises `RecordingError`, also for an unusable model."""
    if _loudest(pcm) < MIN_SPEECH_LEVEL:
        return ""
    os.environ["HF_HUB_OFFLINE"] = "1"  # use only local files
    try:
        from faster_whisper import WhisperModel  # noqa: PLC0415, RUF100 - loaded when first needed

        threads = min(THREADS, os.cpu_count() or 1)
        whisper = WhisperModel(model, device="cpu", compute_type="int8", cpu_threads=threads, local_files_only=True)
    except (ImportError, RuntimeError, ValueError) as error:
        raise RecordingError(f"Whisper does not start: {type(error).__name__}") from None
    sound = BytesIO()
    with wave.open(sound, "wb") as file:
        file.setparams((1, 2, RATE, 0, "NONE", "not compressed"))
        file.writeframes(pcm)
    sound.seek(0)
    language = None if whisper.model.is_multilingual else "en"
    found, _ = whisper.transcribe(sound, language=language, condition_on_previous_text=False)
    return " ".join(" ".join(one.text for one in found if one.no_speech_prob < NO_SPEECH).split())


def recognize(pcm: bytes) -> str:
    """Return the words in PCM at `RATE`, by pocketsphinx."""
    from pocketsphinx import Decoder  # noqa: PLC0415, RUF100 - loaded when first needed

    decoder = Decoder(samprate=float(RATE), loglevel="FATAL")
    said: list[str] = []
    for utterance in _utterances(pcm):
        if _loudest(utterance) < MIN_SPEECH_LEVEL:  # the model finds words in silence, too
            continue
        decoder.start_utt()
        decoder.process_raw(_with_room(utterance), full_utt=True)
        decoder.end_utt()
        found = decoder.hyp()
        if found is not None and found.hypstr:
            said.append(found.hypstr)
    return " ".join(" ".join(said).split())


def _utterances(pcm: bytes) -> Iterator[bytes]:
    if len(pcm) <= 2 * RATE * WHOLE:
        yield pcm
        return
    from pocketsphinx import Segmenter  # noqa: PLC0415, RUF100 - loaded when first needed

    for segment in Segmenter(sample_rate=RATE).segment(BytesIO(pcm)):
        yield segment.pcm


def _with_room(pcm: bytes) -> bytes:
    """Add faint noise: the model does not recognize the digital silence of synthetic voices."""
    gauss, level = random.Random(1).gauss, _loudest(pcm) / NOISE_LEVEL  # the same noise every time
    sound = memoryview(QUIET + pcm + QUIET).cast("h")
    return array("h", (max(-32768, min(32767, round(sample + gauss(0, level)))) for sample in sound)).tobytes()


def _loudest(pcm: bytes) -> int:
    samples = memoryview(pcm).cast("h")
    return max(max(samples, default=0), -min(samples, default=0))


def _plain_wav(data: bytes) -> bytes:
    """Decode 16-bit PCM with the standard library: first channel, nearest sample."""
    try:
        with wave.open(BytesIO(data)) as file:
            channels, width, rate = file.getnchannels(), file.getsampwidth(), file.getframerate()
            pcm = file.readframes(MAX_SECONDS * rate + 1)
    except (wave.Error, EOFError):
        raise RecordingError("the recording cannot be decoded") from None
    if width != 2 or not rate:
        raise RecordingError("only WAV of 16 bits can be decoded here: PyAV is not installed")
    frames = memoryview(pcm[: len(pcm) - len(pcm) % (2 * channels)]).cast("h")[::channels]
    count = len(frames) * RATE // rate
    sound = b"".join(frames[place * rate // RATE].to_bytes(2, sys.byteorder, signed=True) for place in range(count))
    _require_short(sound)
    if not sound:
        raise RecordingError("there is no sound in the recording")
    return sound


def _require_short(pcm: bytes | bytearray) -> None:
    if len(pcm) > 2 * RATE * MAX_SECONDS:
        raise RecordingError(f"the recording is longer than {MAX_SECONDS} seconds")


def _limit() -> None:
    """Limit the resources of this process, so that a malicious file exhausts nothing else."""
    os.nice(NICE)
    for what, limit in (
        (resource.RLIMIT_CPU, CPU_SECONDS),
        (resource.RLIMIT_AS, MEMORY),
        (resource.RLIMIT_NOFILE, FILES),
        (resource.RLIMIT_FSIZE, 1 << 20),
        (resource.RLIMIT_CORE, 0),
    ):
        with contextlib.suppress(ValueError, OSError):  # the host has a lower limit already, or has no such limit
            resource.setrlimit(what, (limit, limit))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
