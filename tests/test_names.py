"""The vocabulary: no identifier has a retired word, and each public class name stands for one class."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
DATA = tomllib.loads((ROOT / "tests/names.toml").read_text(encoding="utf-8"))
RETIRED = frozenset(DATA["retired"].split())
SHARED: dict[str, str] = DATA["shared"]
PUBLIC: dict[str, str] = DATA["public"]
PRODUCT = ("svc_proto", "runtimes", "servers", "clients", "fuzz", "tests/support")
FOLDERS = (*PRODUCT, "tests", "bench", "examples", "scripts")


def trees(*folders: str) -> Iterator[tuple[Path, ast.Module]]:
    """Yield the path and the syntax tree of each module below the folders."""
    for path in sorted({path for folder in folders for path in (ROOT / folder).rglob("*.py")}):
        yield path.relative_to(ROOT), ast.parse(path.read_text(encoding="utf-8"))


def defined(tree: ast.AST) -> Iterator[str]:
    """Yield each identifier that something in the tree defines."""
    for node in ast.walk(tree):
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


def doubled(modules: Iterable[ast.Module]) -> set[str]:
    """Return the public class names that more than one module defines."""
    names = [
        node.name
        for tree in modules
        for node in tree.body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    ]
    return {name for name, count in Counter(names).items() if count > 1}


def test_no_identifier_has_a_retired_word() -> None:
    found = [
        f"{path}: {name}"
        for path, tree in trees(*FOLDERS)
        for name in {*defined(tree), path.stem}
        if retired_words(name) and name not in PUBLIC
    ]
    assert found == []


def test_a_public_class_name_stands_for_one_class() -> None:
    assert doubled(tree for _, tree in trees(*PRODUCT)) == SHARED.keys()


def test_the_checks_find_what_they_look_for() -> None:
    source = "class GuestDesk: ...\ndef f(the_door, *, law=1):\n    self._lane = shelf = 2\nfor lawn in []: ..."
    assert sorted(name for name in defined(ast.parse(source)) if retired_words(name)) == [
        "GuestDesk",
        "_lane",
        "law",
        "shelf",
        "the_door",
    ]
    one, other = ast.parse("class A: ...\nclass _B: ..."), ast.parse("class A: ...\nclass _B: ...\nclass C: ...")
    assert doubled([one, other]) == {"A"}
