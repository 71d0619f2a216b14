"""Tests of the fuzzers: seeds pass, a short run finds nothing, failures are saved and can be replayed."""

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from fuzz.__main__ import main
from fuzz.atheris_driver import fuzz_guided, is_available
from fuzz.corpus_paths import corpus, dictionary
from fuzz.mutation import read_dictionary
from fuzz.random_driver import fuzz_inputs
from fuzz.targets import TARGETS

SEEDS = [(name, path) for name in TARGETS for path in sorted(corpus(name).iterdir())]
INPUTS = 30  # of each target in the short run


@pytest.mark.parametrize(("name", "path"), SEEDS, ids=lambda each: getattr(each, "name", each))
def test_every_seed_holds(name: str, path: Path) -> None:
    TARGETS[name](path.read_bytes())


@pytest.mark.parametrize("name", TARGETS)
def test_a_burst_finds_nothing(name: str, tmp_path: Path) -> None:
    burst = fuzz_inputs([name], INPUTS, 42, tmp_path / "crashes")
    assert burst.text() == f"inputs: {name} {INPUTS}; 0 failures"
    assert not (tmp_path / "crashes").exists()


@pytest.mark.parametrize("name", TARGETS)
def test_every_target_has_seeds_and_words(name: str) -> None:
    assert len(list(corpus(name).iterdir())) >= 3
    assert len(read_dictionary(dictionary(name))) >= 10
    assert all(path.stat().st_size <= 32 * 1024 for path in corpus(name).iterdir())


def test_command_prints_its_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ["--plain", "--seconds", "0.1", "--target", "qr", "--crashes", str(tmp_path)]
    result = CliRunner().invoke(main, [*arguments, "--seed", "3"])
    assert result.exit_code == 0
    assert result.output.startswith("seed 3\ninputs: qr ")
    monkeypatch.setitem(TARGETS, "qr", lambda data: 1 // 0)
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 1
    assert "replay: python -m fuzz --replay" in result.output
    saved = next(tmp_path.iterdir())
    assert saved.name.startswith("qr-")
    assert isinstance(CliRunner().invoke(main, ["--replay", str(saved)]).exception, ZeroDivisionError)
    monkeypatch.undo()
    (seed, *_) = sorted(corpus("qr").iterdir())
    copy = tmp_path / "qr-copy"
    copy.write_bytes(seed.read_bytes())
    assert CliRunner().invoke(main, ["--replay", str(copy)]).output == "holds\n"


def test_guided_runs_are_children_that_share_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # A substitute for libFuzzer, which the suite does not need: it prints its arguments.
    script = tmp_path / "libfuzzer"
    script.write_text(
        "import sys\n"
        "print(*sys.argv[1:])\n"
        "print('stat::number_of_executed_units: 12')\nprint('stat::new_units_added: 3')\n"
        "sys.exit('qr' in sys.argv)\n"
    )
    real = subprocess.Popen

    def instead(arguments: list[str], **options: object) -> subprocess.Popen[str]:
        assert arguments[:3] == [sys.executable, "-m", "fuzz.atheris_driver"]
        return real([sys.executable, str(script), *arguments[3:]], **options)  # type: ignore[call-overload, no-any-return]  # as given

    monkeypatch.setattr(subprocess, "Popen", instead)
    monkeypatch.setattr("fuzz.atheris_driver.FOUND", tmp_path / "found")
    assert fuzz_guided(["sse", "qr", "http1"], 30, tmp_path / "crashes", jobs=2) == 1
    said = capsys.readouterr()
    assert "sse: 12 inputs, 3 of them new ways" in said.out
    assert f"-artifact_prefix={tmp_path / 'crashes' / 'qr'}-" in said.err
    assert "-max_total_time=20" in said.err
    assert (tmp_path / "found" / "http1").is_dir()


@pytest.mark.skipif(not is_available(), reason="installed by `make fuzz`, where there are wheels of it")
def test_atheris_is_given_the_targets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fuzz.atheris_driver.FOUND", tmp_path / "found")
    assert fuzz_guided(["qr"], 1, tmp_path / "crashes") == 0
