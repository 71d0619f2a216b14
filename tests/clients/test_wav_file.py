import wave
from array import array
from pathlib import Path

import pytest

from clients.phone.program import read_speech
from runtimes.failures import HostError


def recorded(path: Path, samples: list[int], *, rate: int = 8_000, channels: int = 1, width: int = 2) -> str:
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(width)
        file.setframerate(rate)
        file.writeframes(array("h", samples).tobytes())
    return str(path)


def test_the_first_channel_is_resampled(tmp_path: Path) -> None:
    path = recorded(tmp_path / "a.wav", [0, -1, 100, -1, 200, -1], channels=2)
    assert array("h", read_speech(path, 8_000, 1.0)).tolist() == [0, 100, 200]
    assert array("h", read_speech(path, 16_000, 1.0)).tolist()[:4] == [0, 50, 100, 150]


def test_files_that_are_no_speech(tmp_path: Path) -> None:
    samples = [1] * 80
    torn = tmp_path / "torn.wav"
    torn.write_bytes(Path(recorded(torn, samples)).read_bytes()[:30])
    text = tmp_path / "text.wav"
    text.write_text("no sound")
    for path, why in (
        (recorded(tmp_path / "b.wav", samples, width=1), "8 bits a sample"),
        (recorded(tmp_path / "c.wav", []), "has to hold speech"),
        (recorded(tmp_path / "d.wav", samples, rate=8), "of 1 s at most"),
        (str(torn), "ends too early"),
        (str(text), "no WAV file"),
        (str(tmp_path / "none.wav"), "no such file or directory"),
        (str(tmp_path), "is a directory"),
        ("\0.wav", "no WAV file"),
    ):
        with pytest.raises(HostError, match=why):
            read_speech(path, 16_000, 1.0)
