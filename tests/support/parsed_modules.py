"""Syntax trees and imports of the project's modules, parsed once in a process. Callers must not change the trees."""

import ast
import gc
from functools import cache
from pathlib import Path


@cache
def parse_module(path: Path) -> ast.Module:
    """Return the syntax tree of a file.

    The garbage collector ignores the trees: its passes would take twice the time of parsing.
    """
    gc.disable()
    try:
        return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
    finally:
        gc.freeze()
        gc.enable()


@cache
def find_imports(path: Path) -> list[tuple[str, str]]:
    """Return (module, name) of each `from module import name` and (module, "") of each `import module` in a file."""
    found: list[tuple[str, str]] = []
    for node in ast.walk(parse_module(path)):
        if isinstance(node, ast.ImportFrom):
            found += [(node.module or "", alias.name) for alias in node.names]
        elif isinstance(node, ast.Import):
            found += [(alias.name, "") for alias in node.names]
    return found
