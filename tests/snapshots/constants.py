"""Snapshot of the constants and enums of the core: one line for each module, so that changes show in a diff.

Of a text of more than `MAX_TEXT` characters, it has the beginning and a checksum. Constants with values that are no
data are left out.

After an intended change run `python -m tests.snapshots.constants` and review the diff of `constants.json`.
"""

import ast
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from enum import Enum
from importlib import import_module
from inspect import isclass
from pathlib import Path
from types import FunctionType, ModuleType
from zlib import crc32

from attrs import fields, has

from tests.support.parsed_modules import parse_module

ROOT = Path(__file__).parents[2]
PACKAGE = "svc_proto"
SNAPSHOT = Path(__file__).with_name("constants.json")
MAX_TEXT = 80  # characters or bytes
OF_PYTHON = {"svc_proto.wire.http1_responses": {"REASONS"}}  # differ between versions of Python
Constants = dict[str, object]


def collect() -> dict[str, Constants]:
    """Return the constants of each module that has some."""
    found: dict[str, Constants] = {}
    for path in sorted((ROOT / PACKAGE).rglob("*.py")):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        if constants := _constants_of(import_module(name), parse_module(path)):
            found[name] = constants
    return found


def render(found: Mapping[str, Constants]) -> str:
    """Return the text of the snapshot."""
    lines = [f"{json.dumps(name)}: {json.dumps(constants)}" for name, constants in found.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _constants_of(module: ModuleType, tree: ast.Module) -> Constants:
    found: Constants = {}
    for name in _assigned(tree):
        if name.isupper() and name not in OF_PYTHON.get(module.__name__, ()):
            with suppress(TypeError):
                found[name] = _plain(getattr(module, name))
    for name, kind in vars(module).items():
        if isclass(kind) and issubclass(kind, Enum) and kind.__module__ == module.__name__:
            found[name] = {member.name: str(member.value) for member in kind}
    return found


def _assigned(tree: ast.Module) -> list[str]:
    names: list[str] = []
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names += [each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)]
    return names


def _plain(value: object) -> object:
    match value:
        case Enum():
            return str(value)
        case bool() | int() | float() | None:
            return repr(value) if isinstance(value, float) and not value < float("inf") else value
        case str() | bytes():
            text = value if isinstance(value, str) else value.decode("latin-1")
            return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]} … {crc32(text.encode()):08x}"
        case re.Pattern():
            return _plain(value.pattern)
        case FunctionType() | type():
            return value.__qualname__
        case Mapping():
            return {str(_plain(key)): _plain(each) for key, each in value.items()}
        case frozenset() | set():
            return sorted(map(str, map(_plain, value)))
        case tuple() | list() | range():
            return [_plain(each) for each in value]
        case _ if has(kind := type(value)) and not isclass(value):
            return {each.name: _plain(getattr(value, each.name)) for each in fields(kind)}
        case _:
            raise TypeError


if __name__ == "__main__":
    SNAPSHOT.write_text(render(collect()))
