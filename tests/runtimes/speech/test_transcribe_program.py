"""Tests of the transcription of files: usual formats, damaged and invalid files, and both recognizers."""

import json
import os
import struct
import subprocess
import sys
import wave
from array import array
from collections.abc import Callable
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtimes.speech import transcribe_program
from runtimes.speech.transcribe_program import RATE, NarrowbandPcm, RecordingError, decode_audio, main, recognize
from svc_proto.basics.pcm import wav_head
from tests.voice.recordings import CLEAR_VOICE, SENTENCE, container, needs_decoder, needs_engines, spoken, understood

TONE = array("h", [(place % 100 - 50) * 200 for place in range(RATE)]).tobytes()  # a second
WAV = wav_head(len(TONE), RATE) + TONE
HEADS = (b"ID3\4" + bytes(6), b"OggS", b"fLaC", b"\0\0\0\x18ftypM4A ", b"\x1aE\xdf\xa3", b"\xff\xf1")
Answer: TypeAlias = Callable[..., dict[str, str]]


@pytest.fixture
def no_decoder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "av", None)


@pytest.fixture(params=[True, False])
def either(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the test with PyAV, if it is installed, and without PyAV."""
    if not request.param:
        monkeypatch.setitem(sys.modules, "av", None)


# --- decoding -----------------------------------------------------------------------------------------------------


@needs_decoder
def test_audio_before_damage_is_decoded() -> None:
    file = container(".flac", WAV)
    assert len(decode_audio(file[: len(file) // 2] + bytes(500))) > 10_000


@pytest.mark.parametrize(
    ("data", "words_"),
    [
        (b"", "no format that is known|PyAV is not installed"),
        (b"#EXTM3U\n#EXTINF:1,\nfile:///etc/passwd\n", "no format that is known|PyAV is not installed"),
        (b"ffconcat version 1.0\nfile /etc/passwd\n", "no format that is known|PyAV is not installed"),
        (b"ID3\4\0\0\0\0\0\1x" * 20, "no format that is known|PyAV is not installed"),
        (b"ID3\4\0\0\0", "no format that is known|PyAV is not installed"),
        (WAV[:30], "cannot be decoded"),
        (WAV[:12], "cannot be decoded"),
        (WAV[:12] + b"LIST" + struct.pack("<I", 0xFFFFFFF0), "cannot be decoded"),
        (wav_head(0, RATE), "no sound|cannot be decoded"),
        (b"RIFF\0\0\0\0WAVEfmt " + struct.pack("<I", 2) + b"\1\0data" + struct.pack("<I", 4) + b"abcd", "cannot be"),
        *((head + bytes(100), "cannot be decoded|no sound|PyAV is not installed") for head in HEADS),
    ],
)
@pytest.mark.usefixtures("either")
def test_files_that_cannot_be_decoded(data: bytes, words_: str) -> None:
    with pytest.raises(RecordingError, match=words_):
        decode_audio(data)


@needs_decoder
def test_a_film_without_sound() -> None:
    import av

    out = BytesIO()
    with av.open(out, "w", format="mp4") as target:
        stream = target.add_stream("mpeg4", rate=1)
        stream.width = stream.height = 16
        target.mux(stream.encode(av.VideoFrame(16, 16, "yuv420p")))
        target.mux(stream.encode(None))
    with pytest.raises(RecordingError, match="no sound"):
        decode_audio(out.getvalue())


@needs_decoder
@given(st.binary(max_size=300), st.sampled_from([b"RIFF\0\0\0\0WAVE", b"", *HEADS]))
def test_no_file_raises_anything_else(data: bytes, head: bytes) -> None:
    with suppress(RecordingError):
        decode_audio(head + data)


@given(st.binary(max_size=100), st.integers(0, 44))
def test_no_wav_head_raises_anything_else(data: bytes, cut: int) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setitem(sys.modules, "av", None)
        with suppress(RecordingError):
            decode_audio(WAV[:cut] + data)


def with_sizes(riff: int, data: int) -> bytes:
    return b"".join((WAV[:4], struct.pack("<I", riff), WAV[8:40], struct.pack("<I", data), TONE))


@pytest.mark.parametrize(
    ("data", "samples"),
    [
        (with_sizes(0, 0), RATE),  # the recorder stopped before it wrote the sizes
        (with_sizes(0xFFFFFFFF, 0xFFFFFFFF), RATE),
        (with_sizes(0x7FFFFFFF, 0x7FFFFFFF), RATE),
        (with_sizes(len(WAV) - 8, len(TONE) + 4), RATE),
        (with_sizes(len(WAV) - 8, len(WAV) - 8), RATE),
        (with_sizes(12, len(TONE)), RATE),
        (WAV[:-3200], RATE - 1600),
        (WAV[:-1], RATE - 1),
        (WAV + b"\0", RATE),
        (WAV + b"LIST\4\0\0\0INFO", RATE),
        (WAV[:12] + b"JUNK\3\0\0\0abc\0" + WAV[12:], RATE),
    ],
)
@pytest.mark.usefixtures("either")
def test_wav_files_with_wrong_sizes_are_decoded_to_their_end(data: bytes, samples: int) -> None:
    assert decode_audio(data) == TONE[: 2 * samples]


TAG = b"ID3\3\0\0\0\0\0\x0a" + bytes(10)


@needs_decoder
@pytest.mark.parametrize(
    ("suffix", "rate", "prefix"),
    [
        *((suffix, RATE, b"") for suffix in (".mp3", ".m4a", ".webm", ".ogg", ".flac", ".aac")),
        (".mp3", 8_000, b""),  # MPEG 2.5
        (".mp3", 22_050, b""),  # MPEG 2
        (".mp3", 44_100, bytes(400)),
        (".wma", 44_100, b""),
        *((suffix, RATE, b"") for suffix in (".aiff", ".caf", ".w64", ".au", ".ts")),
        *((suffix, RATE, TAG) for suffix in (".flac", ".aiff", ".m4a")),
        (".flac", RATE, TAG + TAG),
        (".caf", RATE, bytes(400)),
    ],
)
def test_formats_rates_and_prefixes_are_decoded(suffix: str, rate: int, prefix: bytes) -> None:
    pcm = decode_audio(prefix + container(suffix, WAV, rate))
    assert abs(len(pcm) / 2 / RATE - 1.0) < 0.15  # encoders pad
    assert 7_000 < max(array("h", pcm)) < 20_000


@needs_engines
@needs_decoder
def test_a_recording_at_8_khz_gets_more_noise() -> None:
    narrow = decode_audio(container(".mp3", spoken(), 8_000))
    assert isinstance(narrow, NarrowbandPcm)
    assert recognize(narrow) != recognize(bytes(narrow))
    assert not isinstance(decode_audio(spoken()), NarrowbandPcm)


@needs_decoder
def test_a_64_bit_wav_file_is_decoded() -> None:
    sizes = b"ds64" + struct.pack("<IQQQI", 28, len(WAV) + 28, len(TONE), RATE, 0)
    long = b"RF64\xff\xff\xff\xffWAVE" + sizes + WAV[12:40] + b"\xff\xff\xff\xff" + TONE
    assert decode_audio(long) == TONE


@needs_decoder
def test_amr_is_decoded() -> None:
    frame = b"\x3c" + bytes(31)  # mode 7 (12.2 kbit/s), 20 ms
    assert len(decode_audio(b"#!AMR\n" + 50 * frame)) == 2 * RATE


@pytest.mark.usefixtures("either")
def test_a_wav_file_is_decoded_directly(monkeypatch: pytest.MonkeyPatch) -> None:
    # the second head announces no true length
    assert decode_audio(WAV) == decode_audio(wav_head(0x7FFFF000, RATE) + TONE) == TONE
    monkeypatch.setattr(transcribe_program, "MAX_SECONDS", 0)
    with pytest.raises(RecordingError, match="longer than"):
        decode_audio(WAV)


# --- without PyAV -------------------------------------------------------------------------------------------------


def wav_of(channels: int, width: int, rate: int, pcm: bytes) -> bytes:
    out = BytesIO()
    with wave.open(out, "wb") as file:
        file.setparams((channels, width, rate, 0, "NONE", "not compressed"))
        file.writeframes(pcm)
    return out.getvalue()


@pytest.mark.usefixtures("no_decoder")
def test_other_rates_and_channels() -> None:
    pcm = array("h", [sample for number in range(480) for sample in (number, -1)]).tobytes()
    assert array("h", decode_audio(wav_of(2, 2, 48_000, pcm))).tolist() == list(range(0, 480, 3))


@pytest.mark.usefixtures("no_decoder")
@pytest.mark.parametrize(
    ("data", "words_"),
    [
        (b"OggS" + bytes(100), "PyAV is not installed"),
        (wav_of(1, 1, 8_000, bytes(100)), "PyAV is not installed"),
        (wav_head(0x7FFFF000, RATE), "no sound"),
    ],
)
def test_formats_that_need_pyav(data: bytes, words_: str) -> None:
    with pytest.raises(RecordingError, match=words_):
        decode_audio(data)


# --- the program --------------------------------------------------------------------------------------------------


@pytest.fixture
def answer(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Answer:
    """Return a function that transcribes a recording in this process, without the limits of the program."""
    monkeypatch.setattr(transcribe_program, "_limit", lambda: None)
    path = tmp_path / "upload"

    def ask(data: bytes | None, *options: str) -> dict[str, str]:
        if data is not None:
            path.write_bytes(data)
        assert main([*options, str(path)]) == 0
        told: dict[str, str] = json.loads(capsys.readouterr().out)
        return told

    return ask


@needs_engines
@pytest.mark.parametrize(
    ("text", "voice"), [(SENTENCE, CLEAR_VOICE), ("What is the weather today?", "en-us")], ids=["clear", "plain"]
)
def test_speech_is_transcribed(answer: Answer, text: str, voice: str) -> None:
    assert understood(answer(spoken(text, voice))["text"], text)


@needs_engines
def test_a_long_recording_is_cut_at_its_pauses(answer: Answer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcribe_program, "WHOLE", 1)
    silence = bytes(2 * 22_050)
    pcm = spoken()[44:]
    both = silence + pcm + silence + pcm + silence
    told = answer(wav_head(len(both), 22_050) + both)
    assert told["text"].split().count("living") + told["text"].split().count("lights") >= 2


@needs_engines
def test_silence_gives_an_empty_text(answer: Answer) -> None:
    assert answer(wav_head(RATE, RATE) + bytes(RATE)) == {"text": ""}


def test_errors_of_the_transcription(answer: Answer, monkeypatch: pytest.MonkeyPatch) -> None:
    assert answer(None) == {"error": "the recording cannot be read: No such file or directory"}
    assert "cannot be decoded" in answer(WAV[:30])["error"]

    def exhausted(data: bytes) -> bytes:
        raise MemoryError

    monkeypatch.setattr(transcribe_program, "decode_audio", exhausted)
    assert answer(WAV) == {"error": "the recording needs too much memory"}


class Whisper:
    """Fake of a faster-whisper model: checks its sound, and has the language in its transcript; `none` is no model."""

    multilingual = False

    def __init__(self, model: str, **options: object) -> None:
        if model == "none":
            raise RuntimeError("Unable to open file 'model.bin' in model 'none'")
        assert options["local_files_only"]
        self.model = SimpleNamespace(is_multilingual=self.multilingual)

    def transcribe(self, sound: BytesIO, *, language: str | None, **options: object) -> tuple[list[object], object]:
        assert decode_audio(sound.read()) == TONE
        said = ((f" In {language}, ", 0.1), (" hiss", 0.9), ("  of course.", 0.0))
        return [SimpleNamespace(text=text, no_speech_prob=noise) for text, noise in said], None


def test_whisper_transcribes(answer: Answer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "faster_whisper", SimpleNamespace(WhisperModel=Whisper))
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    assert answer(WAV, "--whisper", "tiny") == {"text": "In en, of course."}
    assert os.environ["HF_HUB_OFFLINE"] == "1"
    monkeypatch.setattr(Whisper, "multilingual", True)
    assert answer(WAV, "--whisper", "tiny") == {"text": "In None, of course."}
    assert answer(WAV, "--whisper", "none") == {"error": "Whisper does not start: RuntimeError"}
    assert answer(wav_head(64_000, RATE) + bytes(64_000), "--whisper", "tiny") == {"text": ""}
    monkeypatch.setitem(sys.modules, "faster_whisper", None)
    assert answer(WAV, "--whisper", "tiny") == {"error": "Whisper does not start: ModuleNotFoundError"}


def test_wrong_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "usage" in capsys.readouterr().err


def test_the_program_runs_with_its_limits(tmp_path: Path) -> None:
    path = tmp_path / "upload"
    path.write_bytes(WAV[:30])
    done = subprocess.run(
        [sys.executable, "-I", transcribe_program.__file__, str(path)], capture_output=True, check=True
    )
    assert "cannot be decoded" in json.loads(done.stdout)["error"]
