"""Tests of the mutants of source code: their kinds, the sample, and their outcomes in a tiny tree."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from fuzz.mutants.__main__ import main, read_equal
from fuzz.mutants.collected_tests import CollectedTests
from fuzz.mutants.judge import Judge, MutantResult
from fuzz.mutants.mutators import MutationKind, mutants_of
from fuzz.mutants.source_tree import SourceTree
from fuzz.mutants.trial_process import FailsWithoutMutantError
from tests.fuzz.conftest import MEASURING

ROOT = Path(__file__).parents[2]
TILL = """\
LIMIT = 3


def may(count):
    if count > LIMIT:
        return False
    return True


RATE = 7
"""
FILES = {
    "tiny/__init__.py": "",
    "tiny/shop/__init__.py": "",
    "tiny/shop/till.py": TILL,
    "tiny/shop/door.py": "",
    "tiny/street/__init__.py": "",
    "tiny/street/sign.py": "from tiny.shop import till\n\nPRICE = 5\n",
    "tests/__init__.py": "",
    "tests/shop/__init__.py": "",
    "tests/shop/test_till.py": "from tiny.shop import till\n\n\ndef test_many():\n    assert not till.may(9)\n",
    "tests/shop/test_door.py": "from tiny.shop import till\n\n\ndef test_few():\n    assert till.may(1)\n",
    "tests/loops/__init__.py": "",
    "tests/loops/test_day.py": (
        "import pytest\n\nfrom tiny.shop import till\n\n\n"
        "@pytest.mark.parametrize('world', ['sim', 'asyncio'])\ndef test_a_day(world):\n"
        "    assert world == 'sim'\n    assert till.RATE == 7\n"
    ),
    "tests/street/__init__.py": "",
    "tests/street/test_sign.py": (
        "from tiny.street import sign\n\n\ndef test_price():\n    assert sign.PRICE == 5\n\n\n"
        "def test_limit():\n    assert sign.till.LIMIT == 3\n"
    ),
}


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SourceTree:
    for name in MEASURING:  # the coverage of the tiny tree proves nothing
        monkeypatch.delenv(name, raising=False)
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return SourceTree(tmp_path, "tiny")


def everything(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def run(tree: SourceTree, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["--root", str(tree.root), "--package", tree.package, *arguments])


@pytest.mark.parametrize(
    ("source", "kind", "after"),
    [
        ("a == b", MutationKind.COMPARE, ["a != b"]),
        ("a not in b is None", MutationKind.COMPARE, ["a in b is None", "a not in b is not None"]),
        ("(a) < (b)", MutationKind.COMPARE, ["(a) > (b)"]),
        ("(a) < (b)", MutationKind.BOUNDARY, ["(a) <= (b)"]),
        ("1 >= 0", MutationKind.BOUNDARY, ["1 > 0"]),
        ("a and (b or\n not c)", MutationKind.NEGATE, ["a or (b or", "a and (b and", "c)"]),
        ("if f():\n  pass", MutationKind.NEGATE, ["if not (f()):"]),
        ("[a for a in b if a]", MutationKind.NEGATE, ["[a for a in b if not (a)]"]),
        ("def f():\n  return g(\n    1)", MutationKind.DELETE, ["pass"]),
        ("a = 1\na += 1\nb.c = 2\nd: int = 3", MutationKind.DELETE, ["pass", "pass"]),
        ("a = 1, 0.5, True, 'ü', b'', None", MutationKind.CONSTANT, [
            "a = 2, 0.5, True, 'ü', b'', None",
            "a = 1, 1.5, True, 'ü', b'', None",
            "a = 1, 0.5, False, 'ü', b'', None",
            "a = 1, 0.5, True, 'mutant', b'', None",
            "a = 1, 0.5, True, 'ü', b'mutant', None",
        ]),
        ("f(a, (b), c=d)", MutationKind.SWAP, ["f(b, (a), c=d)"]),
        ("max(a, b)\nisinstance(a, b)\nf(a, a)\nf(*a, b)", MutationKind.SWAP, []),
    ],
)  # fmt: skip
def test_each_kind(source: str, kind: MutationKind, after: list[str]) -> None:
    assert [each.after for each in mutants_of("m", source.encode()) if each.kind is kind] == after


def test_code_without_mutants() -> None:
    source = '''"""For people."""
from __future__ import annotations
if TYPE_CHECKING:
    from a import b
__all__ = ["f"]
__all__ += ["g"]
@frozen(slots=True)
class C:
    """Text."""
    a: Literal["x"]
def f(a: Literal["x"]) -> Literal["y"]:
    assert a == "x", f"{a == 1}"
'''
    assert mutants_of("m", source.encode()) == []


def test_a_mutant_is_the_same_wherever_its_lines_are() -> None:
    first = mutants_of("m", TILL.encode())
    moved = mutants_of("m", b"# ...\n\n" + TILL.encode())
    assert [each.id for each in moved] == [each.id for each in first]
    assert [each.line for each in moved] == [each.line + 2 for each in first]
    twice = mutants_of("m", b"def f():\n  a.b = 1\n  a.b = 1\n")
    assert len({each.id for each in twice}) == len(twice) == 4


def test_a_sample_is_drawn_by_its_seed_from_all_rooms_and_kinds(tiny: SourceTree) -> None:
    sample = tiny.sample(6, 1)
    assert sample == tiny.sample(6, 1) == tiny.sample(100, 1)[:6]
    assert sample != tiny.sample(6, 2)
    assert [each.module.split(".")[0] for each in sample[:2]] == ["shop", "street"]
    assert len({each.kind for each in sample if each.module.startswith("shop")}) == 4  # all kinds that it has
    assert len(tiny.sample(100, 1)) == sum(len(tiny.mutants(module)) for module in tiny.modules())


@pytest.mark.timeout(300)  # twenty-odd processes, one after another on a busy machine
def test_outcomes_of_all_mutants(tiny: SourceTree) -> None:
    before = everything(tiny.root)
    result = run(tiny, "--count", "100", "--jobs", "2")
    assert result.exit_code == 1
    fates = {line.split("  ")[1]: line.split("  ")[2:] for line in result.stderr.splitlines()}
    told = {each.after: fates[each.id] for each in tiny.mutants("shop.till")}
    many, few = "tests/shop/test_till.py::test_many", "tests/shop/test_door.py::test_few"
    assert told == {
        "LIMIT = 4": ["constant", "killed by an importing package", "tests/street/test_sign.py::test_limit"],
        "if count < LIMIT:": ["compare", "killed by its own file", many],
        "if count >= LIMIT:": ["boundary", "survived"],
        "return True": ["constant", "killed by its own file", many],
        "pass": ["delete", "killed by its package", few],
        "return False": ["constant", "killed by its package", few],
        "RATE = 8": ["constant", "killed by a scenario", "tests/loops/test_day.py::test_a_day[sim]"],
    }
    (survivor,) = [each for each in tiny.mutants("shop.till") if each.kind is MutationKind.BOUNDARY]
    assert result.stdout.endswith(
        "\ntiny/shop/till.py:5: in may: boundary\n  - if count > LIMIT:\n  + if count >= LIMIT:\n"
        f"  again: python -m fuzz.mutants --only {survivor.id}\n"
    )
    again = run(tiny, "--only", survivor.id)
    assert (again.exit_code, "1 mutants" in again.stdout) == (1, True)
    assert everything(tiny.root) == before


def test_surviving_mutant_may_be_refused_by_mypy(tiny: SourceTree, tmp_path_factory: pytest.TempPathFactory) -> None:
    lamp = "def lit(watts: int, name: str) -> str:\n    return name * watts\n\n\nlit(2, 'x')\n"
    (tiny.root / "tiny/street/lamp.py").write_text(lamp)
    (tiny.root / "tests/street/test_lamp.py").write_text("def test_nothing():\n    pass\n")
    judge = Judge(tiny, str(tmp_path_factory.mktemp("scratch")))
    told = {each.kind: judge.judge(each) for each in tiny.mutants("street.lamp")}
    assert told[MutationKind.CONSTANT].fate is MutantResult.SURVIVED
    assert told[MutationKind.SWAP].fate is MutantResult.TYPES
    assert 'Argument 1 to "lit" has incompatible type "str"' in told[MutationKind.SWAP].by


DRAWER = """\
from functools import cache


def early():
    return 1


@cache
def kept():
    return 2


def held():
    return 3


def sifted(numbers):
    return [(lambda: number + 4)() for number in numbers if number > 0]


def adder(five=5):
    def add(number):
        return number + five
    return add


ONE, ADD = early(), adder()
"""
TEST_DRAWER = """\
import pytest

from tiny.shop import drawer


@pytest.fixture(scope="module")
def three():
    return drawer.held()


def test_first(three):
    drawer.kept()


def test_second(three):
    assert (drawer.ONE, drawer.kept(), three, drawer.sifted([-1, 0, 1]), drawer.ADD(1)) == (1, 2, 3, [5], 6)
"""


@pytest.mark.timeout(300)
def test_earlier_calls_count_for_later_tests(tiny: SourceTree, tmp_path_factory: pytest.TempPathFactory) -> None:
    (tiny.root / "tiny/shop/drawer.py").write_text(DRAWER)
    (tiny.root / "tests/shop/test_drawer.py").write_text(TEST_DRAWER)
    (tiny.root / "tests/shop/test_till.py").write_text("def test_nothing():\n    assert False\n")
    scratch = str(tmp_path_factory.mktemp("scratch"))
    mutants = tiny.mutants("shop.drawer")
    with closing(CollectedTests(tiny, scratch, jobs=1)) as collected:
        judge = Judge(tiny, scratch, narrow=True, collected=collected)
        assert {(judge.judge(each).by, each.after) for each in mutants} == {
            ("tests/shop/test_drawer.py::test_second", each.after) for each in mutants
        }
        assert {judge.judge(each).fate for each in tiny.mutants("shop.till")} == {
            MutantResult.PACKAGE,
            MutantResult.SURVIVED,
        }


def test_unknown_mutant_is_an_error(tiny: SourceTree) -> None:
    for name in ("shop.till:00000000", "shop.cellar:00000000"):
        assert f"there is no mutant {name}" in run(tiny, "--only", name).stderr


def test_failure_without_mutant_is_an_error(tiny: SourceTree, tmp_path_factory: pytest.TempPathFactory) -> None:
    (mutant, *_) = tiny.mutants("shop.till")
    scratch = str(tmp_path_factory.mktemp("scratch"))
    (tiny.root / "tests/shop/test_till.py").write_text("def test_nothing():\n    raise ValueError\n")
    with pytest.raises(FailsWithoutMutantError, match="::test_nothing"):
        Judge(tiny, scratch).judge(mutant)
    with pytest.raises(FailsWithoutMutantError, match="the time limit"):
        Judge(tiny, scratch, limit=0.0).judge(mutant)
    (tiny.root / "tests/shop/test_till.py").write_text("from tiny import nothing\n")
    assert "the tests cannot be collected" in run(tiny, "--count", "1").stderr


@pytest.mark.parametrize(("key", "why"), read_equal().items(), ids=lambda each: each[0] if len(each) == 4 else "")
def test_each_equal_mutant_exists(key: tuple[str, str, str, str], why: str) -> None:
    assert why.endswith(".")
    assert key in [each.key for each in SourceTree(ROOT).mutants(key[0])]
