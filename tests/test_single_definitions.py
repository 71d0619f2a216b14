"""Members that a peer wrote are read by the readers of `svc_proto.schema` alone: one rule in one place."""

import ast
import re
from pathlib import Path

import pytest

from tests.support.parsed_modules import parse_module

ROOT = Path(__file__).parent.parent
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
PACKAGES = ("svc_proto", "runtimes", "servers", "clients")

# --- readers ------------------------------------------------------------------------------------------------------

THE_READERS = (
    "svc_proto/basics/lenient_json.py",
    "svc_proto/basics/strict_json.py",
    "svc_proto/basics/validate.py",
    "svc_proto/api/config_types.py",  # names the types of members of a configuration file
    "svc_proto/schema/",
    "svc_proto/wire/resp.py",  # what goes over that wire is no JSON
)
TYPES = {"str", "int", "float", "bool", "dict", "list", "Mapping", "Sequence"}
GIVING = {"get", "pop", "loads", "reread", "json", "json_value", "parse_json", "parse_message"}  # by calls


def is_foreign(node: ast.AST | None, names: set[str]) -> bool:
    """Report whether an expression is a foreign value: one that a peer wrote.

    That is a name in `names`, the result of a reading call, a member with a text as key, or a part of such a value.
    """
    match node:
        case ast.Name(name):
            return name in names
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(name)):
            return name in GIVING
        case ast.Subscript(slice=ast.Constant(str())):
            return True
        case ast.NamedExpr(value=value) | ast.Subscript(value=value):
            return is_foreign(value, names)
        case ast.IfExp(body=one, orelse=other):
            return is_foreign(one, names) or is_foreign(other, names)
    return False


def foreign_names(function: ast.FunctionDef | ast.AsyncFunctionDef, nodes: list[ast.AST]) -> set[str]:
    """Return the names of a function's parameters and variables that hold foreign values; `nodes` are its nodes."""
    given = (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
    names = {each.arg for each in given if isinstance(each.annotation, ast.Name) and each.annotation.id == "object"}
    for _ in range(2):  # a name may come from a name
        for node in nodes:
            match node:
                case ast.Assign(targets=[ast.Tuple(targets)], value=ast.Tuple(values)):
                    pairs = list(zip(targets, values, strict=True))
                case ast.Assign(targets=[target], value=value) | ast.AnnAssign(target, value=ast.expr() as value):
                    pairs = [(target, value)]
                case ast.NamedExpr(target, value) | ast.For(target, value) | ast.comprehension(target, value):
                    pairs = [(target, value)]
                case _:
                    continue
            names |= {one.id for one, value in pairs if isinstance(one, ast.Name) and is_foreign(value, names)}
    return names


def inspects_type(node: ast.AST, names: set[str]) -> bool:
    """Report whether a node inspects the type of a foreign value, or reads JSON without the common reader."""
    match node:
        case ast.Call(func=ast.Name("isinstance"), args=[value, types]):
            pass
        case ast.Compare(left=ast.Call(func=ast.Name("type"), args=[value]), comparators=[types]):
            pass
        case ast.Match(subject=value):
            types = ast.Tuple([each.cls for each in ast.walk(node) if isinstance(each, ast.MatchClass)])
        case ast.Attribute(ast.Name("json"), "load" | "loads"):
            return True
        case ast.ExceptHandler(type=ast.Attribute(attr="JsonError") | ast.Name("JsonError"), name=None):
            return not any(isinstance(each, ast.Raise) for each in ast.walk(node))  # `json_value`, made by hand
        case _:
            return False
    return is_foreign(value, names) and any(isinstance(each, ast.Name) and each.id in TYPES for each in ast.walk(types))


def private_readers(source: str, path: Path | None = None) -> set[str]:
    """Return the names of a source's functions that inspect the type of a foreign value, or read JSON themselves.

    `path` is the file of the source, if it has one.
    """
    if not re.search(r"\bisinstance\(|\btype\(|^ *match |\bjson\.load|\bJsonError\b", source, re.MULTILINE):
        return set()  # none of what is looked for, and parsing takes longer
    found = set()
    for function in ast.walk(parse_module(path) if path else ast.parse(source)):
        if isinstance(function, FUNCTIONS):
            nodes = [*ast.walk(function)]
            names = foreign_names(function, nodes)
            found |= {function.name for node in nodes if inspects_type(node, names)}
    return found


def readers_in(path: str) -> set[str]:
    return private_readers((ROOT / path).read_text(encoding="utf-8"), ROOT / path)


@pytest.mark.full
def test_members_that_others_wrote_are_read_by_one_reader() -> None:
    paths = {path.relative_to(ROOT).as_posix() for name in PACKAGES for path in (ROOT / name).rglob("*.py")}
    found = {path: readers_in(path) for path in sorted(paths) if not path.startswith(THE_READERS)}
    assert {name: names for name, names in found.items() if names} == {}
    assert readers_in("svc_proto/schema/json_object.py") > {"integer", "text"}


@pytest.mark.parametrize(
    ("body", "seen"),
    [
        ("return isinstance(a.get('x'), str)", True),
        ("x, y = a.get('x'), 1\n return x if isinstance(x, str | int) else ''", True),
        ("return type(y := a['x']) is dict and y", True),
        ("for x in a['xs']:\n  if isinstance(x, dict): return x", True),
        ("match a.pop('x'):\n  case str(): return 1", True),
        ("return json.loads(a)", True),
        ("return isinstance(x := json_value(a), list) and x", True),
        ("try: return strict_json.loads(a)\n except strict_json.JsonError: return None", True),
        ("x = request.json()\n return isinstance(x, list)", True),
        ("x: object = a['x']\n return isinstance(x, Mapping)", True),
        ("return isinstance(value, bool)", True),
        ("return isinstance(a, dict)", False),
        ("x = a.text('x')\n return isinstance(x, str)", False),
        ("return isinstance(a.get('x'), Failure)", False),
        ("match a.get('x'):\n  case Refused(): return 1", False),
        ("try: return strict_json.loads(a)\n except strict_json.JsonError: raise Refused from None", False),
    ],
)
@pytest.mark.parametrize("kind", ["def _f", "def f", "async def f"])
def test_a_private_reader_is_seen(kind: str, body: str, *, seen: bool) -> None:
    assert bool(private_readers(f"{kind}(a: dict, *, value: object):\n {body}")) is seen
