"""Purity of the core; and samples that its checker must flag or let pass."""

import ast
import tomllib
from pathlib import Path

import pytest

from tests.support.parsed_modules import parse_module
from tests.support.purity import FORBIDDEN_BUILTINS, PurityBreach, violations

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


# --- the checker: what it must flag -------------------------------------------------------------------------------

IMPURE = {
    "async def": ("async", "async def f(): pass"),
    "await": ("async", "async def f():\n    await g()"),
    "async for": ("async", "async def f():\n    async for x in g(): pass"),
    "async with": ("async", "async def f():\n    async with g(): pass"),
    "async comprehension": ("async", "async def f():\n    return [x async for x in g()]"),
    "global": ("global", "n = 0\ndef f():\n    global n\n    n += 1"),
    "module logger": ("global", "log = logging.getLogger(__name__)"),
    "bare logger": ("global", "log = getLogger(__name__)"),
    "import": ("import", "import os"),
    "import as": ("import", "import time as t"),
    "import within": ("import", "import os.path"),
    "import among others": ("import", "import json, socket"),
    "from import": ("import", "from random import choice"),
    "from import within": ("import", "from asyncio.streams import StreamReader"),
    "lazy import": ("import", "def f():\n    import secrets"),
    "dynamic import": ("import", "importlib.import_module('o' + 's')"),
    "dynamic import by its bare name": ("import", "import_module('o' + 's')"),
    "dunder import": ("import", "__import__('os')"),
    "datetime.now": ("clock", "datetime.now(UTC)"),
    "datetime.datetime.utcnow": ("clock", "datetime.datetime.utcnow()"),
    "date.today": ("clock", "date.today()"),
    "datetime.fromtimestamp": ("clock", "datetime.fromtimestamp(moment.wall)"),
    "datetime.astimezone": ("clock", "when.astimezone()"),
    "clock as a default": ("clock", "def f(clock=datetime.now): pass"),
}
UNORDERED = {
    "loop over a display": "for x in {1, 2}: pass",
    "loop over set()": "for x in set(y): pass",
    "loop over frozenset()": "for x in frozenset(y): pass",
    "loop over a comprehension": "for x in {y for y in z}: pass",
    "loop over a module name": "NAMES = frozenset({'a', 'b'})\nfor x in NAMES: pass",
    "loop over a name of an outer scope": "NAMES = {'a', 'b'}\ndef f():\n    for x in NAMES: pass",
    "loop over an annotated name": "names: set[str] = make()\nfor x in names: pass",
    "loop over a name that is a set or None": "def f(names: set[str] | None):\n    for x in names: pass",
    "loop over a parameter": "def f(names: frozenset[str]):\n    for x in names: pass",
    "loop over a quoted annotation": "def f(names: 'AbstractSet[str]'):\n    for x in names: pass",
    "loop over a field": "class A:\n    names: set[str]\n    def f(self):\n        for x in self.names: pass",
    "loop over another's field": "class A:\n    names: set[str]\ndef f(a):\n    for x in a.names: pass",
    "loop over an assigned attribute": (
        "class A:\n    def __init__(self): self.names = set()\n    def f(self):\n        for x in self.names: pass"
    ),
    "loop over an annotated attribute": (
        "class A:\n    def g(self): self.names: set[str] = h()\n    def f(self):\n        for x in self.names: pass"
    ),
    "loop over a class variable": (
        "class A:\n    names: ClassVar[frozenset[str]] = g()\n    def f(self):\n        for x in self.names: pass"
    ),
    "loop over algebra": "def f(a: set[int], b):\n    for x in a | b: pass",
    "loop over a method's algebra": "def f(a: set[int], b):\n    for x in a.union(b): pass",
    "loop over algebra of views": "for x in a.keys() & b.keys(): pass",
    "loop over a copy": "def f(a: set[int]):\n    for x in a.copy(): pass",
    "loop over a call": "def g() -> set[int]: ...\nfor x in g(): pass",
    "loop over a method's result": "class A:\n    def g(self) -> set[int]: ...\nfor x in a.g(): pass",
    "loop over a property": "class A:\n    @property\n    def g(self) -> set[int]: ...\nfor x in a.g: pass",
    "loop over a member of a mapping": "m: dict[str, set[int]] = {}\nfor x in m['a']: pass",
    "loop over what get gives": (
        "class A:\n    m: dict[str, set[int]]\n    def f(self):\n        for x in self.m.get('a', ()): pass"
    ),
    "loop over a value of a mapping": (
        "def f(m: dict[str, set[int]]):\n    for s in m.values():\n        for x in s: pass"
    ),
    "loop over an item of a mapping": "def f(m: dict[str, set[int]]):\n    return [x for k, s in m.items() for x in s]",
    "loop over a choice": "for x in {1, 2} if y else (): pass",
    "loop over a default": "def f(names: set[str]):\n    for x in names or (): pass",
    "list comprehension": "[x for x in {1, 2}]",
    "inner clause": "[x for y in z for x in {1, 2}]",
    "dict comprehension": "{x: 1 for x in {1, 2}}",
    "generator expression": "f(x for x in {1, 2})",
    "list": "list({1, 2})",
    "tuple": "tuple({1, 2})",
    "enumerate": "for i, x in enumerate({1, 2}): pass",
    "iter": "next(iter({1, 2}))",
    "zip": "zip([1, 2], {1, 2})",
    "dict.fromkeys": "dict.fromkeys({1, 2})",
    "chain": "chain([1], {2, 3})",
    "extend": "y.extend({2, 3})",
    "join": "', '.join({'a', 'b'})",
    "join of a generator": "', '.join(x for x in {'a', 'b'})",
    "pop": "def f(names: set[str]):\n    return names.pop()",
    "starred in a list": "[*{1, 2}]",
    "starred argument": "f(*{1, 2})",
    "unpacking": "a, b = {1, 2}",
    "starred unpacking": "[*a] = {1, 2}",
    "yield from": "def f():\n    yield from {1, 2}",
    "repr": "repr({1, 2})",
    "f-string": "f'{ {1, 2} }'",
    "lambda": "lambda: list({1, 2})",
    "default of a parameter": "def f(x=list({1, 2})): pass",
    "decorator": "@g(list({1, 2}))\ndef f(): pass",
    "bound by a walrus": "if (s := {1, 2}):\n    list(s)",
    "walrus itself": "list(s := {1, 2})",
    "nested function": "def f():\n    s = {1, 2}\n    def g():\n        return list(s)",
}
IMPURE |= {name: ("unordered", source) for name, source in UNORDERED.items()}


@pytest.mark.parametrize(("rule", "source"), IMPURE.values(), ids=IMPURE.keys())
def test_checker_flags(rule: str, source: str) -> None:
    assert {violation.rule for violation in check(source)} == {rule}


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


# --- the checker: what it must let pass ---------------------------------------------------------------------------

PURE = {
    "sorted": "for x in sorted({1, 2}): pass",
    "sorted generator": "sorted(x for x in {1, 2} if x)",
    "len min max": "def f(s: set[int]):\n    return len(s), min(s), max(s), sum(s)",
    "any": "def f(s: set[int]):\n    return any(x > 1 for x in s) and all([x for x in s])",
    "membership": "NAMES = frozenset({'a'})\ndef f(x):\n    return x in NAMES and x not in {1, 2}",
    "set from a set": "def f(s: set[int]):\n    return {x + 1 for x in s} | set(s) | {*s}",
    "changing a set": "def f(s: set[int], t: set[int]):\n    s.add(1)\n    s |= t\n    s.update(x for x in [1])",
    "comparing": "def f(s: set[int], t: set[int]):\n    return s <= t or s.isdisjoint(t)",
    "pop of a list": "def f(x: list[int]):\n    return x.pop()",
    "pop of a mapping of sets": "def f(m: dict[int, set[int]]):\n    m.pop(1, None)",
    "loop over a list": "for x in [1, 2]: pass",
    "loop over a mapping": "def f(m: dict[str, set[int]]):\n    for k in m: pass\n    for k, s in m.items(): len(s)",
    "the only member": "(x,) = {1}",
    "a name that another function has for a set": (
        "def f():\n    x = {1, 2}\n    return len(x)\ndef g(x: list[int]):\n    return list(x)"
    ),
    "a name hidden by a parameter": "x = {1, 2}\ndef f(x):\n    return list(x)",
    "a name hidden by an assignment": "x = {1, 2}\ndef f():\n    x = [1]\n    return list(x)",
    "a name hidden by a loop": "x = {1, 2}\ndef f(y):\n    for x in y:\n        return list(x)",
    "a name of a class body": "class A:\n    x = {1, 2}\n    def f(self, x):\n        return list(x)",
    "annotation of something else": "def f(x: Sequence[set[int]], y: 'list[int]'):\n    return list(x), list(y)",
    "other modules": "import json\nfrom datetime import UTC, datetime\nfrom svc_proto.time import x\nimport ossify",
    "relative name like a forbidden one": "from svc_proto.wire import select_path",
    "clock as data": "datetime.fromtimestamp(moment.wall, UTC)\nwhen.astimezone(UTC)\nmoment.now\nself.now = now",
    "methods named like builtins": "self.open()\nfiles.open(x)\nevent.id\nhash_of(x)\nhashlib.sha256(x)",
    "builtin names as fields": "class A:\n    id: int\n    def f(self, id: int) -> int:\n        return self.id",
    "nonlocal": "def f():\n    n = 0\n    def g():\n        nonlocal n\n        n += 1",
    "words in strings and comments": "'async def, await, print(x), import os'  # for x in {1, 2}: open(x)",
    "generators": "def f():\n    answer = yield from ask(q)\n    return answer",
}


@pytest.mark.parametrize("source", PURE.values(), ids=PURE.keys())
def test_checker_lets_pass(source: str) -> None:
    assert check(source) == []
