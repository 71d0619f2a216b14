"""The fuzzer itself: seeds hold, mutations are reproducible, a broken oracle is noticed and saved."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from fuzz.__main__ import HERE, fuzz
from fuzz.mutate import chunked, mutated
from fuzz.targets import TARGETS

SEEDS = [(name, path) for name in TARGETS for path in sorted((HERE / "corpus" / name).iterdir())]


@pytest.mark.parametrize(("name", "path"), SEEDS, ids=lambda each: getattr(each, "name", each))
def test_every_seed_holds(name: str, path: Path) -> None:
    TARGETS[name](path.read_bytes())


def test_mutations_can_be_replayed() -> None:
    seeds = [b"GET / HTTP/1.1\r\n\r\n", b"other"]
    assert [mutated(seeds[0], seeds, Random(n)) for n in range(50)] == [
        mutated(seeds[0], seeds, Random(n)) for n in range(50)
    ]
    assert len({mutated(seeds[0], seeds, Random(n)) for n in range(50)}) > 40


def test_chunks_are_the_same_bytes() -> None:
    data = bytes(range(256)) * 20
    pieces = chunked(data, Random(1))
    assert b"".join(pieces) == data
    assert all(pieces)


def test_a_short_run_finds_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert fuzz(tuple(TARGETS), 1.0, 42, tmp_path / "crashes") == 0
    assert "0 failures" in capsys.readouterr().out
    assert not (tmp_path / "crashes").exists()


def test_a_broken_oracle_is_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(data: bytes) -> None:
        raise AssertionError("never holds")

    monkeypatch.setitem(TARGETS, "qr", broken)
    found = fuzz(("qr",), 0.05, 42, tmp_path / "crashes")
    saved = list((tmp_path / "crashes").iterdir())
    assert found >= len(saved) > 0
    assert saved[0].name.startswith("qr-")
