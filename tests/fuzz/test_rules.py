"""The rules of the doors: each is missed by the test that guards it when it is taken out."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

import pytest
from click.testing import CliRunner

from fuzz.mutants import rules
from fuzz.mutants.rules import Rule, main, noticed, read_rules

RULES = read_rules()
NAMES = [rule.name for rule in RULES]
TRIED = {"no page opens /ws", "what was withheld a session cannot give itself"}  # by `make test`; with --full all are


def test_each_has_a_name_of_its_own_and_a_test_that_is_there() -> None:
    assert len(set(NAMES)) == len(NAMES) > 100
    for path, names in groupby(sorted(rule.test for rule in RULES), lambda test: test.partition("::")[0]):
        text = (rules.ROOT / path).read_text()
        for name in names:
            assert f"def {name.partition('::')[2]}(" in text, name


def test_each_is_held_by_a_text_that_is_there_and_can_be_read_without_it() -> None:
    for rule in RULES:
        text = rule.text()
        compile(text, rule.module, "exec")
        assert text.decode() != rule.tree.path(rule.module.partition(".")[2]).read_text()


def test_a_text_that_has_changed_is_told() -> None:
    with pytest.raises(ValueError, match="has this 0 times: 'gone'"):
        Rule(name="x", module="svc_proto.version", before="gone", after="", test="").text()


@pytest.mark.parametrize(
    "rule",
    [pytest.param(rule, id=rule.name, marks=() if rule.name in TRIED else pytest.mark.full) for rule in RULES],
)
def test_a_rule_that_is_gone_is_missed(rule: Rule, tmp_path: Path) -> None:
    by = noticed(rule, str(tmp_path))
    assert by is not None
    assert by.startswith(rule.test), by


def test_what_the_command_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "noticed", lambda rule, *_, **__: None if "/ws" in rule.name else "a test")
    said = CliRunner().invoke(main, ["no page"])
    assert said.exit_code == 1
    assert "no page opens /ws: NOBODY NOTICES\n" in said.stdout
    assert "no page calls the API unasked: a test\n" in said.stdout
    assert CliRunner().invoke(main, ["HTTP/1.0"]).exit_code == 0
