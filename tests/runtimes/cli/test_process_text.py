"""Tests of `prepare_process`: file names and output in several locales, characters that a stream lacks, and `HOME`."""

import codecs
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from runtimes.cli import process_text
from runtimes.cli.process_text import can_print, prepare_process

ROOT = Path(__file__).parents[3]
PROGRAM = """
import json, os, sys
from runtimes.cli.process_text import prepare_process
prepare_process()
seen = {"files": sys.getfilesystemencoding(), "output": sys.stdout.encoding, "argument": ascii(sys.argv[1]),
        "left": [name for name in os.environ if name.startswith("_SVC")], "home": os.environ["HOME"]}
print(json.dumps(seen))
print("Ключ 🔑 … → ok")
"""
NARROW = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}


def run(folder: Path, env: dict[str, str]) -> tuple[dict[str, object], str]:
    (folder / "program.py").write_text(PROGRAM, "utf-8")
    words = [sys.executable, str(folder / "program.py"), "日本"]
    done = subprocess.run(words, env={**os.environ, "PYTHONPATH": str(ROOT), **env}, capture_output=True, check=True)
    first, second = done.stdout.decode("utf-8").splitlines()
    return json.loads(first), second


@pytest.mark.parametrize(
    ("env", "output", "line"),
    [
        ({"PYTHONUTF8": "1"}, "utf-8", "Ключ 🔑 … → ok"),
        (NARROW, "ascii", "???? ? ... -> ok"),
        ({**NARROW, "PYTHONIOENCODING": "utf-8"}, "utf-8", "Ключ 🔑 … → ok"),
        ({"PYTHONUTF8": "1", "PYTHONIOENCODING": "ascii"}, "ascii", "???? ? ... -> ok"),
    ],
)
def test_paths_are_utf_8_and_output_is_that_of_the_terminal(
    tmp_path: Path, env: dict[str, str], output: str, line: str
) -> None:
    seen, second = run(tmp_path, env)
    assert (seen["files"], seen["argument"], seen["left"]) == ("utf-8", ascii("日本"), [])
    assert (codecs.lookup(str(seen["output"])).name, second) == (output, line)


@pytest.mark.parametrize(
    ("encoding", "text", "data"),
    [
        ("iso8859-1", "Grüße – ✓ “漢字”", 'Gr\xfc\xdfe - + "??"'.encode("latin-1")),  # noqa: RUF001 - signs that are replaced
        ("utf-8", "caf\udce9 \ud800", b"caf\xe9 ?"),  # a file name that is not UTF-8
    ],
)
def test_characters_that_the_output_lacks_are_replaced(
    encoding: str, text: str, data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding, write_through=True))
    monkeypatch.setattr(sys, "stderr", None)
    assert can_print("Grüße")
    assert can_print("▀") is (encoding == "utf-8")
    prepare_process()
    sys.stdout.write(text)
    assert written.getvalue() == data


def test_bytes_that_cannot_be_decoded_stay_an_error() -> None:
    prepare_process()
    with pytest.raises(UnicodeDecodeError):
        b"\xff".decode("utf-8", process_text.HANDLER)


def test_a_user_without_an_entry_and_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOME")
    prepare_process()
    assert "HOME" not in os.environ  # passwd names it
    monkeypatch.setattr(os, "getuid", lambda: 955_123)
    prepare_process()
    assert os.environ["HOME"] == "/"
    assert Path("~").expanduser() == Path("/")
