"""Mutants of a module: every permitted change, as an edit of its text.

Types, imports, docstrings, `__all__`, assertions and formatted strings are not changed.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from enum import StrEnum
from hashlib import sha256
from itertools import pairwise

from attrs import frozen

OPPOSITES = {
    ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="), ast.Is: ("is", "is not"), ast.IsNot: (r"is\s+not", "is"),
    ast.In: ("in", "not in"), ast.NotIn: (r"not\s+in", "in"),
    ast.Lt: ("<", ">"), ast.LtE: ("<=", ">="), ast.Gt: (">", "<"), ast.GtE: (">=", "<="),
}  # fmt: skip
EDGES = {ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">")}
DELETED = (ast.AugAssign, ast.Break, ast.Continue, ast.Delete, ast.Raise, ast.Return)
SYMMETRIC = {"max", "min", "only"}
ABOUT_TYPES = {"NewType", "TypeVar", "assert_never", "cast", "isinstance", "issubclass"}


class MutationKind(StrEnum):
    """Kind of a mutation, such as an opposite comparison or a deleted statement."""

    COMPARE = "compare"  # the opposite comparison
    BOUNDARY = "boundary"  # with or without the boundary value
    NEGATE = "negate"  # a negated condition, `and` for `or`
    DELETE = "delete"  # a deleted statement
    CONSTANT = "constant"  # one more, True for False, `mutant` for any other text
    SWAP = "swap"  # two arguments that are adjacent


@frozen
class Mutant:
    """Change of a module. Its key stays the same when lines move."""

    module: str  # below the package: "relay.access"
    name: str  # of the function or class, qualified; empty between them
    kind: MutationKind
    line: int
    before: str  # the changed lines, joined
    after: str
    nth: int  # number among equal changes of the module
    start: int  # bytes of the text
    end: int
    new: bytes

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Return the module, the name, and the text before and after: the same when lines move."""
        return (self.module, self.name, self.before, self.after)

    @property
    def id(self) -> str:
        """Return an id of the mutant for the command line: its module, and a hash of the change."""
        return f"{self.module}:{sha256(repr((*self.key, self.nth)).encode()).hexdigest()[:8]}"

    def text(self, source: bytes) -> bytes:
        """Return the source of the module with the change."""
        return source[: self.start] + self.new + source[self.end :]


def mutants_of(module: str, source: bytes) -> list[Mutant]:
    """Return every mutant of a module, in the order of its lines."""
    finder = _Finder(module, source)
    finder.visit(ast.parse(source))
    return sorted(finder.found, key=lambda each: (each.start, each.end, each.kind))


class _Finder(ast.NodeVisitor):
    def __init__(self, module: str, source: bytes) -> None:
        self.found: list[Mutant] = []
        self._module = module
        self._source = source + b"\n"
        self._lines = [0]  # start of each line
        for line in source.splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))
        self._names: list[str] = []
        self._seen = Counter[tuple[str, str, str]]()

    # --- conditions ---

    def visit_Compare(self, node: ast.Compare) -> None:
        for op, left, right in zip(node.ops, [node.left, *node.comparators], node.comparators, strict=False):
            for kind, table in ((MutationKind.COMPARE, OPPOSITES), (MutationKind.BOUNDARY, EDGES)):
                if type(op) in table:
                    self._replace(kind, self._end(left), self._start(right), *table[type(op)])
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        words = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for left, right in pairwise(node.values):
            self._replace(MutationKind.NEGATE, self._end(left), self._start(right), *words)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            self._replace(MutationKind.NEGATE, self._start(node), self._start(node.operand), r"not\s*", "")
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        if not (isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"):
            self._turn([node.test])
            self.generic_visit(node)

    def visit_While(self, node: ast.While) -> None:
        self._turn([node.test])
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._turn([node.test])
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        self._turn(node.ifs)
        self.generic_visit(node)

    def _turn(self, tests: Iterable[ast.expr]) -> None:
        for test in tests:
            if not isinstance(test, ast.Compare | ast.Constant | ast.UnaryOp):  # these have mutants of their own
                start, end = self._start(test), self._end(test)
                self._add(MutationKind.NEGATE, start, end, b"not (" + self._source[start:end] + b")")

    # --- statements ---

    def visit_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):  # a docstring
            self._delete(node)
            self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        match node.targets:
            case [ast.Name(id="__all__")]:
                return
            case [ast.Name()]:
                pass  # a name without a value raises in any test
            case _:
                self._delete(node)
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if not (isinstance(node.target, ast.Name) and node.target.id == "__all__"):
            self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            if isinstance(node.target, ast.Attribute):
                self._delete(node)
            self.visit(node.value)

    def generic_visit(self, node: ast.AST) -> None:
        if isinstance(node, DELETED):
            self._delete(node)
        super().generic_visit(node)

    def _delete(self, node: ast.stmt) -> None:
        self._add(MutationKind.DELETE, self._start(node), self._end(node), b"pass")

    # --- values ---

    def visit_Constant(self, node: ast.Constant) -> None:
        match node.value:
            case bool(flag):
                new: object = not flag
            case int(number) | float(number):
                new = number + 1
            case str():
                new = "mutant"
            case bytes():
                new = b"mutant"
            case _:  # None and the ellipsis
                return
        self._add(MutationKind.CONSTANT, self._start(node), self._end(node), repr(new).encode())

    def visit_Call(self, node: ast.Call) -> None:
        match node.func:
            case ast.Name(id=called) | ast.Attribute(attr=called):
                pass
            case _:
                called = ""
        if called in ABOUT_TYPES:
            return
        if called not in SYMMETRIC:
            self._swap(node.args)
        self.generic_visit(node)

    def _swap(self, arguments: Sequence[ast.expr]) -> None:
        for one, other in pairwise(arguments):
            parts = [self._start(one), self._end(one), self._start(other), self._end(other)]
            first, between, second = (self._source[a:b] for a, b in pairwise(parts))
            if first != second and not {type(one), type(other)} & {ast.Starred, ast.GeneratorExp}:
                self._add(MutationKind.SWAP, parts[0], parts[3], second + between + first)

    # --- scopes ---

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._within(node.name, node.body)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        defaults = [*node.args.defaults, *(each for each in node.args.kw_defaults if each is not None)]
        self._within(node.name, [*defaults, *node.body])

    def _within(self, name: str, nodes: Iterable[ast.AST]) -> None:
        self._names.append(name)
        for node in nodes:
            self.visit(node)
        self._names.pop()

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None: ...

    def visit_Assert(self, node: ast.Assert) -> None: ...

    # --- edits ---

    def _replace(self, kind: MutationKind, start: int, end: int, old: str, new: str) -> None:
        found = re.search(old.encode(), self._source[start:end])
        assert found is not None
        self._add(kind, start + found.start(), start + found.end(), new.encode())

    def _add(self, kind: MutationKind, start: int, end: int, new: bytes) -> None:
        first = self._source.rfind(b"\n", 0, start) + 1
        last = self._source.find(b"\n", end)
        before = _line(self._source[first:last])
        after = _line(self._source[first:start] + new + self._source[end:last])
        name = ".".join(self._names)
        nth = self._seen[name, before, after]
        self._seen[name, before, after] += 1
        line = self._source.count(b"\n", 0, start) + 1
        self.found.append(Mutant(self._module, name, kind, line, before, after, nth, start, end, new))

    def _start(self, node: ast.expr | ast.stmt) -> int:
        return self._lines[node.lineno - 1] + node.col_offset

    def _end(self, node: ast.expr | ast.stmt) -> int:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._lines[node.end_lineno - 1] + node.end_col_offset


def _line(text: bytes) -> str:
    return " ".join(text.decode().split())
