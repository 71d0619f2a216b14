"""Generator of docs/reference/limits.md from `svc_proto/wire/limits.py` and the constants whose names mark limits.

After a change: `python -m tests.support.limits_page` writes the page.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

from attrs import frozen

from svc_proto.wire import DEFAULT_LIMITS
from tests.support.parsed_modules import parse_module

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/reference/limits.md"
SOURCE = ROOT / "svc_proto/wire/limits.py"
PACKAGES = ("svc_proto", "runtimes", "servers", "clients")
NOT_PRODUCT = ("runtimes/sim",)
LIMIT_NAME = re.compile(r"_?MAX_\w+|(?:\w+_)?LIMIT")
ABOUT = """# Limits

The limits with the behaviour at each: sizes in bytes, times in seconds, unless a row names another unit. The command
`python -m tests.support.limits_page` writes this page from the comments of the source; a test compares it. The
[wire](../spec/wire/README.md) has the limits of routes and messages, and [differences](../spec/differences.md) those
that the requirements do not have.

## Protocol layer

The fields of `Limits` in `svc_proto/wire/limits.py`. Embedders change them with `attrs.evolve(DEFAULT_LIMITS, ...)`.

The dashboard and the API server accept messages of 68 MiB, and 2 as `large_inputs`. The dashboard forwards a long
message of the gateway in parts. The API server writes the attachment in it to a file while it arrives. Other long
messages, and those over HTTP/2, are received whole, two at a time.

| Limit | Default | Meaning and behaviour at the limit |
|---|---|---|
"""
HEAD = """
## `{package}`

| Module | Limit | Value | Meaning and behaviour at the limit |
|---|---|---|---|
"""


@frozen
class ConstantLimit:
    """A limit that is a module constant; `meaning` is its comment, or empty."""

    package: str  # with slashes
    module: str  # below the package, with dots
    name: str
    value: object
    meaning: str

    def row(self) -> str:
        """Return the limit's row of the page's table."""
        meaning = self.meaning.replace("|", r"\|")
        return f"| `{self.module}` | `{self.name}` | {_shown(self.value)} | {meaning} |"


@cache
def constant_limits() -> list[ConstantLimit]:
    """Return the module constants of the product that are limits by name, in the order of their files."""
    found: list[ConstantLimit] = []
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            where = path.relative_to(ROOT).as_posix()
            if not where.startswith(NOT_PRODUCT):
                found += _of_file(where, path)
    return found


def text() -> str:
    """Return the text of docs/reference/limits.md."""
    fields = re.findall(r"^    (\w+): (?:int|float) = [^#\n]+  # (.+)$", SOURCE.read_text(), re.MULTILINE)
    rows = [f"| `{name}` | {getattr(DEFAULT_LIMITS, name):,} | {meaning} |" for name, meaning in fields]
    page = ABOUT + "\n".join(rows) + "\n"
    sections: dict[str, list[str]] = {}
    for limit in constant_limits():
        sections.setdefault(limit.package, []).append(limit.row())
    return page + "".join(HEAD.format(package=name) + "\n".join(rows) + "\n" for name, rows in sections.items())


def _of_file(where: str, path: Path) -> Iterator[ConstantLimit]:
    source = path.read_text(encoding="utf-8")
    if not LIMIT_NAME.search(source):
        return
    parts = where.removesuffix(".py").split("/")
    depth = 2 if parts[0] == "svc_proto" and len(parts) > 2 else 1
    for node in parse_module(path).body:
        names = [name for name in _names(node) if LIMIT_NAME.fullmatch(name)]
        if not names:
            continue
        module = import_module(".".join(parts))
        meaning = _comment(source, node.lineno, node.end_lineno or node.lineno)
        for name in names:
            yield ConstantLimit("/".join(parts[:depth]), ".".join(parts[depth:]), name, getattr(module, name), meaning)


def _names(node: ast.stmt) -> Iterable[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    for target in targets:
        for each in target.elts if isinstance(target, ast.Tuple) else [target]:
            if isinstance(each, ast.Name):
                yield each.id


def _comment(source: str, first: int, last: int) -> str:
    lines = source.splitlines()
    inside = "\n".join(lines[first - 1 : last]) + "\n"
    tokens = tokenize.generate_tokens(io.StringIO(inside).readline)
    behind = [token.string for token in tokens if token.type == tokenize.COMMENT]
    if not behind:
        while lines[first - 2].startswith("#"):
            first -= 1
            behind.insert(0, lines[first - 1])
    return " ".join(line.lstrip("# ") for line in behind)


def _shown(value: object) -> str:
    if isinstance(value, int | float):
        return f"{value:,}"
    return ", ".join(f"{key}: {each:,}" for key, each in value.items()) if isinstance(value, dict) else f"`{value}`"


if __name__ == "__main__":
    PAGE.write_text(text())
