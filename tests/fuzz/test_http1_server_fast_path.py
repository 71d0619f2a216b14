"""Tests of the generated traffic for the HTTP/1.1 server's fast path: its coverage, and the report of a difference."""

from random import Random

from click.testing import CliRunner

from fuzz import fast_path
from fuzz.targets.http1_server_fast_path import LIMITS


def test_one_script_is_played_by_its_number() -> None:
    result = CliRunner().invoke(fast_path.main, ["--script", "7"])
    assert result.exit_code == 0
    assert result.output.startswith("holds; ")
    assert "python -m fuzz.fast_path --script" in CliRunner().invoke(fast_path.main, ["--help"]).output


def test_the_grammar_reaches_the_limits_and_past_them() -> None:
    heads = [fast_path.traffic(Random(seed)).partition(b"\r\n\r\n")[0] for seed in range(1500)]
    sizes = [len(head) + 4 for head in heads]
    assert {LIMITS.max_head, LIMITS.max_head + 1} <= set(sizes)
    fields = [head.count(b"\r\n") for head in heads]
    assert {LIMITS.max_fields, LIMITS.max_fields + 1} <= set(fields)
