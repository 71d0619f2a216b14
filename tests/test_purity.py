"""Purity of the core; and samples that its checker must flag or let pass."""

import ast
import tomllib
from pathlib import Path

import pytest

from tests.support.parsed_modules import parse_module
from tests.support.purity import FORBIDDEN_BUILTINS, PurityBreach, violations
from tests.support.tables import read_table

ROOT = Path(__file__).parent.parent
CORE = sorted((ROOT / "svc_proto").rglob("*.py"))
CONTRACT = "the core does no IO and reads no clock"
# imports by name, also those for type checkers
LATE = ROOT / "svc_proto" / "basics" / "lazy_exports.py"


def forbidden_modules() -> frozenset[str]:
    """Return the modules that the import-linter contract of the core forbids."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    (contract,) = [each for each in settings["tool"]["importlinter"]["contracts"] if each["name"] == CONTRACT]
    return frozenset(contract["forbidden_modules"])


FORBIDDEN = forbidden_modules()


def check(source: str) -> list[PurityBreach]:
    return violations(ast.parse(source), path="sample.py", forbidden_modules=FORBIDDEN)


# --- the core -----------------------------------------------------------------------------------------------------


def test_the_core_is_found() -> None:
    assert ROOT / "svc_proto" / "facts.py" in CORE


def test_the_contract_names_what_reaches_outside() -> None:
    assert {"asyncio", "os", "random", "secrets", "socket", "time"} <= FORBIDDEN


def test_one_module_imports_by_name_and_does_nothing_else_of_the_kind() -> None:
    (found,) = violations(parse_module(LATE), path=LATE.name, forbidden_modules=FORBIDDEN)
    assert (found.rule, found.detail) == ("import", "one that the layers cannot see")


@pytest.mark.unmeasured
def test_the_core_is_pure() -> None:
    found = [
        violation
        for path in CORE
        if path != LATE
        for violation in violations(
            parse_module(path), path=path.relative_to(ROOT).as_posix(), forbidden_modules=FORBIDDEN
        )
    ]
    assert not found, "\n" + "\n".join(map(str, found))


# --- the checker --------------------------------------------------------------------------------------------------

SAMPLES = read_table("tests/purity_samples.tsv")  # in `source`, `\n` is the end of a line; no rule: it must pass


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample["name"])
def test_checker_flags(sample: dict[str, str]) -> None:
    found = {violation.rule for violation in check(sample["source"].replace("\\n", "\n"))}
    assert found == {*sample["rule"].split()}


@pytest.mark.parametrize("name", sorted(FORBIDDEN_BUILTINS))
def test_checker_flags_builtin(name: str) -> None:
    assert check(f"x = 1\n{name}(x)") == [PurityBreach("sample.py", 2, "builtin", f"{name}()")]


@pytest.mark.parametrize("module", sorted(FORBIDDEN))
def test_checker_flags_module_of_the_contract(module: str) -> None:
    assert check(f"import {module}") == [PurityBreach("sample.py", 1, "import", module)]


def test_violations_name_file_line_and_rule_in_order() -> None:
    assert [str(found) for found in check("x = {1, 2}\n\nlist(x)\nimport os\n")] == [
        "sample.py:3: unordered: iterates over the set `x`",
        "sample.py:4: import: os",
    ]
