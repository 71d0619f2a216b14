"""The vocabulary: no identifier has a retired word, and each public class name stands for one class.

`names.toml` lists the retired words, and the exceptions from both rules.
"""

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DATA = tomllib.loads((ROOT / "tests/names.toml").read_text(encoding="utf-8"))
RETIRED = frozenset(DATA["retired"].split())
SHARED: dict[str, str] = DATA["shared"]
PUBLIC: dict[str, str] = DATA["public"]
PRODUCT = ("svc_proto", "runtimes", "servers", "clients", "fuzz", "tests/support")
FOLDERS = (*PRODUCT, "tests", "bench", "examples", "scripts")


def sources(*folders: str) -> Iterator[tuple[Path, str]]:
    """Yield path and text of each module below the folders, in order of path."""
    for path in sorted({path for folder in folders for path in (ROOT / folder).rglob("*.py")}):
        yield path.relative_to(ROOT), path.read_text(encoding="utf-8")


def defined(source: str) -> Iterator[str]:
    """Yield each identifier that the source defines, or nothing if the source has no retired word."""
    if not any(map(retired_words, set(re.findall(r"\w+", source)))):
        return
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name
            case ast.alias(asname=str(name)) | ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
                yield name


@cache
def retired_words(identifier: str) -> set[str]:
    """Return the retired words of an identifier in snake_case or CamelCase."""
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", identifier)
    return {word.lower() for word in words} & RETIRED


def doubled(modules: Iterable[str]) -> set[str]:
    """Return the names of public classes at module level that are defined more than once in the sources."""
    names = Counter(name for source in modules for name in re.findall(r"^class ([A-Za-z]\w*)", source, re.MULTILINE))
    return {name for name, count in names.items() if count > 1}


@pytest.mark.unmeasured
def test_no_identifier_has_a_retired_word() -> None:
    found = [
        f"{path}: {name}"
        for path, source in sources(*FOLDERS)
        for name in {*defined(source), path.stem}
        if retired_words(name) and name not in PUBLIC
    ]
    assert found == []


def test_a_public_class_name_stands_for_one_class() -> None:
    assert doubled(source for _, source in sources(*PRODUCT)) == SHARED.keys()


def test_the_checks_find_what_they_look_for() -> None:
    source = "class GuestDesk: ...\ndef f(the_door, *, law=1):\n    self._lane = shelf = 2\nfor lawn in []: ..."
    found = sorted(name for name in defined(source) if retired_words(name))
    assert " ".join(found) == "GuestDesk _lane law shelf the_door"
    assert doubled(["class A: ...\nclass _B: ...", "class A(C): ...\nclass _B: ...\nclass C: ..."]) == {"A"}
