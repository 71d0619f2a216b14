"""Child program that transcribes one audio file, as files are untrusted and take seconds.

    python -I transcribe_program.py FILE                   ->  {"text": "turn on the light"}  or  {"error": "why not"}
    python -I transcribe_program.py --whisper MODEL FILE   ->  {"text": "Turn on the light."}

The recognizer is pocketsphinx, or Whisper with a model, which is a folder of CTranslate2.

The decoder detects the format from the file's bytes, whatever its name. Only formats of `FORMATS` are permitted, since
playlists and the like name other files. Without PyAV, only WAV of 16 bits is decoded.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import resource
import sys
import wave
from array import array
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from io import BytesIO
from itertools import chain
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from av.container import InputContainer

__all__ = ["NarrowbandPcm", "RecordingError", "decode_audio", "main", "recognize", "transcribe"]

RATE = 16_000  # Hz, of the acoustic model
MAX_SECONDS = 300  # of sound
MAX_FILE = 26 * 1024 * 1024  # bytes
WHOLE = 30  # s; a longer recording is cut into utterances at its pauses
QUIET = b"\0" * (RATE // 2)  # a quarter of a second: the model needs silence first
MIN_SPEECH_LEVEL = 100  # of 32767: a recording that is never louder has no speech
NOISE_LEVEL = 300  # ratio of the loudest sample to the added noise
NARROWBAND_NOISE_LEVEL = 100  # the same for a recording without sound above 4 kHz, which the model expects
THREADS = 4  # most threads of Whisper
NO_SPEECH = 0.6  # Whisper's probability from which on a segment counts as noise
CPU_SECONDS, MEMORY, FILES = 600, 4 << 30, 64
NICE = 5
# Formats of recordings, by the decoder's names; none of them refers to other files.
FORMATS = "wav,w64,aiff,caf,au,amr,mp3,aac,flac,ogg,matroska,mov,asf,avi,mpegts"
UNKNOWN = "the recording cannot be decoded: it is damaged, or in no format that is known here ({})"
SHOWN_FORMATS = "WAV, AIFF, CAF, MP3, MP4, 3GP, AMR, WebM, Ogg, FLAC, AAC, WMA"
TAG_HEAD = 10  # bytes before the content of an ID3v2 tag
MAX_TAGS = 8  # ID3v2 tags in a row


class RecordingError(Exception):
    """Error of a recording that cannot be transcribed; the text is shown to users."""


class NarrowbandPcm(bytes):
    """PCM at `RATE` of a recording that had half of that rate or less."""


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
    """Decode a file to PCM at `RATE`, up to the first damage. Raises `RecordingError`."""
    try:
        import av  # noqa: PLC0415, RUF100 - loaded when first needed
    except ImportError:
        return _plain_wav(data)
    problem = UNKNOWN.format(SHOWN_FORMATS)
    for candidate in dict.fromkeys((data, _without_tags(data), _without_tags(data.lstrip(b"\0")))):
        pcm, rate = bytearray(), RATE
        with contextlib.suppress(av.FFmpegError):  # samples before the damage are used
            # No protocol is permitted, so a file that refers to another one cannot make the decoder open it.
            options = {"format_whitelist": FORMATS, "protocol_whitelist": ""}
            with av.open(BytesIO(candidate), options=options) as container:
                problem = "there is no sound in the recording"
                rate = max((stream.rate for stream in container.streams.audio[:1]), default=RATE)
                _decode_into(pcm, container)
        if pcm:
            return NarrowbandPcm(pcm) if rate <= RATE // 2 else bytes(pcm)
    raise RecordingError(problem)


def _decode_into(pcm: bytearray, container: InputContainer) -> None:
    import av  # noqa: PLC0415, RUF100 - loaded when first needed

    for stream in container.streams.audio[:1]:
        stream.codec_context.thread_count = 1
        resampler = av.AudioResampler(format="s16", layout="mono", rate=RATE)
        for frame in chain(container.decode(stream), (None,)):  # None: flush the resampler
            for piece in resampler.resample(frame):
                pcm += bytes(piece.planes[0])[: 2 * piece.samples]
            _require_short(pcm)


def transcribe(pcm: bytes, model: str) -> str:
    """Return the words in PCM at `RATE`, by Whisper; an empty text for silence.

    Raise `RecordingError` if Whisper or its model does not start.
    """
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
    noise = NARROWBAND_NOISE_LEVEL if isinstance(pcm, NarrowbandPcm) else NOISE_LEVEL
    for utterance in _utterances(pcm):
        if _loudest(utterance) < MIN_SPEECH_LEVEL:  # the model finds words in silence, too
            continue
        decoder.start_utt()
        decoder.process_raw(_with_room(utterance, noise), full_utt=True)
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


def _with_room(pcm: bytes, noise: int) -> bytes:
    """Return the sound with a pause at both ends and faint noise.

    The model does not recognize the digital silence of synthetic voices.
    """
    gauss, level = random.Random(1).gauss, _loudest(pcm) / noise  # the same noise every time  # noqa: S311 - no secret
    sound = memoryview(QUIET + pcm + QUIET).cast("h")
    return array("h", (max(-32768, min(32767, round(sample + gauss(0, level)))) for sample in sound)).tobytes()


def _loudest(pcm: bytes) -> int:
    samples = memoryview(pcm).cast("h")
    return max(max(samples, default=0), -min(samples, default=0))


def _without_tags(data: bytes) -> bytes:
    """Return the data behind ID3v2 tags, which some programs put before formats that have no such tags."""
    for _ in range(MAX_TAGS):
        if not data.startswith(b"ID3") or len(data) < TAG_HEAD:
            break
        size = sum((byte & 0x7F) << 7 * place for place, byte in enumerate(reversed(data[6:TAG_HEAD])))  # ID3v2, 6.2
        data = data[TAG_HEAD + size :]
    return data


def _plain_wav(data: bytes) -> bytes:
    """Decode a WAV file of 16-bit PCM to `RATE` with the standard library: first channel, without interpolation.

    Raise `RecordingError` for any other file, and for one that is too long or empty.
    """
    if not data.startswith(b"RIFF") or data[8:12] != b"WAVE":
        raise RecordingError("only WAV can be decoded here: PyAV is not installed")
    try:
        with wave.open(BytesIO(_with_true_sizes(data))) as file:
            channels, width, rate = file.getnchannels(), file.getsampwidth(), file.getframerate()
            pcm = file.readframes(MAX_SECONDS * rate + 1)
    except (wave.Error, EOFError, RuntimeError):  # RuntimeError: a chunk ends behind the file
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


def _with_true_sizes(data: bytes) -> bytes:
    """Return a WAV file with correct sizes in its head: a recorder that stopped early leaves 0, or too large a size."""
    place = 12
    while place + 8 <= len(data):
        name, size = data[place : place + 4], int.from_bytes(data[place + 4 : place + 8], "little")
        rest = len(data) - place - 8
        if name == b"data":
            sizes = [count.to_bytes(4, "little") for count in (len(data) - 8, min(size or rest, rest))]
            return b"RIFF" + sizes[0] + data[8 : place + 4] + sizes[1] + data[place + 8 :]
        place += 8 + size + size % 2
    return data


def _require_short(pcm: bytes | bytearray) -> None:
    if len(pcm) > 2 * RATE * MAX_SECONDS:
        raise RecordingError(f"the recording is longer than {MAX_SECONDS} seconds")


def _limit() -> None:
    """Lower the priority of this process, and limit its processor time, memory, open files and written files.

    A limit that the host does not permit is skipped.
    """
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
