"""Listening to files: every format that people upload, and every way in which a file can be none."""

from __future__ import annotations

import json
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
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtimes import voice_listen
from runtimes.voice_listen import RATE, RecordingError, check_wav, decode, main, transcribe
from svc_proto.basics.pcm import wav_head
from tests.voice.sounds import SENTENCE, container, needs_decoder, needs_engines, spoken, words

TONE = array("h", [(place % 100 - 50) * 200 for place in range(RATE)]).tobytes()  # a second
WAV = wav_head(len(TONE), RATE) + TONE


Answer = Callable[[bytes | None], dict[str, str]]


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its limits are for a process of its own."""
    monkeypatch.setattr(voice_listen, "_limit", lambda: None)


@pytest.fixture
def no_decoder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "av", None)


# --- decoding -----------------------------------------------------------------------------------------------------


@needs_decoder
@pytest.mark.parametrize("suffix", [".mp3", ".m4a", ".webm", ".ogg", ".flac", ".aac"])
def test_formats_that_people_upload(suffix: str) -> None:
    pcm = decode(container(suffix, WAV))
    assert abs(len(pcm) / 2 / RATE - 1.0) < 0.15  # encoders pad
    loudest = max(array("h", pcm))
    assert 7_000 < loudest < 20_000


@needs_decoder
def test_a_wav_as_it_is() -> None:
    assert decode(WAV) == TONE


@needs_decoder
def test_a_wav_whose_length_was_not_known_when_it_was_written() -> None:
    assert decode(wav_head(0x7FFFF000, RATE) + TONE) == TONE


@needs_decoder
def test_what_came_before_the_damage_is_worth_listening_to() -> None:
    file = container(".flac", WAV)
    assert len(decode(file[: len(file) // 2] + bytes(500))) > 10_000


@pytest.mark.parametrize(
    ("data", "words_"),
    [
        (b"", "no format that is known"),
        (b"#EXTM3U\n#EXTINF:1,\nfile:///etc/passwd\n", "no format that is known"),
        (b"ffconcat version 1.0\nfile /etc/passwd\n", "no format that is known"),
        (WAV[:-2], "cut short"),
        (WAV[:1000], "cut short"),
        (WAV[:30], "cut short"),
        (WAV[:12], "cut short"),
        (WAV[:12] + b"LIST" + struct.pack("<I", 0xFFFFFFF0), "cut short"),
        (wav_head(0, RATE), "no sound|cannot be decoded"),
        (b"RIFF\0\0\0\0WAVEfmt " + struct.pack("<I", 2) + b"\1\0data" + struct.pack("<I", 4) + b"abcd", "cannot be"),
    ],
)
@pytest.mark.parametrize("library", [True, False])
def test_what_cannot_be_listened_to(data: bytes, words_: str, library: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not library:
        monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(RecordingError, match=words_):
        decode(data)


@needs_decoder
@pytest.mark.parametrize(
    "data",
    [
        b"ID3\4\0\0\0\0\0\0" + bytes(100),
        b"OggS" + bytes(100),
        b"fLaC" + bytes(100),
        b"\0\0\0\x18ftypM4A " + bytes(100),
        b"\x1aE\xdf\xa3" + bytes(100),
        b"\xff\xf1" + bytes(100),
    ],
)
def test_what_only_looks_like_a_recording(data: bytes) -> None:
    with pytest.raises(RecordingError, match=r"cannot be decoded|no sound"):
        decode(data)


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
        decode(out.getvalue())


@needs_decoder
@given(st.binary(max_size=300), st.sampled_from([b"RIFF\0\0\0\0WAVE", b"ID3", b"OggS", b"fLaC", b"....ftyp", b""]))
def test_no_file_raises_anything_else(data: bytes, head: bytes) -> None:
    with suppress(RecordingError):
        decode(head + data)


@given(st.binary(max_size=100), st.integers(0, 44))
def test_no_head_raises_anything_else(data: bytes, cut: int) -> None:
    with suppress(RecordingError):
        check_wav(WAV[:cut] + data)


@needs_decoder
def test_a_recording_that_is_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(voice_listen, "MAX_SECONDS", 0.5)
    with pytest.raises(RecordingError, match="longer than"):
        decode(WAV)


# --- without PyAV -------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("no_decoder")
def test_wav_is_decoded_all_the_same() -> None:
    assert decode(WAV) == TONE


@pytest.mark.usefixtures("no_decoder")
def test_other_rates_and_channels() -> None:
    out = BytesIO()
    with wave.open(out, "wb") as file:
        file.setparams((2, 2, 48_000, 0, "NONE", "not compressed"))
        file.writeframes(array("h", [sample for number in range(480) for sample in (number, -1)]).tobytes())
    assert array("h", decode(out.getvalue())).tolist() == list(range(0, 480, 3))


@pytest.mark.usefixtures("no_decoder")
def test_what_needs_it_says_so() -> None:
    with pytest.raises(RecordingError, match="PyAV is not installed"):
        decode(b"OggS" + bytes(100))
    out = BytesIO()
    with wave.open(out, "wb") as file:
        file.setparams((1, 1, 8_000, 0, "NONE", "not compressed"))
        file.writeframes(bytes(100))
    with pytest.raises(RecordingError, match="PyAV is not installed"):
        decode(out.getvalue())


@pytest.mark.usefixtures("no_decoder")
def test_long_and_silent_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RecordingError, match="no sound"):
        decode(wav_head(0x7FFFF000, RATE))
    monkeypatch.setattr(voice_listen, "MAX_SECONDS", 0)
    with pytest.raises(RecordingError, match="longer than"):
        decode(WAV)


# --- the program --------------------------------------------------------------------------------------------------


@pytest.fixture
def answer(capsys: pytest.CaptureFixture[str], alone: None, tmp_path: Path) -> Answer:
    def ask(data: bytes | None) -> dict[str, str]:
        path = tmp_path / "upload"
        if data is not None:
            path.write_bytes(data)
        assert main([str(path)]) == 0
        told: dict[str, str] = json.loads(capsys.readouterr().out)
        return told

    return ask


@needs_engines
def test_it_hears_what_is_said(answer: Answer) -> None:
    told = answer(spoken())
    assert len(words(told["text"]) & words(SENTENCE)) >= 0.6 * len(words(SENTENCE))


@needs_engines
def test_it_hears_a_voice_without_a_room(answer: Answer) -> None:
    """Between its words espeak-ng's plain voice is as still as no room is."""
    text = "Where is the nearest train station?"
    told = answer(spoken(text, "en-us"))
    assert len(words(told["text"]) & words(text)) >= 0.6 * len(words(text))


@needs_engines
def test_a_long_recording_is_cut_at_its_pauses(answer: Answer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(voice_listen, "WHOLE", 1)
    silence = bytes(2 * 22_050)
    pcm = spoken()[44:]
    both = silence + pcm + silence + pcm + silence
    told = answer(wav_head(len(both), 22_050) + both)
    assert told["text"].split().count("living") + told["text"].split().count("lights") >= 2


@needs_engines
def test_silence_has_no_words(answer: Answer) -> None:
    assert answer(wav_head(RATE, RATE) + bytes(RATE)) == {"text": ""}


def test_why_it_heard_nothing(answer: Answer, monkeypatch: pytest.MonkeyPatch) -> None:
    assert answer(None) == {"error": "the recording cannot be read: No such file or directory"}
    assert answer(WAV[:-2]) == {"error": "the WAV file is cut short"}

    def exhausted(data: bytes) -> bytes:
        raise MemoryError

    monkeypatch.setattr(voice_listen, "decode", exhausted)
    assert answer(WAV) == {"error": "the recording needs too much memory"}


class Segment(NamedTuple):
    text: str
    no_speech_prob: float


class Whisper:
    """In the place of faster-whisper: says what it was asked."""

    multilingual = False

    def __init__(self, model: str, **options: object) -> None:
        if model == "none":
            raise RuntimeError("Unable to open file 'model.bin' in model 'none'")
        assert options["local_files_only"]
        self.model = SimpleNamespace(is_multilingual=self.multilingual)

    def transcribe(self, sound: BytesIO, *, language: str | None, **options: object) -> tuple[list[Segment], object]:
        assert decode(sound.read()) == TONE
        return [Segment(f" In {language}, ", 0.1), Segment(" hiss", 0.9), Segment("  of course.", 0.0)], None


@pytest.mark.usefixtures("alone")
def test_whisper_listens(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.wav"
    path.write_bytes(WAV)

    def heard(model: str = "tiny") -> dict[str, str]:
        assert main(["--whisper", model, str(path)]) == 0
        found: dict[str, str] = json.loads(capsys.readouterr().out)
        return found

    monkeypatch.setitem(sys.modules, "faster_whisper", SimpleNamespace(WhisperModel=Whisper))
    assert heard() == {"text": "In en, of course."}
    monkeypatch.setattr(Whisper, "multilingual", True)
    assert heard() == {"text": "In None, of course."}
    assert heard("none") == {"error": "Whisper does not start: RuntimeError"}
    path.write_bytes(wav_head(64_000, RATE) + bytes(64_000))
    assert heard() == {"text": ""}


def test_whisper_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "faster_whisper", None)
    with pytest.raises(RecordingError, match="Whisper does not start: ModuleNotFoundError"):
        transcribe(TONE, "tiny")


def test_wrong_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "usage" in capsys.readouterr().err


def test_as_a_process_with_its_limits(tmp_path: Path) -> None:
    path = tmp_path / "upload"
    path.write_bytes(WAV[:-2])
    done = subprocess.run([sys.executable, "-I", voice_listen.__file__, str(path)], capture_output=True, check=True)
    assert json.loads(done.stdout) == {"error": "the WAV file is cut short"}
