"""Tests of the list of seeded bugs: each is found by the test or the seed that it names.

`make test` tries only those of `TRIED`.
"""

import re
from itertools import groupby

import pytest
from click.testing import CliRunner

from fuzz.mutants import rules
from fuzz.mutants.rules import Rule, main, noticed, read_rules
from fuzz.simulation.invariants import Invariant

RULES = read_rules()
NAMES = [rule.name for rule in RULES]
TRIED = {  # by `make test`: one for each kind of entry; with --full all are tried
    "a page opens /ws",  # by a test, and by a simulation
    "a session gives itself a withheld channel",  # by a test
    "a notification stays at its node",  # by a cluster run
}


def test_each_has_a_name_of_its_own_and_a_test_that_is_there() -> None:
    assert len(set(NAMES)) == len(NAMES) > 100
    tests = sorted(rule.test for rule in RULES if rule.test)
    for path, names in groupby(tests, lambda test: test.partition("::")[0]):
        text = (rules.ROOT / path).read_text()
        for name in names:
            assert re.search(rf"^ *(def |class )?{name.split('::')[-1]}\b", text, re.MULTILINE), name


def test_each_bug_names_its_test_or_seed() -> None:
    invariants = {invariant.name for invariant in Invariant}
    for rule in RULES:
        assert (rule.world is None) or (rule.storm is None), rule.name
        assert bool(rule.breaks) == (rule.world is not None or rule.storm is not None), rule.name
        assert rule.test or rule.breaks, rule.name
        assert rule.world is None or rule.breaks in invariants, rule.name


def test_each_invariant_has_a_bug_that_a_world_finds() -> None:
    found = {rule.breaks for rule in RULES if rule.world is not None}
    found |= {"BOUNDED", "GRANT_HELD"}  # no seed is known that reports one of these first
    assert [invariant.name for invariant in Invariant if invariant.name not in found] == []


def test_each_bug_applies_and_compiles() -> None:
    for rule in RULES:
        text = rule.text()
        compile(text, rule.module, "exec")
        assert text.decode() != rule.tree.path(rule.below).read_text()


@pytest.mark.parametrize(
    "rule", [pytest.param(rule, id=rule.name, marks=() if rule.name in TRIED else pytest.mark.full) for rule in RULES]
)
def test_a_bug_is_noticed(rule: Rule, tmp_path_factory: pytest.TempPathFactory) -> None:
    by = noticed(rule, str(tmp_path_factory.getbasetemp()))  # one folder, so that each module is compiled once
    assert by is not None
    assert by.startswith(rule.test), by


def test_command_output(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "noticed", lambda rule, *_, **__: None if "/ws" in rule.name else "a test")
    said = CliRunner().invoke(main, ["a page"])
    assert said.exit_code == 1
    assert "a page opens /ws: NOT NOTICED\n" in said.stdout
    assert "a page calls /mcp: a test\n" in said.stdout
    assert CliRunner().invoke(main, ["HTTP/1.0"]).exit_code == 0
